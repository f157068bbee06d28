"""Jobs that share a node slow one another down: cases worked out manually, where engine and twin agree."""

from collections import Counter

import numpy as np
import pytest
from twin_cases import BACKFILLS, LOCALITIES, allocations, in_order, played, run_engine, starts, where
from workload_cases import at_speeds, cluster, group, random_case, simple

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import job_table, sequence_table
from rltune.simulator.state import State

ONE_NODE, TWO_NODES = cluster([group(1, 4)]), cluster([group(2, 4)])


def ends(case: tuple, **rules: object) -> list[float]:
    """True ends of all jobs; engine and twin agree."""
    return list(map(float, in_order(played(case, **rules).end)))


def test_the_slowdown_changes_when_the_neighbour_comes_and_goes():
    """Alone until 40, co-located at half the speed until the other has ended, then alone again.

    The second has 30 s of work, all co-located: 60 s. Until 100 the first has done 40 + 60/2 = 70 of its 100.
    """
    case = simple(ONE_NODE, (0, 100, 2), (40, 30, 2))
    assert ends(case, interference_slowdown=2.0) == [130, 100]
    assert ends(case) == [100, 70]


def test_jobs_of_one_gpu_neither_slow_down_nor_are_slowed_down():
    case = simple(ONE_NODE, (0, 100, 2), (0, 100, 1), (0, 50, 1))
    assert ends(case, interference_slowdown=2.0) == [100, 100, 50]


def test_sharing_a_node_costs_the_same_however_many_share_it():
    """Three jobs of two GPUs on a node of eight; the last two end together, after which no job is left."""
    case = simple(cluster([group(1, 8)]), (0, 10, 2), (0, 20, 2), (0, 20, 2))
    assert ends(case, interference_slowdown=1.5) == [15, 30, 30]


def test_split_and_colocated_costs_as_much_as_the_larger_of_the_two():
    """2 + 1 GPUs next to a job of two: 1.5 times as long while it is there (until 15), 1.2 times afterwards."""
    case = simple(TWO_NODES, (0, 100, 3), (0, 10, 2), (0, 30, 3))
    assert where(case, locality="any")[2] == {1: 2, 0: 1}
    # the first shares a node with the third from the start on; no job is alone before the third has ended
    assert ends(case, locality="any", multi_node_slowdown=1.2, interference_slowdown=1.5)[1:] == [15, 45]
    # with the large job gone early, its 20 s of work left at 15 go at 1.2: 15 + 20 × 1.2
    case = simple(TWO_NODES, (0, 10, 3), (0, 10, 2), (0, 30, 3))
    assert ends(case, locality="any", multi_node_slowdown=1.2, interference_slowdown=1.5) == [15, 15, 39]
    assert ends(case, locality="any", multi_node_slowdown=2.0, interference_slowdown=1.5)[2] == 60


def test_the_end_expected_by_the_estimate_moves_too():
    """The head wants the whole node. Co-location makes the end of the first 130 and not 100, so a job of one GPU that ends
    at 125 does not delay it."""
    case = simple(cluster([group(1, 5)]), (0, 100, 2), (40, 30, 2), (45, 10, 5), (50, 75, 1))
    assert starts(case, "fifo", "easy", interference_slowdown=2.0) == [0, 40, 130, 50]
    assert starts(case, "fifo", "easy") == [0, 40, 100, 110]


def test_a_run_lasts_until_the_last_end():
    """Metrics see the true ends, also of jobs that speed up after the last start."""
    jobs, layout = simple(ONE_NODE, (0, 100, 2), (40, 30, 2))
    state = simulate(jobs, layout, [0], [2], SchedulerConfig("fifo", interference_slowdown=2.0))
    table = job_table(jobs, state)
    assert table["end_s"].tolist() == [130, 100] and table["wait_s"].tolist() == [0, 0]
    assert sequence_table(jobs, state, 4)["makespan_s"].tolist() == [130]


def test_isolating_best_fit_keeps_jobs_of_several_gpus_apart():
    """Tighter is the node with another job of several GPUs; the job of one GPU goes there all the same."""
    case = simple(cluster([group(3, 4)]), (0, 100, 2), (0, 100, 2), (0, 100, 1), (0, 100, 2))
    assert where(case, placement="best_fit") == [{0: 2}, {0: 2}, {1: 1}, {1: 2}]
    assert where(case, placement="isolating_best_fit") == [{0: 2}, {1: 2}, {0: 1}, {2: 2}]


def test_isolating_best_fit_keeps_apart_what_starts_at_one_time_behind_a_head():
    """The third job waits for all nodes; the last two start next to it, at the same time."""
    case = simple(cluster([group(3, 4)]), (0, 100, 4), (1, 50, 12), (1, 10, 2), (1, 10, 2))
    assert where(case, "fifo", "conservative", "isolating_best_fit")[2:] == [{1: 2}, {2: 2}]


