"""Orders, placements, localities, sticky heads, agreements, maximum waits: small schedules worked out manually."""

import numpy as np
import pytest
from twin_cases import in_order, played, run_engine, starts, where
from workload_cases import cluster, compiled, group, simple

from rltune.simulator.batch import SchedulerConfig, simulate

ONE_NODE, TWO_NODES, THREE_NODES = (cluster([group(nodes, 4)]) for nodes in (1, 2, 3))
TWO_POOLS = cluster([group(1, 2)], [group(1, 2)])


def test_exclusive_jobs_have_their_nodes_to_themselves():
    case = simple(TWO_NODES, (0, 100, 1), (0, 50, 1), (1, 10, 1), (2, 10, 6))
    assert starts(case, placement="exclusive") == [0, 0, 50, 100]
    assert where(case, placement="exclusive") == [{0: 1}, {1: 1}, {1: 1}, {0: 4, 1: 2}]
    assert starts(case, placement="best_fit") == [0, 0, 1, 11]


@pytest.mark.parametrize(
    ("locality", "third", "fourth"), [("strict", 100, 100), ("plus_one", 1, 61), ("any", 1, 61), ("worth_it", 1, 61)]
)
def test_a_split_job_runs_longer(locality, third, fourth):
    """One GPU is free on one node, two are on the other, and the jobs want three: 2 + 1, for 60 s and not 40 s."""
    case = simple(TWO_NODES, (0, 100, 3), (0, 100, 2), (1, 40, 3), (2, 10, 3))
    twin = played(case, locality=locality, multi_node_slowdown=1.5)
    assert in_order(twin.start) == [0, 0, third, fourth]
    assert in_order(twin.end)[2:] == ([140, 110] if locality == "strict" else [61, 76])
    assert twin.allocation[2] == ({0: 3} if locality == "strict" else {1: 2, 0: 1})


@pytest.mark.parametrize(("locality", "start"), [("strict", 100), ("plus_one", 100), ("any", 1), ("worth_it", 1)])
def test_how_many_nodes_more_than_strict_a_job_may_have(locality, start):
    """Four GPUs, strictly of one node; two are free on one node, one each on two others."""
    case = simple(THREE_NODES, (0, 100, 2), (0, 100, 3), (0, 100, 3), (1, 10, 4))
    assert starts(case, locality=locality) == [0, 0, 0, start]
    assert where(case, locality=locality)[3] == ({0: 2, 1: 1, 2: 1} if start == 1 else {0: 4})


def test_as_many_nodes_as_strict_are_no_split():
    """Strictly 4 + 1, here 3 + 2: not longer."""
    case = simple(TWO_NODES, (0, 100, 1), (0, 100, 1), (0, 100, 1), (1, 40, 5))
    twin = played(case, placement="spread", locality="plus_one", multi_node_slowdown=2.0)
    # free after the first three: 2 and 3
    assert (twin.allocation[3], twin.end[3]) == ({1: 3, 0: 2}, 41)


@pytest.mark.parametrize(("estimate", "start"), [(159, 20), (160, 100)])
def test_a_split_is_worth_it_where_it_costs_less_than_the_wait(estimate, start):
    """Half of the estimate is lost, 80 s of waiting won."""
    case = simple(TWO_NODES, (0, 100, 3), (0, 100, 2), (20, 10, 3, estimate))
    twin = played(case, locality="worth_it", multi_node_slowdown=1.5)
    assert (twin.start[2], twin.end[2]) == ((20, 35) if start == 20 else (100, 110))


def test_only_the_first_job_is_split_where_it_is_worth_it():
    """The first is too long to be split; the second would be short enough."""
    case = simple(TWO_NODES, (0, 100, 3), (0, 100, 2), (20, 160, 3), (20, 1, 3))
    assert starts(case, "fifo", "greedy", locality="worth_it", multi_node_slowdown=1.5) == [0, 0, 100, 100]
    assert starts(case, "sjf", "greedy", locality="worth_it", multi_node_slowdown=1.5) == [0, 0, 100, 20]
    assert starts(case, "fifo", "greedy", locality="any", multi_node_slowdown=1.5) == [0, 0, 20, 100]


