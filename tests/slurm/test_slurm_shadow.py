"""The watchdog's simulation: it repeats what happened under Slurm's own order, and longer waits are noticed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_slurm import NOW_S, five_nodes, job, make_config, node, running

from rltune.config.slurm import SlurmConfig
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.slurm import watchdog as module
from rltune.slurm.observe import View, observe
from rltune.slurm.records import SlurmJob, SlurmNode
from rltune.slurm.watchdog import Shadow, Watchdog

STEP_S = 30.0


def config(eligible: dict | None = None, **given: object) -> SlurmConfig:
    rules = {"policy": "fifo", "min_jobs": 5, "patience": 3, **given}
    return make_config(watchdog=rules, eligible={"partitions": ["gpu"], **(eligible or {})})


def arrivals(rng: np.random.Generator, n: int) -> list[SlurmJob]:
    """Jobs on the P100s that arrive and run in whole steps."""
    submit = NOW_S + STEP_S * np.cumsum(rng.integers(0, 2, n))
    found = []
    for k, at_s in enumerate(submit, 1):
        gpus, limit_s = int(rng.choice([1, 2, 4])), float(STEP_S * rng.integers(1, 30))
        found.append(job(k, submit_s=float(at_s), gpus=gpus, gpu_type="p100", time_limit_s=limit_s))
    return found


def seen_at(now_s: float, jobs: list[SlurmJob], start_s: np.ndarray, end_s: np.ndarray) -> list[SlurmJob]:
    """What Slurm reports then of jobs that start and end so; where they run does not matter to a first cycle."""
    return [
        replace(one, state="RUNNING", start_s=start, node_names=("p100-1",)) if start <= now_s else one
        for one, start, end in zip(jobs, start_s, end_s, strict=True)
        if one.submit_s <= now_s < end
    ]


def played(
    jobs: list[SlurmJob], view: View, policy: str = "fifo", backfill: str = "conservative"
) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends, s since 1970, of all of them under a policy on the idle cluster."""
    rows, _ = view.cluster.compiled(jobs, view.t0_s)
    state = simulate(rows, view.layout, [0], [len(jobs)], SchedulerConfig(policy, backfill))
    return state.start[0] + view.t0_s, state.end[0] + view.t0_s


def begun(jobs: list[SlurmJob], rules: SlurmConfig, others: Sequence[SlurmJob] = (), nodes: Any = None) -> View:
    """What a first cycle sees of jobs that arrive."""
    return observe([*others, *(one for one in jobs if one.submit_s <= NOW_S)], nodes or five_nodes(), rules, NOW_S)


def case(seed: int, n: int) -> tuple[SlurmConfig, list[SlurmJob], View, np.ndarray, np.ndarray]:
    """(Rules, jobs that arrive, what a first cycle sees of them, their starts and ends first in, first out)."""
    rules, jobs = config(), arrivals(np.random.default_rng(seed), n)
    first = begun(jobs, rules)
    return (rules, jobs, first, *played(jobs, first))


def steps(jobs: list[SlurmJob], start_s: np.ndarray, end_s: np.ndarray) -> Iterator[tuple[float, list, list]]:
    """(Time, what is in the queue, what of it waits) up to the last end."""
    for now_s in np.arange(NOW_S, end_s.max() + STEP_S, STEP_S):
        there = seen_at(now_s, jobs, start_s, end_s)
        yield now_s, there, [one for one in there if one.state == "PENDING"]


def followed(shadow: Shadow, jobs: list[SlurmJob], start_s: np.ndarray, end_s: np.ndarray) -> float:
    """Let a shadow watch all of it; a time after it."""
    for now_s, there, waiting in steps(jobs, start_s, end_s):
        shadow.watch(there, waiting, now_s)
    return now_s + STEP_S


