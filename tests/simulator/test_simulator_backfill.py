"""Backfilling: small schedules worked out manually, where engine and twin agree."""

import numpy as np
import pytest
from twin_cases import played, starts
from workload_cases import at_speeds, cluster, compiled, group, simple

from rltune.simulator.batch import SchedulerConfig, simulate

ONE_NODE, TWO_NODES, THREE_NODES = (cluster([group(nodes, 4)]) for nodes in (1, 2, 3))


@pytest.mark.parametrize(
    ("backfill", "expected"),
    [
        # the second job needs the whole node and waits for the first to end at 100
        ("none", [0, 100, 200, 200, 200]),
        # the fourth job takes the GPU that the third releases at 52 and keeps it until 252
        ("greedy", [0, 252, 2, 52, 100]),
        # reserved for 100: the third (until 52) and the fifth (until 100) may go before, the fourth may not
        ("easy", [0, 100, 2, 200, 60]),
    ],
)
def test_backfill_rules_differ(backfill, expected):
    case = simple(ONE_NODE, (0, 100, 3), (1, 100, 4), (2, 50, 1), (3, 200, 1), (60, 40, 1))
    assert starts(case, backfill=backfill) == expected
    made = [(now, head, at) for now, head, at in played(case, backfill=backfill).reservations if head == 1]
    assert made == ([(now, 1, 100.0) for now in (1.0, 2.0, 3.0, 52.0, 60.0)] if backfill == "easy" else [])


def test_easy_lets_a_long_job_use_what_the_shadow_allocation_leaves():
    """The head is to take node 0 at 100; two GPUs of node 1 are nobody's."""
    jobs = [(0, 100, 4), (0, 1000, 2), (1, 100, 4), (2, 5000, 2), (3, 5000, 1)]
    assert starts(simple(TWO_NODES, *jobs), backfill="easy") == [0, 0, 100, 2, 200]


def test_shadow_allocation_sees_all_that_is_expected_to_end_at_the_reserved_time():
    """Both nodes are expected to be whole again at 100, so the head is to take the lower one.

    The last job may then keep the free GPU of the other for long. The job there ends at 90 in truth; had its node
    been reserved because its end is looked at first, the last job would have had to wait.
    """
    jobs = [(0, 100, 4, 100), (0, 90, 3, 100), (1, 100, 4, 100), (2, 300, 1, 300)]
    assert starts(simple(TWO_NODES, *jobs), backfill="easy") == [0, 0, 100, 2]


def test_backfilling_next_to_an_exclusive_head_needs_a_whole_node():
    """The head is to take nodes 0 and 1 at 100 (the first on node 0 has ended); node 2 stays another's until 500."""
    jobs = [(0, 100, 1), (0, 30, 1), (0, 500, 1), (1, 100, 8), (2, 69, 1), (2, 70, 1), (40, 60, 1)]
    # at 30 node 1 is idle: the job of 69 s ends at 99, then nothing is idle before 100, and the head takes both
    assert starts(simple(THREE_NODES, *jobs), "fifo", "easy", "exclusive") == [0, 0, 0, 100, 30, 200, 200]


def test_conservative_keeps_the_second_of_the_queue_from_being_passed():
    """3 GPUs of 4 until 100; the head wants 3 from then until 200, the next all four until 300.

    EASY lets the fourth job have the GPU that the head leaves, until 303, whatever that does to the third.
    """
    case = simple(ONE_NODE, (0, 100, 3), (1, 100, 3), (2, 100, 4), (3, 300, 1), (4, 90, 1))
    assert starts(case, "fifo", "easy") == [0, 100, 303, 3, 200]
    assert starts(case, "fifo", "conservative") == [0, 100, 200, 300, 4]
    assert starts(case, "fifo", "none") == [0, 100, 200, 300, 300]
    assert starts(case, "fifo", "greedy") == [0, 100, 303, 3, 200]


def test_conservative_plans_again_when_a_job_ends_early():
    """The first ends at 50 and not at 100: the head starts then, and the third is to follow it at 150."""
    case = simple(ONE_NODE, (0, 50, 3, 100), (1, 100, 4), (2, 100, 2), (3, 99, 1, 99))
    assert starts(case, "fifo", "conservative") == [0, 50, 150, 150]
    case = simple(ONE_NODE, (0, 50, 3, 100), (1, 100, 4), (2, 100, 2), (3, 97, 1, 97))
    assert starts(case, "fifo", "conservative") == [0, 100, 200, 3]


