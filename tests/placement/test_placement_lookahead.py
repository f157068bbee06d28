"""Look-ahead placement: known optima, what it wins in a schedule, and what happens when it fails."""

import numpy as np
import pytest
import swiglpk as glp
from placement_enumeration import weighted
from workload_cases import cluster, compiled, group, simple

from rltune.cluster.free import Free, change
from rltune.config import ClusterConfig, LookaheadConfig
from rltune.placement.instance import Outcome
from rltune.placement.lookahead import Lookahead
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import chunk_table
from rltune.simulator.state import new_state

CONFIG = LookaheadConfig()


def answer(config: ClusterConfig, rows: list[dict], free: list[int], placer: Lookahead) -> list[tuple[int, int]]:
    """Where the first job goes on nodes with these GPUs (and their share of the rest) free."""
    jobs, layout = compiled(config, rows)
    options, node = SchedulerConfig("fifo", "none", "lookahead").options(), layout.nodes.row
    state = new_state(jobs, layout.nodes, [0], [len(rows)], options, top=placer.top)
    index, used = Free(*(column[0] for column in state.free)), node["gpus"] - free
    for m, taken in enumerate(zip(used, used * node["share_cpu"], used * node["share_mem"])):
        change(layout.nodes, index, m, *(-int(amount) for amount in taken))
    state.top[0, : len(rows)] = np.arange(len(rows))
    placer.place(jobs, layout, state, np.array([0]))
    return state.place[0, : state.status["place_len"][0]].tolist()


def test_the_looser_node_so_that_both_next_jobs_start():
    """Free 3 and 4; two GPUs now, then three, then two: the tighter node would leave one of them waiting.

    Both next jobs start (1 + 0.8); one whole node is touched (0.01) and two GPUs are left on it (0.02).
    """
    placer = Lookahead(CONFIG)
    rows = [{"gpus": 2}, {"gpus": 3}, {"gpus": 2}]
    assert answer(cluster([group(2, 4)]), rows, [3, 4], placer) == [(1, 2)]
    assert placer.counts.optimal == 1
    (solution,) = placer._memory.values()
    assert solution.objective == pytest.approx(1.8 - 0.01 - 0.02, abs=1e-9)
    # with the three-GPU job alone behind it, the tighter node is as good for it and better by its own terms
    assert answer(cluster([group(2, 4)]), rows[:2], [3, 4], placer) == [(0, 2)]
    assert placer.counts.presolved == 1


def test_whole_nodes_are_kept_where_nothing_else_tells_allocations_apart():
    """Only nodes of the pool's largest size are whole: 16 free against 8 free."""
    config = cluster([group(1, 16), group(1, 8)])
    strong = weighted({"whole_node": 1.0, "tightness": 0.0})
    assert answer(config, [{"gpus": 3}, {"gpus": 1}], [16, 8], Lookahead(strong)) == [(1, 3)]


def test_look_ahead_keeps_the_nodes_the_next_job_needs():
    """Two nodes with many CPUs, one with few; three GPUs now, then eight with many CPUs. best_fit sees three nodes that
    leave one GPU each, takes the first, and the next job waits for its end."""
    config = cluster([group(2, 4, cpus=64), group(1, 4, cpus=16)])
    jobs, layout = compiled(config, [{"gpus": 3, "cpus": 3.0}, {"gpus": 8, "cpus": 64.0}])
    blind = simulate(jobs, layout, [0], [2], SchedulerConfig("fifo", "none", "best_fit"))
    assert blind.start[0].tolist() == [0, 100]
    placer = Lookahead(CONFIG)
    state = simulate(jobs, layout, [0], [2], SchedulerConfig("fifo", "none", "lookahead"), placer=placer)
    assert state.start[0].tolist() == [0, 0]
    assert chunk_table(state)["node"][0] == 2
    assert state.status["asked_place"][0] == placer.counts.asked == 1


def test_types_are_kept_for_the_job_that_has_no_other():
    """Any type now, V100 next; by GPUs left the V100 node, listed first, is as good."""
    config = cluster([group(1, 4, "V100"), group(1, 4, "P100")])
    rows = [{"gpus": 4}, {"gpus": 4, "gpu_type": "V100"}]
    assert answer(config, rows, [4, 4], Lookahead(CONFIG)) == [(1, 4)]


@pytest.mark.parametrize("stage", ["glp_simplex", "glp_intopt"])
@pytest.mark.parametrize(
    ("code", "outcome"),
    [(glp.GLP_ETMLIM, Outcome.LIMIT), (glp.GLP_EFAIL, Outcome.FAILURE), (glp.GLP_ESING, Outcome.FAILURE)],
)
def test_what_glpk_returns_is_a_limit_or_a_failure(stage, code, outcome, monkeypatch):
    monkeypatch.setattr(glp, stage, lambda problem, parameters: code)
    placer = Lookahead(CONFIG)
    answer(cluster([group(2, 4)]), [{"gpus": 2}, {"gpus": 3}, {"gpus": 2}], [3, 4], placer)
    assert getattr(placer.counts, outcome.value) == 1


def test_memory_gives_the_same_answer_wherever_the_nodes_lie():
    placer = Lookahead(CONFIG)
    rows = [{"gpus": 2}, {"gpus": 3}, {"gpus": 2}]
    assert answer(cluster([group(4, 4)]), rows, [3, 4, 0, 0], placer) == [(1, 2)]
    assert answer(cluster([group(4, 4)]), rows, [0, 3, 0, 4], placer) == [(3, 2)]
    assert (placer.counts.optimal, placer.counts.cached) == (1, 1)


def test_it_looks_at_what_ends_soon():
    """Two nodes of four: three GPUs run for 60 s on the first, one for long on the second. A job of one GPU: best_fit
    takes the first node's last GPU, and then no node is whole when the next job, of four, could start; with a slot
    a minute from now it goes to the second node."""
    config = cluster([group(2, 4)])
    rows = [(0, 60, 3), (0, 10_000, 2), (1, 5000, 1), (1, 100, 4)]
    now = LookaheadConfig(jobs=4)
    soon = LookaheadConfig(jobs=4, slots=2, slot_s=60.0)
    starts = []
    for lookahead in (now, soon):
        jobs, layout = simple(config, *rows)
        placer = Lookahead(lookahead)
        state = simulate(jobs, layout, [0], [4], SchedulerConfig("fifo", "none", "lookahead"), placer=placer)
        starts.append(state.start[0].tolist())
        table = chunk_table(state).set_index("job")["node"]
        assert table[2] == (0 if lookahead is now else 1)
    assert starts == [[0, 0, 1, 5001], [0, 0, 1, 60]]
