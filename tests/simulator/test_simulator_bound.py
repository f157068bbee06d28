"""The lower bound is one: below every schedule, and equal to the best where nothing is given away."""

import itertools

import numpy as np
import pytest
from workload_cases import at_speeds, cluster, compiled, group, random_case, simple

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config.cells import TYPES
from rltune.policies import POLICIES
from rltune.reference import twin
from rltune.simulator.batch import simulate
from rltune.simulator.bound import Bound, lower_bound
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.metrics import job_table

ROUNDING = 1e-9
"""Relative to the wait; the bound itself is lowered by what rounding can add."""
CONVERGED = 0.005
"""What 300 steps may leave, relative, where the relaxation gives nothing away."""


def one_gpu(*jobs: tuple) -> tuple[Jobs, Layout]:
    """(submit_s, run_s) jobs of one GPU on a cluster of one GPU."""
    return simple(cluster([group(1, 1)]), *((submit, run, 1) for submit, run in jobs))


def bound(case: tuple[Jobs, Layout], **options: float) -> Bound:
    """Of all jobs of a case."""
    return lower_bound(*case, 0, len(case[0].gpus), **options)


def best_relaxed(jobs: Jobs, layout: Layout) -> float:
    """The least mean excess if nodes, CPUs and memory did not count: all orders, all choices of types.

    Some order is best if each job in turn takes the earliest time at which it fits among those before it.
    """
    nodes, total = layout.nodes, 0.0
    for pool in range(len(layout.pools)):
        mine = slice(nodes.pool_start[pool], nodes.pool_start[pool + 1])
        capacity = np.bincount(nodes.row["type"][mine], weights=nodes.gpus[mine], minlength=len(layout.types))
        rows = np.flatnonzero(jobs.pool == pool).tolist()
        kinds = [np.flatnonzero(jobs.cut["full"][j] >= 0).tolist() for j in rows]
        least = float("inf")
        for types in itertools.product(*kinds):
            on = dict(zip(rows, types, strict=True))
            for order in itertools.permutations(rows):
                least = min(least, _excess_in_order(jobs, capacity, on, order))
        total += least
    return total / len(jobs.gpus)


def _excess_in_order(jobs: Jobs, capacity: np.ndarray, on: dict[int, int], order: tuple[int, ...]) -> float:
    start: dict[int, float] = {}
    lasts = {j: float(jobs.run_s[j] * jobs.cut["slow"][j, on[j]]) for j in order}
    for j in order:
        rivals = [i for i in start if on[i] == on[j]]
        ends = [start[i] + lasts[i] for i in rivals]
        for begin in sorted([jobs.submit_s[j], *(e for e in ends if e > jobs.submit_s[j])]):
            # use is highest where a job starts
            times = [begin, *(start[i] for i in rivals if begin < start[i] < begin + lasts[j])]
            running = [[i for i, end in zip(rivals, ends, strict=True) if start[i] <= time < end] for time in times]
            if max(sum(jobs.gpus[here]) for here in running) + jobs.gpus[j] <= capacity[on[j]]:
                start[j] = float(begin)
                break
    return sum(start[j] - float(jobs.submit_s[j]) + lasts[j] - float(jobs.run_s[j]) for j in order)


def waits(jobs: Jobs, layout: Layout, policy: str) -> float:
    """Mean wait of the plain simulation."""
    starts = twin.run(jobs, layout, 0, len(jobs.gpus), SchedulerConfig(policy))
    return float((starts - jobs.submit_s).mean())


def of_types(kinds: str) -> tuple[Jobs, Layout]:
    """Jobs of 100 s that name these GPU types, on one GPU of each type."""
    rows = [{"gpu_type": kind} for kind in kinds.split()]
    return compiled(cluster([group(1, 1, "V"), group(1, 1, "K")]), rows)


RUNS = (50.0, 10.0, 30.0, 20.0, 100.0, 70.0)