@pytest.mark.parametrize(
    ("rules", "start"), [({}, 2), ({"locality": "any", "multi_node_slowdown": 2.0}, 200), ({"locality": "any"}, 2)]
)
def test_conservative_allows_for_a_split_where_one_is_possible(rules, start):
    """The last would end at 98, split at 196: only without splits does it surely end before the head's turn. One of one GPU
    cannot be split."""
    case = simple(ONE_NODE, (0, 100, 2), (1, 100, 4), (2, 96, 2))
    assert starts(case, "fifo", "conservative", **rules) == [0, 100, start]
    case = simple(ONE_NODE, (0, 100, 3), (1, 100, 4), (2, 96, 1))
    assert starts(case, "fifo", "conservative", **rules) == [0, 100, 2]


def test_conservative_reserves_no_longer_than_the_job_runs_where_it_goes():
    """The fourth is reserved two GPUs of the fast type from 100 to 150, not to 200, as on the slow one; so the fifth is reserved
    all four at 170, when the third ends, and the last would delay it."""
    sizes = [(0, 1000, 2), (0, 100, 2), (0, 170, 1), (1, 50, 2), (1, 30, 4), (1, 180, 1)]
    jobs, layout = simple(cluster([group(1, 4), group(1, 2, "K80")]), *sizes)
    slow = np.ones((6, 2))
    slow[3, 1] = 2.0
    assert starts((at_speeds(jobs, slow), layout), "fifo", "conservative", types="any") == [0, 0, 0, 100, 170, 200]


@pytest.mark.parametrize("backfill", ["easy", "conservative"])
def test_a_job_past_its_estimate_ends_at_once_or_runs_as_long_again(backfill):
    """Estimated at 100 s, running for 1000 s: at 150 the head is expected to start at 300, or immediately."""
    case = simple(ONE_NODE, (0, 1000, 3, 100), (1, 10, 4), (150, 150, 1))
    assert starts(case, "fifo", backfill, overrun="double") == [0, 1000, 150]
    assert starts(case, "fifo", backfill, overrun="now") == [0, 1000, 1010]


def test_a_reservation_is_where_it_was_sought_though_another_type_was_tried_since():
    """A P100 runs a job 1.5 times as long. The first jobs leave 1, 1, 2, 4 and 4 GPUs free on the P100 nodes."""
    requests = [(0, 100, 12, "V100"), *((0, 500, gpus, "P100") for gpus in (3, 3, 2))]
    requests += [(1, 50, 12, None), (2, 50, 12, "V100"), (3, 200, 4, "P100")]
    names = ("submit_s", "run_s", "gpus", "gpu_type")
    jobs, layout = compiled(
        cluster([group(3, 4, "V100"), group(5, 4, "P100")]), [dict(zip(names, request)) for request in requests]
    )
    slow = np.tile([1.5 if name == "P100" else 1.0 for name in layout.types], (len(requests), 1))
    case = at_speeds(jobs, slow), layout
    assert starts(case, "fifo", "conservative", "best_fit", "plus_one", types="least")[-1] == 3


def test_easy_starts_a_job_that_is_quick_enough_though_its_estimate_is_not():
    """Its estimate, 100 s, is too long to end before the head starts; half of it is not."""
    jobs, layout = simple(cluster([group(1, 2)]), (0, 100, 1), (1, 50, 2), (2, 100, 1))
    assert starts((jobs, layout), "fifo", "easy") == [0, 100, 150]
    jobs.cut["slow"][2] = 0.5
    assert starts((jobs, layout), "fifo", "easy") == [0, 100, 2]


def test_an_estimate_without_an_end_is_waited_for():
    """It overflows on a type on which the job takes four times as long; the head starts when the job does end."""
    jobs, layout = simple(ONE_NODE, (0, 100, 4, 1e308), (1, 50, 4), (2, 10, 1))
    jobs.cut["slow"] = 4.0
    state = simulate(jobs, layout, [0], [3], SchedulerConfig("fifo", "easy"), check=True)
    assert state.start[0].tolist() == [0, 400, 600]
