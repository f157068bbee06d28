"""The placement model's answers are optimal: against enumeration, a second solver and the unreduced model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from placement_oracle import Oracle, ask, empty_state, question
from workload_cases import cluster, compiled, group

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.ways import room
from rltune.config import LookaheadConfig
from rltune.placement import lookahead
from rltune.placement.glpk import GlpkModel
from rltune.placement.instance import Instance, build_instance
from rltune.placement.lookahead import Lookahead
from rltune.placement.model import LookaheadModel, arrays
from rltune.placement.outcome import Outcome, Solution
from rltune.placement.settle import settle
from rltune.simulator.state import State

SMALL = LookaheadConfig(jobs=5)
# several worths, so that neither term always wins
WORTHS = (
    SMALL,
    LookaheadConfig(jobs=5, whole_node=0.3, tightness=0.05, rank_decay=0.5),
    LookaheadConfig(jobs=5, whole_node=0.0, tightness=0.2, rank_decay=1.0),
)


def questions(number: int, config: LookaheadConfig, begin: int = 0) -> Iterator[tuple[Jobs, Layout, State]]:
    """So many random questions."""
    seed = begin
    while number:
        found = question(seed, config)
        seed += 1
        if found is not None:
            number -= 1
            yield found


def settled(
    jobs: Jobs, layout: Layout, state: State, config: LookaheadConfig
) -> tuple[int, np.ndarray, int, np.ndarray]:
    """(chunks of the settled way or 0, classes, their number, startable next jobs)."""
    table, startable = room(layout.nodes), np.empty(config.jobs, np.int64)
    terms = (config.whole_node, config.tightness, config.rank_decay)
    n_next, k, n = settle(layout.nodes, jobs, state, 0, *terms, config.slots, table, startable, False)
    return n, table, k, startable[:n_next]


def reduced(jobs: Jobs, layout: Layout, state: State, config: LookaheadConfig) -> Instance:
    _, table, k, startable = settled(jobs, layout, state, config)
    return build_instance(layout.nodes, jobs, state, 0, table, k, startable, config.slots, config.slot_s)


def per_node(jobs: Jobs, layout: Layout, state: State, instance: Instance) -> Instance:
    """The same problem with every node of the pool in it, each a class of its own."""
    here = layout.nodes.pool[jobs.pool[state.status["chosen"][0]]]
    m = np.arange(here["start"], here["stop"])
    node, free = layout.nodes.row[m], state.free.row[0, m]
    return instance._replace(
        type=node["type"],
        free=np.stack([free["gpus"], free["cpu"], free["mem"]], axis=-1)[:, None, :],
        share_cpu=node["cpu_milli"] // node["gpus"],
        share_mem=node["mem_mb"] // node["gpus"],
        whole=free["gpus"] == node["gpus"].max(),
        count=np.ones(len(m), np.int64),
        member=m,
        company=np.zeros(len(m), np.bool_),
        price_s=np.zeros(len(m)),
    )


@pytest.mark.parametrize("worth", range(len(WORTHS)))
def test_the_solver_equals_enumeration(worth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    config = WORTHS[worth]
    placer = Lookahead(config)
    solutions = []
    solution_of = placer._solution

    def remembered(instance: Instance) -> Solution:
        solutions.append(solution_of(instance))
        return solutions[-1]

    monkeypatch.setattr(placer, "_solution", remembered)
    monkeypatch.setattr(lookahead, "settle", lambda *a: (*settle(*a)[:2], 0))  # never answered without the solver
    better = 0
    for jobs, layout, state in questions(120, config, begin=1000 * worth):
        oracle = Oracle(jobs, layout, state, config)
        best = oracle.best()
        placer.place(jobs, layout, state, np.array([0]))
        assert solutions[-1].objective == pytest.approx(best, abs=1e-6)
        assert oracle.value(oracle.written(state)) == pytest.approx(best, abs=1e-6)
        better += min(oracle.value(w) for w in oracle.whole(oracle.chosen, oracle.free)) < best - 1e-6
    assert placer.counts.optimal + placer.counts.cached == placer.counts.asked == 120
    assert better > 50  # the choice mattered


@pytest.mark.parametrize("worth", range(len(WORTHS)))
def test_what_is_settled_without_the_solver_is_optimal(worth: int) -> None:
    config = WORTHS[worth]
    answered = 0
    for jobs, layout, state in questions(200, config, begin=10_000 + 1000 * worth):
        n, *_ = settled(jobs, layout, state, config)
        if n:
            answered += 1
            state.status["place_len"][0] = n
            oracle = Oracle(jobs, layout, state, config)
            assert oracle.value(oracle.written(state)) == pytest.approx(oracle.best(), abs=1e-9)
    assert 60 < answered < 200


def test_settling_counts_what_the_job_takes_of_a_wholly_free_node() -> None:
    """CPUs cut the job in two chunks of two on whole V100 nodes; one P100 node holds it and is no whole node."""
    config = LookaheadConfig(jobs=2, whole_node=0.5, tightness=0.01)
    types = cluster([group(3, 4, "V100", cpus=8), group(1, 4, "P100", cpus=64)])
    jobs, layout = compiled(types, [{"gpus": 4, "cpus": 16.0}, {"gpus": 1, "cpus": 1.0}, {"gpus": 2, "cpus": 8.0}])
    state = empty_state(jobs, layout, config.jobs)  # nothing runs
    state.top[0] = [0, 1]
    oracle = Oracle(jobs, layout, state, config)
    assert oracle.best() == pytest.approx(1 - 0.5)  # on the P100 node; two whole V100 nodes would cost 1
    state.status["place_len"][0], *_ = settled(jobs, layout, state, config)
    if state.status["place_len"][0]:
        assert oracle.written(state) == ((3, 4),)


def test_classes_lose_nothing_against_one_node_each_and_both_models_agree() -> None:
    readable, fast = LookaheadModel(SMALL.jobs, 12, 8), GlpkModel(SMALL)
    for jobs, layout, state in questions(60, SMALL, begin=20_000):
        small = reduced(jobs, layout, state, SMALL)
        full = per_node(jobs, layout, state, small)
        solutions = [readable.solve(arrays(i, SMALL), 10) for i in (small, full)] + [
            fast.solve(i) for i in (small, full)
        ]
        assert {s.outcome for s in solutions} == {Outcome.OPTIMAL}
        assert np.ptp([s.objective for s in solutions]) < 1e-6


@pytest.mark.parametrize("worth", range(len(WORTHS)))
def test_the_fast_model_equals_enumeration_on_many_questions(worth: int) -> None:
    """Its answer is a way of the job, worth as much as the best; and what it says, less what jobs out of the chosen
    one's reach are worth, which the model leaves out."""
    config = WORTHS[worth]
    fast, exact = GlpkModel(config), 0
    for jobs, layout, state in questions(400, config, begin=100_000 * (1 + worth)):
        instance = reduced(jobs, layout, state, config)
        solution, oracle = fast.solve(instance), Oracle(jobs, layout, state, config)
        assert solution.outcome is Outcome.OPTIMAL
        best = oracle.best()
        assert solution.objective <= best + 1e-6
        exact += solution.objective == pytest.approx(best, abs=1e-6)
        lookahead._write(state, 0, instance, solution)
        assert oracle.value(oracle.written(state)) == pytest.approx(best, abs=1e-6)
    assert exact > 380


