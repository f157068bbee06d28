"""Placement rules, localities, overruns, sticky heads, agreements: small schedules worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from twin_cases import in_order, played, run_engine, starts, where
from workload_cases import cluster, compiled, group, simple

from rltune.simulator.config import SchedulerConfig

ONE_NODE = cluster([group(1, 4)])
TWO_NODES = cluster([group(2, 4)])
THREE_NODES = cluster([group(3, 4)])


def test_exclusive_jobs_have_their_nodes_to_themselves() -> None:
    case = simple(TWO_NODES, (0, 100, 1), (0, 50, 1), (1, 10, 1), (2, 10, 6))
    assert starts(case, placement="exclusive") == [0, 0, 50, 100]
    assert where(case, placement="exclusive") == [{0: 1}, {1: 1}, {1: 1}, {0: 4, 1: 2}]
    assert starts(case, placement="best_fit") == [0, 0, 1, 11]


def test_backfilling_beside_an_exclusive_head_needs_a_whole_node() -> None:
    """The head is to take nodes 0 and 1 at 100 (the first on node 0 has ended); node 2 stays another's until 500."""
    jobs = [(0, 100, 1), (0, 30, 1), (0, 500, 1), (1, 100, 8), (2, 69, 1), (2, 70, 1), (40, 60, 1)]
    # at 30 node 1 is idle: the job of 69 s ends at 99, then nothing is idle before 100, and the head takes both
    assert starts(simple(THREE_NODES, *jobs), "fifo", "easy", "exclusive") == [0, 0, 0, 100, 30, 200, 200]


@pytest.mark.parametrize(
    ("locality", "third", "fourth"), [("strict", 100, 100), ("plus_one", 1, 61), ("any", 1, 61), ("worth_it", 1, 61)]
)
def test_a_split_job_runs_longer(locality: str, third: float, fourth: float) -> None:
    """One GPU is free on one node, two are on the other, and the jobs want three: 2 + 1, for 60 s and not 40 s."""
    case = simple(TWO_NODES, (0, 100, 3), (0, 100, 2), (1, 40, 3), (2, 10, 3))
    twin = played(case, locality=locality, multi_node_slowdown=1.5)
    assert in_order(twin.start) == [0, 0, third, fourth]
    assert in_order(twin.end)[2:] == ([140, 110] if locality == "strict" else [61, 76])
    assert twin.allocation[2] == ({0: 3} if locality == "strict" else {1: 2, 0: 1})


@pytest.mark.parametrize(("locality", "start"), [("strict", 100), ("plus_one", 100), ("any", 1), ("worth_it", 1)])
def test_how_many_nodes_more_than_strict_a_job_may_have(locality: str, start: float) -> None:
    """Four GPUs, strictly of one node; two are free on one node, one each on two others."""
    case = simple(THREE_NODES, (0, 100, 2), (0, 100, 3), (0, 100, 3), (1, 10, 4))
    assert starts(case, locality=locality) == [0, 0, 0, start]
    assert where(case, locality=locality)[3] == ({0: 2, 1: 1, 2: 1} if start == 1 else {0: 4})


def test_as_many_nodes_as_strict_are_no_split() -> None:
    """Strictly 4 + 1, here 3 + 2: not longer."""
    case = simple(TWO_NODES, (0, 100, 1), (0, 100, 1), (0, 100, 1), (1, 40, 5))
    twin = played(case, placement="spread", locality="plus_one", multi_node_slowdown=2.0)
    # free after the first three: 2 and 3
    assert (twin.allocation[3], twin.end[3]) == ({1: 3, 0: 2}, 41)


@pytest.mark.parametrize(("estimate", "start"), [(159, 20), (160, 100)])
def test_a_split_is_worth_it_where_it_costs_less_than_the_wait(estimate: float, start: float) -> None:
    """Half of the estimate is lost, 80 s of waiting won."""
    case = simple(TWO_NODES, (0, 100, 3), (0, 100, 2), (20, 10, 3, estimate))
    twin = played(case, locality="worth_it", multi_node_slowdown=1.5)
    assert (twin.start[2], twin.end[2]) == ((20, 35) if start == 20 else (100, 110))