def two_pools(*jobs: tuple[float, float, str]) -> tuple:
    """Jobs of two GPUs: (submit_s, run_s, pool)."""
    return compiled(TWO_POOLS, [{"submit_s": s, "run_s": r, "gpus": 2, "vc": vc} for s, r, vc in jobs])


@pytest.mark.parametrize(
    ("backfill", "reranked", "sticky"), [("none", 2, 100), ("greedy", 2, 2), ("easy", 2, 2), ("conservative", 2, 2)]
)
def test_a_sticky_head_holds_up_every_pool(backfill, reranked, sticky):
    """The last job's pool is idle; the reservation in the other pool does not bind it."""
    case = two_pools((0, 100, "a"), (1, 100, "a"), (2, 1000, "b"))
    assert starts(case, "fifo", backfill) == [0, 100, reranked]
    assert starts(case, "fifo", backfill, sticky_head=True) == [0, 100, sticky]


def test_a_sticky_head_stays_head():
    """A shorter job comes while it waits; and a better job of the other pool, which is idle."""
    case = two_pools((0, 100, "a"), (1, 50, "a"), (2, 10, "a"), (3, 5, "b"))
    assert starts(case, "sjf") == [0, 110, 100, 3]
    assert starts(case, "sjf", sticky_head=True) == [0, 100, 150, 100]
    assert starts(case, "sjf", "easy", sticky_head=True) == [0, 100, 150, 3]


@pytest.mark.parametrize(("sticky_head", "expected"), [(False, [0, 100, 41, 71, 1]), (True, [0, 100, 61, 41, 1])])
def test_behind_a_kept_head_the_base_policy_rules(sticky_head, expected):
    """A GPU is free next to the first job. The ranking is: the head (both GPUs), the last job, the third, the fourth.

    So the last starts at 1; when it ends at 41 it is the third by the ranking, the shorter fourth by the base policy.
    """
    case = simple(cluster([group(1, 2)]), (0, 100, 1), (1, 10, 2), (1, 30, 1), (1, 20, 1), (1, 40, 1))
    order = np.array([0.0, 1.0, 3.0, 4.0, 2.0])
    scheduler = SchedulerConfig("sjf", "greedy", sticky_head=sticky_head)
    state = run_engine(*case, [0], [5], scheduler, visible=256, scores=lambda now, rows: order[rows])
    assert state.start[0].tolist() == expected


def test_agreements_come_first_by_the_base_policy():
    rows = [{"run_s": run, "gpus": 4, "sla": sla} for run, sla in ((10.0, False), (30.0, True), (20.0, True))]
    assert starts(compiled(ONE_NODE, rows), "fifo") == [50, 0, 30]
    assert starts(compiled(ONE_NODE, rows), "sjf") == [50, 20, 0]


def test_an_agreement_that_waits_is_a_head_like_any_other():
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
def test_sixteen_gpus_on_one_node_of_eight_and_four_of_four(rule):
    """Three nodes at least: it waits for the node of eight, though sixteen GPUs are free on the small ones."""
    case = simple(cluster([group(1, 8), group(4, 4)]), (0, 50, 8), (1, 100, 16), (2, 10, 4), (3, 10, 4))
    assert starts(case, placement=rule) == [0, 50, 50, 50]
    assert sorted(where(case, placement=rule)[1].values()) == [4, 4, 8]
    # on four small nodes, one more than strict, half as long again
    assert starts(case, placement=rule, locality="any", multi_node_slowdown=1.5) == [0, 1, 50, 50]
    case = simple(cluster([group(1, 8), group(4, 4)]), (0, 500, 8), (1, 100, 16), (2, 10, 4))
    assert starts(case, placement=rule, locality="any", multi_node_slowdown=1.5) == [0, 1, 151]


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
def test_order_of_policies(policy, expected):
    """One job at a time: each needs the node's whole memory."""
    rows = [(10.0, 1), (30.0, 1), (10.0, 4), (20.0, 4), (10.0, 1)]
    case = compiled(ONE_NODE, [{"run_s": run, "gpus": gpus, "mem_gb": 128.0} for run, gpus in rows])
    assert starts(case, policy) == expected


