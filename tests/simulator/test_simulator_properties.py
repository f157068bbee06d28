"""What must hold of any run: guarantees of backfilling, closed forms, and what results may not depend on."""

import heapq
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from twin_cases import BACKFILLS, PLACEMENTS, SETTINGS, cases, played, workloads
from workload_cases import cluster, group, random_cluster, random_rows, simple, table, with_rows

from rltune.cluster.fit import Jobs, compile_jobs, fit
from rltune.cluster.layout import Layout, build_layout
from rltune.config.cells import PLANNED_TYPES
from rltune.policies import CUSTOM, IDS, POLICIES, Facts, Queue, policy
from rltune.simulator.batch import SchedulerConfig, simulate

pytestmark = pytest.mark.usefixtures("forget")


def run(jobs: Jobs, layout: Layout, scheduler: SchedulerConfig) -> np.ndarray:
    """Starts of all jobs."""
    return simulate(jobs, layout, [0], [len(jobs.gpus)], scheduler, check=True).start[0]


ORDERS = st.sampled_from(["fifo", "sjf", "saf", "smallest", "f1"])


@given(workloads(), ORDERS, SETTINGS, st.sampled_from([1.0, 1.0, 1.5, 3.0]))
def test_easy_keeps_its_reservations(case, order, scheduler, factor):
    """With exact or too long estimates, under an order that does not change with time, a head starts no later than at
    its first reservation, unless a job arrives that goes before it. A sticky head: whatever arrives.

    Where co-located jobs slow each other down, a reservation is no guarantee: it does not foresee who will join whom. Nor is it where
    a job past its maximum wait takes the head's place.
    """
    jobs, layout = with_rows(case[0], estimate_s=factor * case[0].run_s), case[1]
    types = "any" if scheduler.types in PLANNED_TYPES else scheduler.types
    scheduler = replace(scheduler, policy=order, backfill="easy", interference_slowdown=1.0, max_wait_h={}, types=types)
    twin = played((jobs, layout), **vars(scheduler))

    last = max(twin.end.values())

    def key(j: int) -> tuple:
        return (not twin.sla[j], twin.score_now(j, last), twin.submit[j], j)

    for now, head, reserved in twin.reservations:
        start = twin.start[head]
        overtaken = not scheduler.sticky_head and any(
            now < twin.submit[j] <= start and twin.pool[j] == twin.pool[head] and key(j) < key(head) for j in twin.rows
        )
        assert overtaken or start <= reserved, (head, now, reserved, start)


@given(st.integers(1, 8), st.data())
def test_conservative_keeps_every_reservation(gpus, data):
    """One node, exact estimates, first come, first served: what comes later changes nothing for those before it."""
    times = st.sampled_from([0.0, 1.0, 7.0, 30.0, 100.0])
    rows, now = [], 0.0
    for _ in range(data.draw(st.sampled_from([3, 10, 25]))):
        now += data.draw(times)
        rows.append((now, data.draw(times) + 1, data.draw(st.integers(1, gpus))))
    config, scheduler = cluster([group(1, gpus)]), SchedulerConfig("fifo", "conservative")
    whole = run(*simple(config, *rows), scheduler)
    for k in range(1, len(rows)):
        assert run(*simple(config, *rows[:k]), scheduler).tolist() == whole[:k].tolist()


STEPS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 100), st.integers(1, 100)), min_size=1, max_size=60)


@given(st.integers(1, 6), st.booleans(), st.sampled_from(BACKFILLS), st.sampled_from(PLACEMENTS), STEPS)
def test_servers_that_are_alike_follow_the_recursion_of_kiefer_and_wolfowitz(
    servers, one_node, backfill, placement, steps
):
    """Jobs of one GPU, first come, first served: each takes the GPU that is free first, on whatever nodes they are."""
    if placement == "exclusive":
        one_node = False
    submit = np.cumsum([step for step, _, _ in steps]).astype(float)
    config = cluster([group(1, servers) if one_node else group(servers, 1)])
    jobs, layout = simple(config, *((at, run_s, 1, estimate_s) for at, (_, run_s, estimate_s) in zip(submit, steps)))
    free_at, expected = [0.0] * servers, []
    for at, (_, run_s, _) in zip(submit, steps):
        expected.append(max(float(at), heapq.heappop(free_at)))
        heapq.heappush(free_at, expected[-1] + run_s)
    assert run(jobs, layout, SchedulerConfig("fifo", backfill, placement)).tolist() == expected