@pytest.mark.parametrize(("seed", "others", "lacking"), [(1, 0, -1), (2, 0, 19), (3, 3, -1)])
def test_the_simulation_repeats_what_happened(seed, others, lacking):
    """With every third job another user's, whom the controller leaves to Slurm, too; where one answer lacks what runs."""
    rules, jobs = config({"users": ["ada"]}), arrivals(np.random.default_rng(seed), 60)
    jobs = [replace(one, user="grace") if others and one.id % others == 0 else one for one in jobs]
    begin = begun(jobs, rules)
    start_s, end_s = played(jobs, begin)
    shadow = Shadow(begin, rules)
    for now_s, there, waiting in steps(jobs, start_s, end_s):
        listed = waiting if now_s == NOW_S + lacking * STEP_S else there
        assert lacking < 0 or now_s != NOW_S + lacking * STEP_S or len(listed) < len(there)
        shadow.watch(listed, [one for one in waiting if one.user == "ada"], now_s)
        if now_s == NOW_S + 9 * STEP_S:
            early = shadow.waits(now_s + STEP_S)
            assert early.realised_s == pytest.approx(early.simulated_s), "jobs that still wait or run count up to now"
    waits, ranked = shadow.waits(now_s + STEP_S), [one.user == "ada" for one in jobs]
    assert waits.jobs == sum(ranked) and waits.simulated_s == pytest.approx(waits.realised_s)
    assert waits.realised_s == pytest.approx(np.mean((start_s - [one.submit_s for one in jobs])[ranked]))


@pytest.mark.parametrize(("most", "backfill"), [(150, "conservative"), (149, "easy")])
def test_by_default_the_simulation_has_slurms_own_order(most, backfill, monkeypatch):
    """For every job, up to a number of jobs."""
    monkeypatch.setattr(module, "MOST_RESERVED", most)
    rules, jobs = make_config(), arrivals(np.random.default_rng(1), 150)
    begin = begun(jobs, rules)
    other = {"conservative": "easy", "easy": "conservative"}[backfill]
    (start_s, end_s), (other_s, _) = (played(jobs, begin, "multifactor_size", how) for how in (backfill, other))
    assert (start_s != other_s).any()
    shadow = Shadow(begin, rules)
    waits = shadow.waits(followed(shadow, jobs, start_s, end_s))
    assert waits.jobs == len(jobs) and waits.simulated_s == pytest.approx(waits.realised_s)


@pytest.mark.parametrize(("policy", "says"), [("fifo", False), ("worst", True)])
def test_the_watchdog_reports_longer_waits(policy, says):
    rules, jobs, first, start_s, end_s = case(3, 40)
    if policy == "worst":  # everybody waits three times as long
        longer_s = 2 * (start_s - [one.submit_s for one in jobs])
        start_s, end_s = start_s + longer_s, end_s + longer_s
    watchdog, said = Watchdog(rules), ""
    for now_s, there, waiting in steps(jobs, start_s, end_s):
        said = said or watchdog.cycle(replace(first, now_s=now_s, ranked=tuple(waiting), everyone=tuple(there)))
    assert bool(said) == says
    if says:
        assert "in 3 comparisons in a row" in said
        assert watchdog.last.realised_s > 1.2 * watchdog.last.simulated_s


def test_long_waits_are_compared_by_size(monkeypatch):
    """Large jobs are starved, and the others gain more than those lose."""
    rules, jobs, first, start_s, end_s = case(3, 60)
    rules = rules.model_copy(update={"max_wait_h": {2: 24.0, 8: 24.0}})
    shadow = Shadow(first, rules)
    tails = shadow.waits(followed(shadow, jobs, start_s, end_s)).tails
    waits, gpus = start_s - [one.submit_s for one in jobs], np.array([one.gpus for one in jobs])
    assert all(realised == pytest.approx(simulated) for realised, simulated in tails.values())
    assert tails["longest of jobs of up to 8 GPUs"][0] == pytest.approx(waits[gpus == 4].max())
    assert tails["95th percentile of jobs of up to 2 GPUs"][0] == pytest.approx(np.quantile(waits[gpus < 4], 0.95))
    assert not any("99th" in name for name in tails), "of 60 jobs"
    starved = module.Waits(60, 900.0, 1000.0, tails={"longest of jobs of up to 8 GPUs": (9000.0, 4000.0)})
    monkeypatch.setattr(Shadow, "waits", lambda self, now_s: starved)
    watchdog = Watchdog(rules)
    said = [watchdog.cycle(replace(first, now_s=NOW_S + k * rules.watchdog.every_s)) for k in range(4)]
    assert said[:3] == [""] * 3 and said[3].endswith(": longest of jobs of up to 8 GPUs 9000 s (4000 s)")


