"""The placement model's answers are optimal: against enumeration, other solvers and the unreduced program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from placement_compare import per_node, written
from placement_enumeration import Enumeration, weighted
from placement_questions import SCHEDULER, ask, empty_state, question
from workload_cases import cluster, compiled, group, random_case

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import LookaheadConfig
from rltune.placement import lookahead
from rltune.placement.agreement import resolve_sample
from rltune.placement.instance import Outcome
from rltune.placement.kernel import GlpkSolver
from rltune.placement.lookahead import Lookahead, reduce
from rltune.placement.model import CvxpySolver
from rltune.simulator.batch import simulate
from rltune.simulator.state import State

SMALL = LookaheadConfig(jobs=5)
# several weights, so that neither term always wins
WEIGHTS = (
    SMALL,
    weighted({"whole_node": 0.3, "tightness": 0.05, "rank_decay": 0.5}, jobs=5),
    weighted({"whole_node": 0.0, "tightness": 0.2, "rank_decay": 1.0}, jobs=5),
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


@pytest.mark.parametrize("weights", range(len(WEIGHTS)))
def test_solver_and_presolve_equal_enumeration(weights: int) -> None:
    """The answer is as good as the best; the solver's objective leaves out jobs out of the chosen one's reach."""
    config = WEIGHTS[weights]
    fast, exact, presolved, better = GlpkSolver(config), 0, 0, 0
    for jobs, layout, state in questions(200, config, begin=100_000 * (1 + weights)):
        oracle = Enumeration(jobs, layout, state, config, SCHEDULER)
        best = oracle.best()
        n, instance = reduce(jobs, layout, state, 0, config, always=True)
        if n:
            state.status["place_len"][0] = n
            presolved += 1
            assert oracle.value(written(state)) == pytest.approx(best, abs=1e-9)
        solution = fast.solve(instance)
        assert solution.outcome is Outcome.OPTIMAL and solution.objective <= best + 1e-6
        exact += solution.objective == pytest.approx(best, abs=1e-6)
        lookahead._write(state, 0, instance, solution)
        assert oracle.value(written(state)) == pytest.approx(best, abs=1e-6)
        better += min(oracle.values().values()) < best - 1e-6
    assert exact > 190 and 60 < presolved < 200 and better > 80, "the choice mattered"


def test_presolve_counts_what_the_job_takes_of_a_wholly_free_node() -> None:
    """CPUs cut the job in two chunks of two on whole V100 nodes; one P100 node holds it and is no whole node."""
    config = weighted({"whole_node": 0.5, "tightness": 0.01}, jobs=2)
    types = cluster([group(3, 4, "V100", cpus=8), group(1, 4, "P100", cpus=64)])
    jobs, layout = compiled(types, [{"gpus": 4, "cpus": 16.0}, {"gpus": 1, "cpus": 1.0}, {"gpus": 2, "cpus": 8.0}])
    state = empty_state(jobs, layout, config.jobs)  # nothing runs
    state.top[0] = [0, 1]
    assert Enumeration(jobs, layout, state, config, SCHEDULER).best() == pytest.approx(1 - 0.5)  # two V100 nodes cost 1
    state.status["place_len"][0], _ = reduce(jobs, layout, state, 0, config)
    if state.status["place_len"][0]:
        assert written(state) == ((3, 4),)


def test_solvers_agree_with_each_other_and_with_every_node_a_class_of_its_own() -> None:
    config = LookaheadConfig(jobs=8)
    rng = np.random.default_rng(5)
    types = cluster([group(8, 2, "P100"), group(6, 8, "P100", cpus=40), group(4, 4, "V100")])
    solvers = [GlpkSolver(config), CvxpySolver(config), CvxpySolver(config, "GLPK_MI")]
    compared = 0
    while compared < 10:
        rows = [
            {"gpus": int(rng.choice([1, 2, 3, 4, 6, 8, 12, 16])), "cpus": float(rng.choice([2, 8, 24]))}
            | ({"gpu_type": str(rng.choice(["P100", "V100"]))} if rng.random() < 0.5 else {})
            for _ in range(12)
        ]
        found = ask(*compiled(types, rows), config, rng)
        if found is None:
            continue
        jobs, layout, state = found
        _, instance = reduce(jobs, layout, state, 0, config, always=True)
        full = per_node(instance, Enumeration(jobs, layout, state, config, SCHEDULER))
        solutions = [*(solver.solve(instance) for solver in solvers), solvers[0].solve(full)]
        assert {s.outcome for s in solutions} == {Outcome.OPTIMAL}
        assert np.ptp([s.objective for s in solutions]) < 1e-5
        compared += 1


def test_a_sample_of_a_runs_questions_is_solved_again_with_the_same_objectives() -> None:
    """And a run with ``solver: cvxpy`` is answered as well: all questions, none by the fall-back."""
    jobs, layout = random_case(9, n=50)
    runs = []
    for solver in ("glpk", "cvxpy"):
        placer = Lookahead(LookaheadConfig(jobs=4, solver=solver), sample=6)
        scheduler = replace(SCHEDULER, interference_slowdown=1.5)  # questions of sharing nodes are not presolved
        simulate(jobs, layout, [0], [len(jobs.gpus)], scheduler, placer=placer, check=True)
        assert placer.counts.optimal == placer.counts.calls >= 6 == len(placer.kept)
        runs.append(placer)
    table = resolve_sample(runs[0], n=5, seed=3)
    assert len(table) == 5 and table["agree"].all() and (table[["glpk_ms", "cvxpy_ms"]] > 0).all(axis=None)
    assert (table["glpk"] - table["cvxpy"]).abs().max() < 1e-6
    assert resolve_sample(runs[0], n=5, seed=3)["glpk"].equals(table["glpk"]), "the same sample"
    assert resolve_sample(Lookahead(LookaheadConfig())).empty
