"""Small schedules worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from twin_cases import run_engine, starts
from workload_cases import cluster, compiled, group, simple

from rltune.simulator.batch import SchedulerConfig, simulate

ONE_NODE = cluster([group(1, 4)])


@pytest.mark.parametrize(
    ("backfill", "expected"),
    [
        # the second job needs the whole node and waits for the first to end at 100
        ("none", [0, 100, 200, 200, 200]),
        # the fourth job takes the GPU that the third gives back at 52 and keeps it until 252
        ("greedy", [0, 252, 2, 52, 100]),
        # reserved for 100: the third (until 52) and the fifth (until 100) may go before, the fourth may not
        ("easy", [0, 100, 2, 200, 60]),
    ],
)
def test_backfill_rules_differ_as_worked_out_by_hand(backfill: str, expected: list[float]) -> None:
    case = simple(ONE_NODE, (0, 100, 3), (1, 100, 4), (2, 50, 1), (3, 200, 1), (60, 40, 1))
    assert starts(case, backfill=backfill) == expected


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("fifo", [0, 10, 40, 50, 70]),
        ("sjf", [0, 50, 10, 30, 20]),
        ("saf", [0, 20, 50, 60, 10]),
        # all arrive at 0, so log10(rt) · n alone decides: 1, 1.48, 4, 5.2, 1
        ("f1", [0, 20, 50, 60, 10]),
        ("smallest", [0, 10, 50, 60, 40]),
        # wt / (log2(n + 1) · rt) at 10: 1/3, 0.43, 0.22, 1 (fifth); at 20: 2/3, 0.86 (third), 0.43; at 30: 1 (second),
        # 0.65
        ("unicep", [0, 30, 20, 60, 10]),
        # (wt / rt)³ · n at 10: 0.04, 4, 0.5, 1 (third job); at 20: 0.3, 4, 8 (fifth); at 30: 1, 13.5 (fourth)
        ("wfp3", [0, 50, 10, 30, 20]),
    ],
)
def test_order_of_policies(policy: str, expected: list[float]) -> None:
    """One job at a time: each needs the node's whole memory."""
    rows = [(10.0, 1), (30.0, 1), (10.0, 4), (20.0, 4), (10.0, 1)]
    case = compiled(ONE_NODE, [{"run_s": run, "gpus": gpus, "mem_gb": 128.0} for run, gpus in rows])
    assert starts(case, policy) == expected


def test_past_its_maximum_wait_a_job_goes_first() -> None:
    """A long job, behind short ones that keep coming: at 110 it has waited for more than 0.03 h, which is 108 s."""
    case = simple(ONE_NODE, (0, 10, 4), (0, 1000, 4), *((10 * k + 1, 10, 4) for k in range(30)))
    assert starts(case, "sjf")[1] == 310
    assert starts(case, "sjf", max_wait_h={1: 0.001, 8: 0.03})[1] == 110
    assert starts(case, "sjf", max_wait_h={4: 1.0})[1] == 310, "longer than it ever waits"


def test_behind_an_overdue_job_the_ranking_counts() -> None:
    """One job at a time, ranked in reverse: the first is overdue when the node is free, the others go as ranked."""
    case = simple(ONE_NODE, (0, 200, 4), (0, 10, 4), *((150 + k, 10, 4) for k in range(3)))
    jobs, layout = case
    scheduler = SchedulerConfig("fifo", max_wait_h={4: 0.05})
    backwards = run_engine(jobs, layout, [0], [5], scheduler, 256, lambda now, rows: -rows * 1.0)
    assert backwards.start[0].tolist() == [10, 0, 230, 220, 210]


def test_completions_come_before_arrivals() -> None:
    assert starts(simple(ONE_NODE, (0, 100, 4), (100, 10, 4))) == [0, 100]


def test_ties_go_by_submission_then_id() -> None:
    rows = [{"job_id": i, "gpus": 4, "run_s": 10.0} for i in ("c", "a", "b")]
    rows.append({"job_id": "0", "gpus": 4, "run_s": 10.0, "submit_s": 5.0})
    assert starts(compiled(ONE_NODE, rows), "sjf") == [0, 10, 20, 30]  # a, b, c, then the later one


def test_easy_lets_a_long_job_use_what_the_shadow_allocation_leaves() -> None:
    """The head is to take node 0 at 100; two GPUs of node 1 are nobody's."""
    config = cluster([group(2, 4)])
    jobs = [(0, 100, 4), (0, 1000, 2), (1, 100, 4), (2, 5000, 2), (3, 5000, 1)]
    assert starts(simple(config, *jobs), backfill="easy") == [0, 0, 100, 2, 200]


def test_shadow_allocation_sees_all_that_is_expected_to_end_at_the_reserved_time() -> None:
    """Both nodes are expected to be whole again at 100, so the head is to take the lower one.

    The last job may then keep the free GPU of the other for long. The job there ends at 90 in truth; had its node
    been reserved because its end is looked at first, the last job would have had to wait.
    """
    jobs = [(0, 100, 4, 100), (0, 90, 3, 100), (1, 100, 4, 100), (2, 300, 1, 300)]
    assert starts(simple(cluster([group(2, 4)]), *jobs), backfill="easy") == [0, 0, 100, 2]


def test_lookahead_needs_a_placer_and_others_take_none() -> None:
    jobs, layout = simple(ONE_NODE, (0, 100, 1))
    with pytest.raises(ValueError, match="needs placer"):
        simulate(jobs, layout, [0], [1], SchedulerConfig("fifo", "none", "lookahead"))


@pytest.mark.parametrize(
    ("names", "match"),
    [
        ({"policy": "lifo"}, "policy: found 'lifo', expected one of fifo, "),
        ({"policy": "fifo", "backfill": "some"}, "backfill: found 'some', expected one of none, greedy, easy"),
        ({"policy": "fifo", "placement": "worst_fit"}, "placement: found 'worst_fit', expected one of first_fit, "),
        ({"policy": "fifo", "locality": "two"}, "locality: found 'two', expected one of strict, plus_one"),
        ({"policy": "fifo", "overrun": "kill"}, "overrun: found 'kill', expected one of double, now"),
        ({"policy": "fifo", "sticky_head": "job"}, "sticky_head: found 'job', expected one of False, True"),
        ({"policy": "fifo", "multi_node_slowdown": 0.9}, "multi_node_slowdown: found 0.9, expected 1 to 100"),
        ({"policy": "fifo", "multi_node_slowdown": float("nan")}, "multi_node_slowdown: found nan"),
        ({"policy": "fifo", "interference_slowdown": float("inf")}, "interference_slowdown: found inf, expected 1"),
        *(
            ({"policy": "fifo", "max_wait_h": wrong}, "max_wait_h: found")
            for wrong in ({0: 1.0}, {1: 0.0}, {1: np.inf})
        ),
        ({"policy": "fifo", "placement": "algorithm1", "locality": "any"}, "found locality 'any', expected strict"),
    ],
)
def test_a_setting_names_what_it_does_not_know(names: dict, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        SchedulerConfig(**names)