def test_past_its_maximum_wait_a_job_goes_first():
    """A long job, behind short ones that keep coming: at 110 it has waited for more than 0.03 h, which is 108 s."""
    case = simple(ONE_NODE, (0, 10, 4), (0, 1000, 4), *((10 * k + 1, 10, 4) for k in range(30)))
    assert starts(case, "sjf")[1] == 310
    assert starts(case, "sjf", max_wait_h={1: 0.001, 8: 0.03})[1] == 110
    assert starts(case, "sjf", max_wait_h={4: 1.0})[1] == 310, "longer than it ever waits"


def test_behind_an_overdue_job_the_ranking_counts():
    """One job at a time, ranked in reverse: the first is overdue when the node is free, the others go as ranked."""
    case = simple(ONE_NODE, (0, 200, 4), (0, 10, 4), *((150 + k, 10, 4) for k in range(3)))
    jobs, layout = case
    scheduler = SchedulerConfig("fifo", max_wait_h={4: 0.05})
    backwards = run_engine(jobs, layout, [0], [5], scheduler, 256, lambda now, rows: -rows * 1.0)
    assert backwards.start[0].tolist() == [10, 0, 230, 220, 210]


def test_completions_come_before_arrivals():
    assert starts(simple(ONE_NODE, (0, 100, 3), (1, 10, 4), (100, 50, 1)), "fifo", "greedy") == [0, 100, 110]


def test_ties_go_by_submission_then_id():
    rows = [{"job_id": i, "gpus": 4, "run_s": 10.0} for i in ("c", "a", "b")]
    rows.append({"job_id": "0", "gpus": 4, "run_s": 10.0, "submit_s": 5.0})
    assert starts(compiled(ONE_NODE, rows), "sjf") == [0, 10, 20, 30]  # a, b, c, then the later one


def test_lookahead_needs_a_placer_and_others_take_none():
    jobs, layout = simple(ONE_NODE, (0, 100, 1))
    with pytest.raises(ValueError, match="needs placer"):
        simulate(jobs, layout, [0], [1], SchedulerConfig("fifo", "none", "lookahead"))


@pytest.mark.parametrize(
    ("names", "match"),
    [
        ({"policy": "lifo"}, "policy: found 'lifo', expected one of fifo, "),
        ({"backfill": "some"}, "backfill: found 'some', expected one of none, greedy, easy"),
        ({"placement": "worst_fit"}, "placement: found 'worst_fit', expected one of first_fit, "),
        ({"locality": "two"}, "locality: found 'two', expected one of strict, plus_one"),
        ({"overrun": "kill"}, "overrun: found 'kill', expected one of double, now"),
        ({"sticky_head": "job"}, "sticky_head: found 'job', expected one of False, True"),
        ({"multi_node_slowdown": 0.9}, "multi_node_slowdown: found 0.9, expected 1 to 100"),
        ({"multi_node_slowdown": float("nan")}, "multi_node_slowdown: found nan"),
        ({"interference_slowdown": float("inf")}, "interference_slowdown: found inf, expected 1"),
        *(({"max_wait_h": wrong}, "max_wait_h: found") for wrong in ({0: 1.0}, {1: 0.0}, {1: np.inf})),
        ({"placement": "algorithm1", "locality": "any"}, "found locality 'any', expected strict"),
        ({"types": "slowest"}, "types: found 'slowest', expected one of auto, any, fastest_free"),
        *(
            ({"backfill": "easy", "types": name}, f"types {name}: goes with backfill conservative")
            for name in ("least", "joint")
        ),
        (
            {"backfill": "conservative", "types": "allox", "locality": "any"},
            "allox: found locality 'any', expected strict",
        ),
        ({"placement": "lookahead", "types": "fastest_free"}, "types fastest_free: found placement 'lookahead'"),
        ({"gpu_price": -1.0}, "gpu_price: found -1.0, expected 0 to 100"),
    ],
)
def test_a_setting_names_what_it_does_not_know(names, match):
    with pytest.raises(ValueError, match=match):
        SchedulerConfig(**{"policy": "fifo", **names})
