"""Algorithm 1 as printed: what its objective tells apart, what it cannot, and where it has no solution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from workload_cases import random_case

from rltune.placement.algorithm1 import Algorithm1, NodeStatus, algorithm1
from rltune.placement.instance import Outcome
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import chunk_table


def test_both_ways_score_the_same_where_cpus_are_plenty() -> None:
    """Two nodes of four: spread on the idle one or pack on the busy one, eight GPUs less two are countable either allocation."""
    status = {0: NodeStatus(4, 64, 256), 1: NodeStatus(2, 64, 256)}
    free = algorithm1({0: 2}, {1: 2}, status, 4, 1, 1)
    assert free[0] is Outcome.OPTIMAL
    assert free[2] == 6  # 2 of the allocation that is taken, and 4 other entries; the other allocation's 2 are 0
    for way1, way2 in (({0: 1}, {1: 1}), ({0: 3}, {1: 3})):
        one = algorithm1(way1, {}, status, 4, 1, 1)[2]
        two = algorithm1({}, way2, status, 4, 1, 1)[2]
        assert one == two == 8


def test_cpus_that_bind_tell_them_apart_without_looking_at_later_jobs() -> None:
    """Node 1's CPUs suffice for one GPU: packing there leaves nothing else countable on it, spreading leaves three of
    node 0 and one of node 1 less the one that must stay 0."""
    status = {0: NodeStatus(4, 4, 256), 1: NodeStatus(4, 1, 256)}
    outcome, allocation, value = algorithm1({0: 1}, {1: 1}, status, 4, 1, 1)
    # x = 0: node 0 all four, node 1 one of the entries 2–4: 5; x = 1: node 0 entries 2–4, node 1 its first: 4
    assert (outcome, allocation, value) == (Outcome.OPTIMAL, 1, 5)


def test_ways_that_share_a_node_have_no_solution_and_the_job_is_packed() -> None:
    status = {0: NodeStatus(4, 64, 256), 1: NodeStatus(4, 64, 256)}
    outcome, allocation, value = algorithm1({0: 1, 1: 1}, {0: 2}, status, 4, 1, 1)
    assert (outcome, allocation) == (Outcome.INFEASIBLE, 2) and math.isnan(value)


@pytest.mark.parametrize("policy", ["fifo", "saf"])
def test_a_run_goes_by_it_and_every_question_is_counted(policy: str) -> None:
    jobs, layout = random_case(5, n=40)
    n = len(jobs.gpus)
    placer = Algorithm1()
    state = simulate(jobs, layout, [0], [n], SchedulerConfig(policy, "easy", "algorithm1"), placer=placer, check=True)
    counts = placer.counts
    assert counts.asked == state.status["asked_place"][0] > 3
    assert counts.asked == counts.presolved + counts.calls
    assert counts.calls == len(counts.times_s) > 0
    assert (chunk_table(state).groupby("job")["gpus"].sum() == jobs.gpus).all()
    again = simulate(jobs, layout, [0], [n], SchedulerConfig(policy, "easy", "algorithm1"), placer=Algorithm1())
    np.testing.assert_array_equal(state.start, again.start)