def test_jobs_that_their_owners_hold_are_not_compared():
    """Nor those that a limit stops: no order could start them. The others are."""
    rules, jobs, first, start_s, end_s = case(3, 60)
    held = int(np.argmax(start_s - [one.submit_s for one in jobs]))
    start_s[held], end_s[held] = end_s.max() + 9e5, end_s.max() + 1e6
    shadow = Shadow(first, rules)
    for now_s, there, waiting in steps(jobs, start_s, np.minimum(end_s, np.partition(end_s, -2)[-2] + STEP_S)):
        is_held = now_s > jobs[held].submit_s
        limited = [replace(one, held=True, priority=0) if one.id == jobs[held].id and is_held else one for one in there]
        shadow.watch(limited, [one for one in waiting if one.id != jobs[held].id or not is_held], now_s)
    found = shadow.waits(now_s + STEP_S)
    assert found.jobs == len(jobs) - 1 and found.realised_s <= found.simulated_s * 1.2


@pytest.mark.parametrize(
    "fields",
    [
        {"is_bound": True},
        {"constraint": "nvlink"},
        {"excluded": frozenset({"p100-2"})},
        {"partition": "small"},
        {"reason": "Licenses"},
    ],
    ids=str,
)
def test_a_job_that_slurm_alone_keeps_waiting_is_not_compared(fields):
    """It waits for two hours, and in the simulation not at all. The other jobs start at once."""
    rules = config({"partitions": ["small", "gpu"], "also": ["constraints"]}, min_jobs=4, patience=1)
    nodes = [node("p100-1", used=4, partitions=("small", "gpu")), node("p100-2", gpus=8)]
    there = [running(1, "p100-1", gpus=4, time_limit_s=1e6), job(50, **{"submit_s": NOW_S, **fields})]
    watchdog, at_once = Watchdog(rules), {"submit_s": NOW_S + 10, "start_s": NOW_S + 10, "time_limit_s": 1e6}
    assert watchdog.cycle(observe(there, nodes, rules, NOW_S)) == ""
    there += [running(100 + k, "p100-2", **at_once) for k in range(4)]
    view = observe(there, nodes, rules, NOW_S + 7200)
    assert [one.id for one in view.ranked] == [50]
    assert watchdog.cycle(view) == "" and watchdog.last is not None
    assert (watchdog.last.jobs, watchdog.last.left_out, watchdog.last.excused) == (4, 0, 1)


def test_too_few_jobs_to_compare_beside_those_that_cannot_be_simulated_are_said():
    """Where every partition lacks a node of the pool, none is compared."""
    said: list[str] = []
    rules = config({"partitions": ["a", "b"]}, min_jobs=4, patience=1)
    nodes = [node("p100-1", used=4, partitions=("a",)), node("p100-2", used=8, gpus=8, partitions=("a", "b"))]
    nodes.append(node("p100-3", used=4, partitions=("b",)))
    there = [running(k, f"p100-{k}", gpus=n, time_limit_s=1e6) for k, n in ((1, 4), (2, 8), (3, 4))]
    there += [job(50 + k, submit_s=NOW_S, partition="ab"[k % 2]) for k in range(6)]
    watchdog = Watchdog(rules, say=lambda text, *more: said.append(text))
    for now_s in (NOW_S, NOW_S + 7200):
        assert watchdog.cycle(observe(there, nodes, rules, now_s)) == ""
    assert said == ["the watchdog has 0 jobs to compare, expected 4 or more; it cannot simulate 6"]


@pytest.mark.parametrize(("realised_s", "says"), [(59.0, False), (61.0, True)])
def test_the_mean_wait_may_be_longer_by_a_cycle(realised_s, says, monkeypatch):
    """On an almost empty cluster jobs start at once in the simulation, and some seconds after submission under Slurm."""
    rules = make_config(interval_s=60.0, watchdog={"patience": 1})
    view = observe([job(1)], five_nodes(), rules, NOW_S)
    monkeypatch.setattr(Shadow, "waits", lambda self, now_s: module.Waits(20, realised_s, 0.0))
    watchdog = Watchdog(rules)
    assert watchdog.cycle(view) == "" and bool(watchdog.cycle(replace(view, now_s=NOW_S + 7200))) == says