@pytest.mark.parametrize("seed", range(6))
def test_neither_the_order_of_the_rows_nor_names_of_jobs_matter(seed):
    """Rows in any order, sorted only once fitted; ids renamed in their order. Pools are all known here."""
    rng = np.random.default_rng(seed)
    config = random_cluster(rng)
    jobs = table([{"submit_s": 0.0, "vc": "a"}, *random_rows(rng, config, 60)])
    renamed = jobs.assign(job_id=[f"x{7 * i:06d}" for i in range(len(jobs))])
    shuffled = jobs.sample(frac=1, random_state=seed).reset_index(drop=True)
    runs = []
    for frame in (jobs, renamed, shuffled):
        fitted = fit(frame, config)[0].sort_values(["submit_s", "job_id"], ignore_index=True)
        case = compile_jobs(fitted, fitted["requested_s"].to_numpy(), config), build_layout(config)
        runs.append([run(*case, SchedulerConfig(order, "easy", "spread")).tolist() for order in ("saf", "multifactor")])
    assert runs[0] == runs[1] == runs[2]


@given(cases(), st.sampled_from(["fifo", "sjf", "saf", "smallest", "wfp3", "unicep"]), st.sampled_from([2.0, 0.25]))
def test_the_unit_of_time_does_not_matter(case, order, factor):
    """A power of two scales every start exactly, under orders without logarithms of time."""
    scheduler = replace(case.scheduler, policy=order)
    times = {name: factor * case.jobs.row[name] for name in ("submit_s", "run_s", "estimate_s")}
    scaled = replace(scheduler, max_wait_h={n: h * factor for n, h in scheduler.max_wait_h.items()})
    starts = run(case.jobs, case.layout, scheduler)
    assert run(with_rows(case.jobs, **times), case.layout, scaled).tolist() == (starts * factor).tolist()


@given(cases(), st.sampled_from([name for name, built_in in POLICIES.items() if not built_in.fair]))
def test_a_custom_policy_like_a_built_in_one_gives_its_run(case, name):
    """Under every rule, behind a head that is kept as well."""
    scheduler = replace(case.scheduler, policy=name)

    @policy("mine")
    def mine(queue: Queue, now: float) -> np.ndarray:
        assert (np.diff(queue.row) > 0).all() and (queue.wait_s == now - queue.submit_s).all()
        facts = zip(queue.submit_s, queue.estimate_s, queue.gpus, queue.wait_s, strict=True)
        return np.array([POLICIES[name].score(Facts(*fact)) for fact in facts], float)

    custom = run(case.jobs, case.layout, replace(scheduler, policy="mine"))
    assert custom.tolist() == run(case.jobs, case.layout, scheduler).tolist()


@pytest.mark.parametrize(
    ("scores", "match"),
    [
        (lambda queue: queue.gpus[:-1], r"expected 2 numbers, one a queued job; found shape \(1,\)"),
        (lambda queue: 1.0, r"expected 2 numbers, one a queued job; found 1.0"),
        (lambda queue: queue.gpus[:, None], r"found shape \(2, 1\)"),
        (lambda queue: ["a"] * 2, r"found \['a', 'a'\]"),
        (lambda queue: None, "expected 2 numbers"),
        (lambda queue: [np.nan, 1.0], "1 of them are not a number"),
    ],
)
def test_a_custom_policy_that_does_not_score_every_job_is_refused(scores, match):
    jobs, layout = simple(cluster([group(1, 1)]), (0, 1, 1), (0, 1, 1))
    policy("broken")(lambda queue, now: scores(queue))
    with pytest.raises(ValueError, match=f"policy 'broken': .*{match}"):
        simulate(jobs, layout, [0], [2], SchedulerConfig("broken"))


def test_a_custom_policy_has_a_new_name_and_is_no_base():
    for name in ("", "Mine", "my policy", "1st", "a-b"):
        with pytest.raises(ValueError, match="policy name: found .*, expected lower-case letters"):
            policy(name)
    for name in IDS:
        with pytest.raises(ValueError, match="is built in"):
            policy(name)
    jobs, layout = simple(cluster([group(1, 1)]), (0, 1, 1))
    policy("mine")(lambda queue, now: queue.submit_s)
    with pytest.raises(ValueError, match="cannot be the base of a ranker"):
        simulate(jobs, layout, [0], [1], SchedulerConfig("mine"), lambda state, asking: None)
    CUSTOM.clear()
    with pytest.raises(ValueError, match="policy: found 'mine'"):
        SchedulerConfig("mine")