def test_only_the_first_job_is_split_where_it_is_worth_it() -> None:
    """The first is too long to be split; the second would be short enough."""
    case = simple(TWO_NODES, (0, 100, 3), (0, 100, 2), (20, 160, 3), (20, 1, 3))
    assert starts(case, "fifo", "greedy", locality="worth_it", multi_node_slowdown=1.5) == [0, 0, 100, 100]
    assert starts(case, "sjf", "greedy", locality="worth_it", multi_node_slowdown=1.5) == [0, 0, 100, 20]
    assert starts(case, "fifo", "greedy", locality="any", multi_node_slowdown=1.5) == [0, 0, 20, 100]


def test_conservative_keeps_the_second_in_line_from_being_passed() -> None:
    """3 GPUs of 4 until 100; the head wants 3 from then until 200, the next all four until 300.

    EASY lets the fourth job have the GPU that the head leaves, until 303, whatever that does to the third.
    """
    case = simple(ONE_NODE, (0, 100, 3), (1, 100, 3), (2, 100, 4), (3, 300, 1), (4, 90, 1))
    assert starts(case, "fifo", "easy") == [0, 100, 303, 3, 200]
    assert starts(case, "fifo", "conservative") == [0, 100, 200, 300, 4]
    assert starts(case, "fifo", "none") == [0, 100, 200, 300, 300]
    assert starts(case, "fifo", "greedy") == [0, 100, 303, 3, 200]


def test_conservative_plans_again_when_a_job_ends_early() -> None:
    """The first ends at 50 and not at 100: the head starts then, and the third is to follow it at 150."""
    case = simple(ONE_NODE, (0, 50, 3, 100), (1, 100, 4), (2, 100, 2), (3, 99, 1, 99))
    assert starts(case, "fifo", "conservative") == [0, 50, 150, 150]
    case = simple(ONE_NODE, (0, 50, 3, 100), (1, 100, 4), (2, 100, 2), (3, 97, 1, 97))
    assert starts(case, "fifo", "conservative") == [0, 100, 200, 3]


@pytest.mark.parametrize(
    ("rules", "start"), [({}, 2), ({"locality": "any", "multi_node_slowdown": 2.0}, 200), ({"locality": "any"}, 2)]
)
def test_conservative_allows_for_a_split_where_one_is_possible(rules: dict, start: float) -> None:
    """The last would end at 98, split at 196: only without splits does it surely end before the head's turn."""
    case = simple(ONE_NODE, (0, 100, 3), (1, 100, 4), (2, 96, 1))
    assert starts(case, "fifo", "conservative", **rules) == [0, 100, start]


@pytest.mark.parametrize(("backfill", "double", "now"), [("easy", 150, 1010), ("conservative", 150, 1010)])
def test_a_job_past_its_estimate_ends_at_once_or_runs_as_long_again(backfill: str, double: float, now: float) -> None:
    """Estimated at 100 s, running for 1000 s: at 150 the head is expected to start at 300, or then and there."""
    case = simple(ONE_NODE, (0, 1000, 3, 100), (1, 10, 4), (150, 150, 1))
    assert starts(case, "fifo", backfill, overrun="double") == [0, 1000, double]
    assert starts(case, "fifo", backfill, overrun="now") == [0, 1000, now]


TWO_POOLS = cluster([group(1, 2)], [group(1, 2)])


def two_pools(*jobs: tuple[float, float, str]) -> tuple:
    """Jobs of two GPUs: (submit_s, run_s, pool)."""
    return compiled(TWO_POOLS, [{"submit_s": s, "run_s": r, "gpus": 2, "vc": vc} for s, r, vc in jobs])