def nodes_without_m40(why: str) -> tuple[list[SlurmJob], list[SlurmNode]]:
    """(Jobs that run, nodes) of a cluster on whose M40 nothing can start."""
    if why == "absent":
        return [], five_nodes()[:4]
    if why == "another partition's":
        return [], [*five_nodes()[:4], replace(five_nodes()[4], partitions=("m40",), state=frozenset({"DOWN"}))]
    return [running(900, "m40-1", gpus=0, cpus=32)], [*five_nodes()[:4], replace(five_nodes()[4], cpus_alloc=32)]


@pytest.mark.parametrize("why", ["absent", "held by a job without GPUs", "another partition's"])
def test_jobs_that_could_not_start_on_the_initial_nodes_are_left_out(why):
    """The M40 comes later, and the jobs for it wait on; the others are compared as if those were not there."""
    rules = config({"partitions": ["gpu", "m40"]})
    jobs, (others, nodes) = arrivals(np.random.default_rng(1), 40), nodes_without_m40(why)
    begin = begun(jobs, rules, others, nodes)
    start_s, end_s = played(jobs, begin)
    partition = "m40" if why == "another partition's" else "gpu"
    later = [job(800 + k, gpu_type="m40", partition=partition, submit_s=NOW_S + STEP_S * k) for k in range(4)]
    plain, more = (Shadow(begin, rules) for _ in range(2))
    for now_s, there, waiting in steps(jobs, start_s, end_s):
        come = [one for one in later if one.submit_s <= now_s]
        plain.watch([*others, *there], waiting, now_s)
        more.watch([*others, *there, *come], [*waiting, *come], now_s)
    now_s += STEP_S
    without, with_ = plain.waits(now_s), more.waits(now_s)
    assert (without.jobs, without.left_out, with_.left_out) == (40, 0, 4)
    assert with_ == replace(without, left_out=4) and with_.realised_s == pytest.approx(with_.simulated_s)


def views_of_a_growing_cluster(p100: int, k80: int, after_s: float) -> tuple[View, View]:
    """A first view with jobs for P100s, and a later one that also has jobs for K80s and the nodes that came."""
    rules = config(min_jobs=5, patience=1)
    waiting = [job(k + 1, gpu_type="p100") for k in range(p100)] + [job(k + 11, gpu_type="k80") for k in range(k80)]
    first = observe(waiting[:p100], five_nodes()[:2], rules, NOW_S)
    return first, observe(waiting, five_nodes(), rules, NOW_S + after_s)


def test_a_watchdog_that_could_compare_few_of_the_jobs_restarts_at_once():
    """Nodes come on which most jobs wait: with them it sees that nothing moves."""
    said: list[str] = []
    watchdog, (before, after) = Watchdog(config(patience=1), said.append), views_of_a_growing_cluster(2, 8, 600.0)
    assert len(after.ranked) == 10 and watchdog.cycle(before) == "" == watchdog.cycle(after)
    left_out = "2 ranked jobs to compare, 8 left out that could not start on the initial nodes"
    assert said == [f"the watchdog restarts: {left_out}"] and watchdog.shadow.begin is after
    assert watchdog.metrics()["watchdog_left_out_jobs"][2] == 8
    found = watchdog.cycle(replace(after, now_s=NOW_S + 9000))
    assert "10 jobs have waited" in found and "left out" not in found and len(said) == 1


def test_the_watchdog_reports_how_many_jobs_it_leaves_out():
    said: list[str] = []
    watchdog, (before, after) = Watchdog(config(patience=1), said.append), views_of_a_growing_cluster(6, 2, 7200.0)
    assert watchdog.cycle(before) == ""
    found = watchdog.cycle(after)
    assert "6 jobs have waited" in found and "2 left out" in found and "compares 6 jobs, 2 left out" in said[0]


def test_no_verdict_without_a_watchdog_or_with_few_jobs():
    rules = make_config(watchdog=None)
    view = observe([job(1)], five_nodes(), rules, NOW_S)
    assert Watchdog(rules).cycle(view) == ""
    few = Watchdog(config(min_jobs=100))
    for k in range(10):
        assert few.cycle(replace(view, now_s=NOW_S + 1000 * k)) == ""
    assert few.longer == 0