@pytest.mark.parametrize(
    ("case", "mean_wait_s"),
    [
        # short first: the long one waits 10 s. Price 1 in the first 10 s, 0 after: each job costs 10, less 10 in all
        (one_gpu((0, 30), (0, 10)), 5),
        # one job at a time: shortest first
        *(
            (simple(cluster([group(1, n)]), *((0, run, n) for run in RUNS)), np.cumsum([0, *sorted(RUNS)[:-1]]).mean())
            for n in (1, 4)
        ),
        # without contention
        (simple(cluster([group(2, 2)]), (0, 10, 2), (0, 10, 2)), 0),
        (simple(cluster([group(2, 2)]), (0, 10, 4), (10, 5, 4), (15, 1, 1)), 0),
        # a job of two types takes either
        (of_types("V V"), 50),
        (of_types("V V|K"), 0),
        (of_types("V V V|K"), 100 / 3),
        (of_types("V|K V|K V|K"), 100 / 3),
    ],
)
def test_equals_the_best_schedule_where_nodes_do_not_matter(case, mean_wait_s):
    found = bound(case)
    assert found.wait_s <= mean_wait_s
    assert found.wait_s == pytest.approx(mean_wait_s, rel=CONVERGED)
    assert found.jct_s == pytest.approx(found.wait_s + case[0].run_s.mean())
    assert best_relaxed(*case) == pytest.approx(mean_wait_s)


def test_knows_the_future():
    """The long job could let the two short ones go first; a policy that cannot see them come starts it."""
    case = one_gpu((0, 1000), (1, 1), (3, 1))
    assert waits(*case, "sjf") == pytest.approx((999 + 998) / 3)
    assert best_relaxed(*case) == pytest.approx(4 / 3)
    assert 0.5 < bound(case).wait_s <= 4 / 3


def test_fragmentation_is_ignored():
    """Two GPUs are free, on different nodes: the third job waits, but not in the relaxation."""
    case = simple(cluster([group(2, 3)]), (0, 10, 2), (0, 10, 2), (0, 10, 2))
    assert waits(*case, "fifo") == pytest.approx(10 / 3)
    assert bound(case).wait_s == 0


def test_two_equal_pools_are_as_one():
    shape = [(0, 30), (0, 10), (5, 20), (8, 5)]
    rows = [{"submit_s": s, "run_s": r, "vc": vc} for s, r in shape for vc in "ab"]
    one, two = bound(one_gpu(*shape)), bound(compiled(cluster([group(1, 1)], [group(1, 1)]), rows))
    assert two.wait_s == pytest.approx(one.wait_s, rel=ROUNDING)
    assert two.iterations == one.iterations


def tiny(seed: int) -> tuple[Jobs, Layout]:
    """Up to five jobs with whole times that compete for few GPUs of one or two types in one or two pools."""
    rng = np.random.default_rng(seed)
    kinds_of = ["VK"[: rng.integers(1, 3)] for _ in range(1 + seed % 2)]
    pools = [[group(1, int(rng.integers(1, 5)), kind) for kind in kinds] for kinds in kinds_of]
    rows = []
    for _ in range(5):
        mine = int(rng.integers(len(pools)))
        kinds = [g["gpu_type"] for g in pools[mine]]
        rows.append(
            {
                "submit_s": float(rng.choice([0, 0, 1, 2, 5])),
                "run_s": float(rng.integers(1, 12)),
                "vc": "ab"[mine],
                "gpus": int(rng.integers(1, max(g["gpus"] for g in pools[mine]) + 1)),
                "gpu_type": "|".join(rng.permutation(kinds)[: rng.integers(1, len(kinds) + 1)]),
            }
        )
    rows[0] |= {"gpus": 1, "gpu_type": pools[0][0]["gpu_type"], "vc": "a"}
    return compiled(cluster(*pools), rows)


def at_different_speeds(case: tuple[Jobs, Layout], seed: int) -> tuple[Jobs, Layout]:
    """The same on types of which some are slower for some jobs."""
    slow = np.random.default_rng(seed).choice([1.0, 1.5, 2.0, 7.0], case[0].cut.shape)
    return at_speeds(case[0], slow), case[1]