def test_three_solvers_agree_on_larger_questions() -> None:
    config = LookaheadConfig(jobs=8)
    rng = np.random.default_rng(5)
    types = cluster([group(8, 2, "P100"), group(6, 8, "P100", cpus=40), group(4, 4, "V100")])
    model, fast = LookaheadModel(config.jobs, 16, 24), GlpkModel(config)
    compared = 0
    while compared < 12:
        rows = [
            {"gpus": int(rng.choice([1, 2, 3, 4, 6, 8, 12, 16])), "cpus": float(rng.choice([2, 8, 24]))}
            | ({"gpu_type": str(rng.choice(["P100", "V100"]))} if rng.random() < 0.5 else {})
            for _ in range(12)
        ]
        found = ask(*compiled(types, rows), config, rng)
        if found is None:
            continue
        jobs, layout, state = found
        instance = reduced(jobs, layout, state, config)
        a = arrays(instance, config)
        if a.may_rem.shape[0] > 16 or a.may_rem.shape[1] > 24:
            continue
        solutions = [model.solve(a, 20), model.solve(a, 20, solver="HIGHS"), fast.solve(instance)]
        assert {s.outcome for s in solutions} == {Outcome.OPTIMAL}
        assert np.ptp([s.objective for s in solutions]) < 1e-5
        compared += 1
