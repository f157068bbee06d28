"""The watchdog's simulation: the same as what happened where Slurm's order is what happened; worse is noticed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fake_slurm import NOW_S, five_nodes, job, make_config

from rltune.config.slurm import SlurmConfig
from rltune.simulator.batch import Setting, simulate
from rltune.slurm.observe import View, compiled, observe
from rltune.slurm.records import SlurmJob
from rltune.slurm.shadow import Shadow, Watchdog

STEP_S = 30.0


def config(**told: object) -> SlurmConfig:
    rules = {"policy": "fifo", "jobs": 5, "every_s": STEP_S, "times": 3, **told}
    return make_config(blocking="none", watchdog=rules)


def arrivals(rng: np.random.Generator, n: int) -> list[SlurmJob]:
    """Jobs on the P100s that arrive and run in whole steps."""
    submit = NOW_S + STEP_S * np.cumsum(rng.integers(0, 2, n))
    return [
        job(k + 1, submit_s=float(s), gpus=int(rng.choice([1, 2, 4])), gpu_type="p100",
            time_limit_s=float(STEP_S * rng.integers(1, 30))) for k, s in enumerate(submit)
    ]  # fmt: skip


def seen_at(now_s: float, jobs: list[SlurmJob], start_s: np.ndarray, end_s: np.ndarray) -> list[SlurmJob]:
    """What Slurm tells at an instant of jobs that start and end so; where they run does not matter to a first cycle."""
    told = []
    for one, start, end in zip(jobs, start_s, end_s, strict=True):
        if one.submit_s <= now_s < end:
            goes = start <= now_s
            told.append(replace(one, state="RUNNING" if goes else "PENDING", start_s=start if goes else None,
                                node_names=("p100-1",) if goes else ()))  # fmt: skip
    return told


def played(jobs: list[SlurmJob], view: View, policy: str, rules: SlurmConfig) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends, s since 1970, of all of them under a policy on the idle cluster."""
    rows, _ = compiled(jobs, view, rules)
    state = simulate(rows, view.layout, [0], [len(jobs)], Setting(policy))
    return state.start[0] + view.t0_s, state.end[0] + view.t0_s


@pytest.mark.parametrize(("seed", "others"), [(1, 0), (2, 0), (3, 3)])
def test_the_shadow_of_what_happened_is_what_happened(seed: int, others: int) -> None:
    """With every third job another user's, whom the controller leaves to Slurm, too."""
    rules = config()
    rules = rules.model_copy(update={"scope": rules.scope.model_copy(update={"not_users": ["grace"]})})
    jobs = arrivals(np.random.default_rng(seed), 60)
    jobs = [replace(one, user="grace") if others and one.id % others == 0 else one for one in jobs]
    begin = observe([one for one in jobs if one.submit_s <= NOW_S], five_nodes(), rules, NOW_S)
    assert begin is not None
    start_s, end_s = played(jobs, begin, "fifo", rules)
    shadow, now_s = Shadow(begin, rules), NOW_S
    while now_s <= end_s.max():
        there = seen_at(now_s, jobs, start_s, end_s)
        shadow.watch(there, [one for one in there if one.state == "PENDING" and one.user == "ada"], now_s)
        now_s += STEP_S
        if now_s == NOW_S + 10 * STEP_S:
            early = shadow.waits(now_s)
            assert early.ours_s == pytest.approx(early.shadow_s), "jobs that still wait or run count up to now"
    waits, mine = shadow.waits(now_s), [one.user == "ada" for one in jobs]
    assert waits.jobs == sum(mine) and waits.shadow_s == pytest.approx(waits.ours_s)
    assert waits.ours_s == pytest.approx(np.mean((start_s - [one.submit_s for one in jobs])[mine]))


@pytest.mark.parametrize(("policy", "says"), [("fifo", False), ("worst", True)])
def test_the_watchdog_speaks_up_where_it_was_worse_for_long(policy: str, says: bool) -> None:
    rules = config()
    jobs = arrivals(np.random.default_rng(3), 60)
    first = observe([one for one in jobs if one.submit_s <= NOW_S], five_nodes(), rules, NOW_S)
    assert first is not None
    start_s, end_s = played(jobs, first, "fifo", rules)
    if policy == "worst":  # everybody waits three times as long
        submit_s = np.array([one.submit_s for one in jobs])
        start_s, end_s = start_s + 2 * (start_s - submit_s), end_s + 2 * (start_s - submit_s)
    watchdog, said, now_s = Watchdog(rules), "", NOW_S
    while now_s <= end_s.max() and not said:
        there = seen_at(now_s, jobs, start_s, end_s)
        waiting = [one for one in there if one.state == "PENDING"]
        said = watchdog.cycle(replace(first, now_s=now_s, ranked=tuple(waiting)), there)
        now_s += STEP_S
    assert bool(said) == says
    if says:
        assert "3 times in a row" in said and watchdog.last is not None
        assert watchdog.last.ours_s > 1.2 * watchdog.last.shadow_s


def test_a_watchdog_that_is_off_says_nothing_and_few_jobs_are_no_verdict() -> None:
    rules = config(enabled=False)
    view = observe([job(1)], five_nodes(), rules, NOW_S)
    assert view is not None and Watchdog(rules).cycle(view, []) == ""
    few = Watchdog(config(jobs=100))
    for k in range(10):
        assert few.cycle(replace(view, now_s=NOW_S + 1000 * k), [job(1)]) == ""
    assert few.worse == 0