def test_two_speeds():
    """The fast type takes one job after the other, the slow one is no better: each of the two pays for 10 s."""
    jobs, layout = compiled(cluster([group(1, 1, "V"), group(1, 1, "K")]), [{"run_s": 10.0}] * 2)
    found = bound((at_speeds(jobs, np.array([[1.0, 2.0]] * 2)), layout))
    assert found.wait_s == 0, "no job has to wait"
    assert found.jct_s == pytest.approx(15, rel=CONVERGED) and found.jct_s <= 15


@pytest.mark.parametrize("speeds", [False, True])
def test_never_above_the_best_relaxed_schedule_and_close_to_it(speeds):
    bounds, bests = [], []
    for seed in range(60):
        jobs, layout = at_different_speeds(tiny(seed), seed) if speeds else tiny(seed)
        best, run_s = best_relaxed(jobs, layout), jobs.run_s.mean()
        for options in ({}, {"grid": 1}, {"grid": 3, "iterations": 40}, {"reference_wait_s": best}):
            found = bound((jobs, layout), **options)
            assert found.jct_s <= (best + run_s) * (1 + ROUNDING), (seed, options)
            assert speeds or found.wait_s <= best * (1 + ROUNDING), (seed, options)
        bounds.append(bound((jobs, layout)).jct_s - run_s)
        bests.append(best)
    assert np.count_nonzero(bests) > 20
    assert sum(bounds) > 0.6 * sum(bests)


@pytest.mark.parametrize("seed", range(6))
def test_never_above_any_scheduler(seed):
    jobs, layout = random_case(seed, n=24)
    if seed % 2:
        jobs, layout = at_different_speeds((jobs, layout), seed)
    found, first, n = bound((jobs, layout)), np.array([0]), np.array([len(jobs.gpus)])
    schedulers = [SchedulerConfig(p, b) for p, b in itertools.product(POLICIES, ("none", "greedy", "easy"))]
    schedulers += [SchedulerConfig("saf", "conservative", types=types) for types in TYPES]
    for scheduler in schedulers:
        ran = job_table(jobs, simulate(jobs, layout, first, n, scheduler))
        assert found.wait_s <= ran["wait_s"].mean() * (1 + ROUNDING), scheduler
        assert found.jct_s <= ran["jct_s"].mean() * (1 + ROUNDING), scheduler


@pytest.mark.parametrize("seed", range(2))
def test_more_steps_are_never_worse(seed):
    case = random_case(seed, n=40)
    found = [bound(case, iterations=steps) for steps in (1, 2, 5, 20, 100, 400)]
    assert [b.wait_s for b in found] == sorted(b.wait_s for b in found)
    assert all(b.iterations <= steps for b, steps in zip(found, (1, 2, 5, 20, 100, 400), strict=True))


def test_only_the_jobs_of_the_sequence_count():
    """Those before and after do not, nor does when the sequence begins."""
    shape = [(0, 30), (0, 10), (5, 20)]
    alone = bound(one_gpu(*shape))
    jobs, layout = one_gpu((0, 9000), *((4096 + s, r) for s, r in shape), (4200, 7000))
    assert lower_bound(jobs, layout, 1, 3) == alone


@pytest.mark.parametrize(
    ("first", "n", "options", "message"),
    [
        (0, 0, {}, "1 or more"),
        (0, 2, {"iterations": 0}, "1 or more"),
        (0, 2, {"grid": 0}, "1 or more"),
        (-1, 2, {}, "not all among 2"),
        (1, 2, {}, "not all among 2"),
    ],
)
def test_wrong_arguments_are_refused(first, n, options, message):
    with pytest.raises(ValueError, match=message):
        lower_bound(*one_gpu((0, 1), (0, 1)), first, n, **options)


def test_job_that_fits_nowhere_is_refused():
    jobs, layout = one_gpu((0, 1), (0, 2))
    cut = jobs.cut.copy()
    cut["full"] = -1
    with pytest.raises(ValueError, match="job 0 fits no GPU type of pool a"):
        lower_bound(jobs._replace(cut=cut), layout, 0, 2)