def test_isolating_best_fit_chooses_the_type_without_sharing_first():
    case = simple(cluster([group(1, 4, "V100"), group(1, 8, "P100")]), (0, 100, 2), (0, 100, 2))
    assert where(case, placement="best_fit")[1] == {0: 2}
    assert where(case, placement="isolating_best_fit")[1] == {1: 2}


@pytest.mark.parametrize(
    ("run_s", "locality", "expected"),
    [
        (49, "worth_it", [60, 11]),
        (49, "soonest_end", [60, 11]),
        (150, "worth_it", [161, 11]),
        (150, "soonest_end", [60, 210]),
    ],
)
def test_soonest_end_reserves_for_a_split_that_is_still_to_come(run_s, locality, expected):
    """Four GPUs of one node are free at 300, three and two on two nodes already at 60, and a split loses 50 s.

    A job that holds the two beyond 60 may pass the head where its reservation is 300.
    """
    case = simple(TWO_NODES, (0, 60, 3), (0, 300, 1), (0, 300, 2), (10, 100, 4), (11, run_s, 2))
    assert starts(case, "fifo", "easy", locality=locality, multi_node_slowdown=1.5)[3:] == expected


def test_soonest_end_waits_where_a_split_would_end_later():
    """The same, but 300 s of work would lose 250 s of the 240 s won."""
    case = simple(TWO_NODES, (0, 60, 3), (0, 300, 1), (0, 300, 2), (10, 300, 4), (11, 150, 2))
    assert starts(case, "fifo", "easy", locality="soonest_end", multi_node_slowdown=1.0 + 250 / 300)[3:] == [300, 11]


def work_done(
    jobs: Jobs, layout: Layout, state: State, multi_node_slowdown: float, interference_slowdown: float
) -> tuple[np.ndarray, Counter]:
    """Seconds of work that each job gets done between its start and its end, added up moment by moment; and the
    number of jobs that were split, co-located, or both."""
    start, end, chunks_of = state.start[0], state.end[0], allocations(state, 0)
    moments = np.unique([start, end])
    done, count = np.zeros(len(start)), Counter()
    for j, nodes in enumerate(chunks_of):
        cut = jobs.cut[j, layout.nodes.row["type"][min(nodes)]]
        split = len(nodes) > cut["full"] + (cut["rem"] > 0)
        alone, slowed = multi_node_slowdown if split else 1.0, False
        multi_gpu = np.flatnonzero(jobs.gpus > 1) if jobs.gpus[j] > 1 else []
        neighbours = [i for i in multi_gpu if i != j and nodes.keys() & chunks_of[i]]
        mine = moments[(moments >= start[j]) & (moments <= end[j])]
        for now, then in zip(mine, mine[1:], strict=False):
            colocated = ((start[neighbours] <= now) & (end[neighbours] >= then)).any()
            done[j] += (then - now) / (max(alone, interference_slowdown) if colocated else alone)
            slowed |= bool(colocated)
        count.update({"split": int(split), "co-located": int(slowed), "both": int(split and slowed)})
    return done, count


@pytest.mark.parametrize("locality", LOCALITIES)
@pytest.mark.parametrize("backfill", BACKFILLS)
def test_all_work_is_done_when_a_job_ends(backfill, locality):
    """At each moment at the speed of the job's allocation and of its co-located jobs then; none on exclusive nodes."""
    count: Counter = Counter()
    for seed, placement in enumerate(["best_fit", "isolating_best_fit", "exclusive", "spread"] * 2):
        jobs, layout = random_case(seed, n=80, pools=1)
        rules = {"multi_node_slowdown": 1.3 if seed < 4 else 1.9, "interference_slowdown": 1.6}
        scheduler = SchedulerConfig("saf", backfill, placement, locality, sticky_head=seed % 3 == 0, **rules)
        state = run_engine(jobs, layout, [0], [len(jobs.gpus)], scheduler)
        done, met = work_done(jobs, layout, state, **rules)
        np.testing.assert_allclose(done, jobs.run_s, rtol=1e-9)
        assert placement != "exclusive" or met["co-located"] == 0
        count += met
    assert count["co-located"] > 60, count
    assert count["split"] == 0 if locality == "strict" else count["split"] > 3 and count["both"] > 0, count


def test_a_spread_that_is_faster_stays_so_next_to_others_where_sharing_costs_nothing():
    """The third job fits on two nodes only, where it runs three quarters as long, next to two others of several GPUs."""
    jobs, layout = simple(TWO_NODES, (0, 75, 3), (0, 75, 3), (1, 75, 2))
    jobs = at_speeds(jobs, np.ones((3, 1)), np.full((3, 1), 0.75))
    assert ends((jobs, layout), locality="any") == [100, 100, 76]
    assert ends((jobs, layout), locality="any", interference_slowdown=1.25)[2] > 76
