"""Algorithm 1 as printed: what its objective tells apart, what it cannot, and where it has no solution."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from hypothesis.extra.numpy import arrays
from workload_cases import cluster, compiled, group, random_case

from rltune.placement.algorithm1 import Algorithm1, choose, countable, solve
from rltune.placement.instance import Outcome
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import chunk_table

NODE = np.dtype([("gpus", int), ("cpu", int), ("mem", int)])
GPUS = 4


def most(*nodes: tuple[int, int, int]) -> np.ndarray:
    """GPUs that nodes of (free GPUs, CPUs, memory) can count, one CPU and one GB a GPU."""
    return countable(np.array(list(nodes), NODE), 1, 1, GPUS)


def ways(*gpus: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    return tuple(map(np.array, gpus))


def test_both_ways_score_the_same_where_cpus_are_plenty():
    """Two nodes of four: spread on the idle one or pack on the busy one, eight GPUs less two are countable either way."""
    plenty = most((4, 64, 256), (2, 64, 256))
    # 2 of the way that is taken, and 4 other entries; the other way's 2 are 0
    assert choose(*ways((2, 0), (0, 2)), plenty, GPUS) == (Outcome.OPTIMAL, 2, 6)
    for taken in (1, 3):
        one = choose(*ways((taken, 0), (0, 0)), plenty, GPUS)
        two = choose(*ways((0, 0), (0, taken)), plenty, GPUS)
        assert one[2] == two[2] == 8


def test_cpus_that_bind_tell_them_apart_without_looking_at_later_jobs():
    """Node 1's CPUs suffice for one GPU: packing there leaves nothing else countable on it, spreading leaves three of
    node 0 and one of node 1 less the one that must stay 0."""
    # x = 0: node 0 all four, node 1 one of the entries 2–4: 5; x = 1: node 0 entries 2–4, node 1 its first: 4
    assert choose(*ways((1, 0), (0, 1)), most((4, 4, 256), (4, 1, 256)), GPUS) == (Outcome.OPTIMAL, 1, 5)


def test_ways_that_share_a_node_have_no_solution_and_the_job_is_packed():
    outcome, selected, value = choose(*ways((1, 1), (2, 0)), most((4, 64, 256), (4, 64, 256)), GPUS)
    assert (outcome, selected) == (Outcome.INFEASIBLE, 2) and math.isnan(value)


def test_cpus_and_memory_bind_where_a_gpu_is_free():
    np.testing.assert_array_equal(most((4, 3, 2), (4, 0, 9), (0, 0, 0), (1, 9, 9)), [2, 0, GPUS, GPUS])


@given(
    arrays(bool, 4),
    arrays(int, 4, elements=st.integers(0, GPUS)),
    arrays(int, 4, elements=st.integers(0, GPUS)),
    st.data(),
)
def test_the_closed_form_is_what_a_solver_finds(first, gpus, limit, data):
    assume(gpus.any())
    way1, way2 = np.where(first, gpus, 0), np.where(first, 0, gpus)
    if data.draw(st.booleans()):
        limit = np.maximum(limit, gpus)  # at least one way can be taken
    ours, solver = choose(way1, way2, limit, GPUS), solve(way1, way2, limit, GPUS)
    assert ours[0] is solver[0]
    np.testing.assert_equal(ours[2], solver[2])
    sums = [
        np.minimum(limit, GPUS - other).sum() if (way <= limit).all() else -1
        for way, other in ((way1, way2), (way2, way1))
    ]
    assert ours[1] == (solver[1] if sums[0] != sums[1] else 2)


def test_in_a_run_the_nodes_of_the_jobs_own_pool_count():
    """As in the known answer: two nodes of four GPUs and four CPUs, a job of three CPUs on the second; the first pool,
    whose CPUs are plenty, would make it a tie."""
    config = cluster([group(2, 4)], [group(2, 4, cpus=4)])
    on = {"vc": "b", "run_s": 1000.0}
    rows = [{**on, "gpus": 4, "cpus": 1.0, "run_s": 10.0}, {**on, "cpus": 3.0}, {**on, "submit_s": 20.0, "cpus": 1.0}]
    jobs, layout = compiled(config, rows)
    nodes = {}
    for placement in ("best_fit", "algorithm1"):
        placer = Algorithm1() if placement == "algorithm1" else None
        state = simulate(jobs, layout, [0], [3], SchedulerConfig("fifo", "none", placement), placer=placer)
        nodes[placement] = chunk_table(state).set_index("job")["node"].tolist()
    assert nodes == {"best_fit": [2, 3, 3], "algorithm1": [2, 3, 2]}


@pytest.mark.parametrize("policy", ["fifo", "saf"])
def test_a_run_goes_by_it_and_every_question_is_counted(policy):
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