@pytest.mark.parametrize(
    ("backfill", "reranked", "sticky"), [("none", 2, 100), ("greedy", 2, 2), ("easy", 2, 2), ("conservative", 2, 2)]
)
def test_a_sticky_head_holds_up_every_pool(backfill: str, reranked: float, sticky: float) -> None:
    """The last job's pool is idle; the reservation in the other pool does not bind it."""
    case = two_pools((0, 100, "a"), (1, 100, "a"), (2, 1000, "b"))
    assert starts(case, "fifo", backfill) == [0, 100, reranked]
    assert starts(case, "fifo", backfill, sticky_head=True) == [0, 100, sticky]


def test_a_sticky_head_stays_head() -> None:
    """A shorter job comes while it waits; and a better job of the other pool, which is idle."""
    case = two_pools((0, 100, "a"), (1, 50, "a"), (2, 10, "a"), (3, 5, "b"))
    assert starts(case, "sjf") == [0, 110, 100, 3]
    assert starts(case, "sjf", sticky_head=True) == [0, 100, 150, 100]
    assert starts(case, "sjf", "easy", sticky_head=True) == [0, 100, 150, 3]


@pytest.mark.parametrize(("sticky_head", "expected"), [(False, [0, 100, 41, 71, 1]), (True, [0, 100, 61, 41, 1])])
def test_behind_a_kept_head_the_base_policy_rules(sticky_head: bool, expected: list[float]) -> None:
    """A GPU is free beside the first job. The ranking is: the head (both GPUs), the last job, the third, the fourth.

    So the last starts at 1; when it ends at 41 it is the third by the ranking, the shorter fourth by the base policy.
    """
    case = simple(cluster([group(1, 2)]), (0, 100, 1), (1, 10, 2), (1, 30, 1), (1, 20, 1), (1, 40, 1))
    order = np.array([0.0, 1.0, 3.0, 4.0, 2.0])
    scheduler = SchedulerConfig("sjf", "greedy", sticky_head=sticky_head)
    state = run_engine(*case, [0], [5], scheduler, visible=256, taste=lambda now, rows: order[rows])
    assert state.start[0].tolist() == expected


def test_agreements_come_first_by_the_base_policy() -> None:
    rows = [{"run_s": run, "gpus": 4, "sla": sla} for run, sla in ((10.0, False), (30.0, True), (20.0, True))]
    assert starts(compiled(ONE_NODE, rows), "fifo") == [50, 0, 30]
    assert starts(compiled(ONE_NODE, rows), "sjf") == [50, 20, 0]


def test_an_agreement_that_waits_is_a_head_like_any_other() -> None:
    """It comes last, cannot start, and blocks the ones before it; EASY lets the one pass that ends in time."""
    rows = [
        {"run_s": 100.0, "gpus": 3},
        {"submit_s": 2.0, "run_s": 50.0, "gpus": 1},
        {"submit_s": 2.0, "run_s": 99.0},
        {"submit_s": 2.0, "run_s": 10.0, "gpus": 4, "sla": True},
    ]
    assert starts(compiled(ONE_NODE, rows), "fifo", "none") == [0, 110, 110, 100]
    assert starts(compiled(ONE_NODE, rows), "fifo", "easy") == [0, 2, 110, 100]


@pytest.mark.parametrize("rule", ["first_fit", "best_fit", "spread"])
def test_sixteen_gpus_on_one_node_of_eight_and_four_of_four(rule: str) -> None:
    """Three nodes at least: it waits for the node of eight, though sixteen GPUs are free on the small ones."""
    case = simple(cluster([group(1, 8), group(4, 4)]), (0, 50, 8), (1, 100, 16), (2, 10, 4), (3, 10, 4))
    assert starts(case, placement=rule) == [0, 50, 50, 50]
    assert sorted(where(case, placement=rule)[1].values()) == [4, 4, 8]
    # on four small nodes, one more than strict, half as long again
    assert starts(case, placement=rule, locality="any", multi_node_slowdown=1.5) == [0, 1, 50, 50]
    case = simple(cluster([group(1, 8), group(4, 4)]), (0, 500, 8), (1, 100, 16), (2, 10, 4))
    assert starts(case, placement=rule, locality="any", multi_node_slowdown=1.5) == [0, 1, 151]
