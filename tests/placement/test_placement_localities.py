"""Look-ahead where jobs may be split, wait, or slow one another down: known answers, and where nothing answers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from placement_enumeration import weighted
from workload_cases import at_speeds, cluster, compiled, group, random_case, simple

from rltune.config import LookaheadConfig
from rltune.config.cells import LOCALITIES
from rltune.placement import lookahead
from rltune.placement.counts import Counts
from rltune.placement.instance import Outcome, Solution
from rltune.placement.kernel import GlpkSolver
from rltune.placement.lookahead import Lookahead
from rltune.placement.placers import placer_of
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.config import ALWAYS, ASKED
from rltune.simulator.metrics import chunk_table
from rltune.simulator.state import State

# known answers


def run(scheduler: SchedulerConfig, config: LookaheadConfig, nodes: int, *rows: tuple) -> tuple[State, Lookahead]:
    """Jobs on so many nodes of four GPUs, and the placer that was asked."""
    jobs, layout = simple(cluster([group(nodes, 4)]), *rows)
    placer = Lookahead(config)
    return simulate(jobs, layout, [0], [len(rows)], scheduler, placer=placer, check=True), placer


def chunks_of(state: State, job: int) -> list[tuple[int, int]]:
    """(Node, GPUs) of a job, by node."""
    chunks = chunk_table(state)
    return sorted(chunks[chunks["job"] == job][["node", "gpus"]].itertuples(index=False, name=None))


@pytest.mark.parametrize("placement", ["best_fit", "lookahead", "lookahead_cvxpy"])
@pytest.mark.parametrize(
    ("slow", "spread", "changes", "waits"),
    [
        (1.0, 1.0, {"multi_node_slowdown": 1.5}, False),
        (2.0, 1.0, {"multi_node_slowdown": 1.5}, True),
        (1.0, 1.0, {"multi_node_slowdown": 2.5}, True),
        (1.0, 1.0, {"multi_node_slowdown": 1.5, "split_worth": 10.0}, True),
        (1.0, 3.0, {}, True),
    ],
)
def test_what_a_split_costs_is_the_same_for_every_placement(placement, slow, spread, changes, waits):
    """A job of 100 s could run on two nodes at 30 s, or on one 90 s later."""
    rows = [(0, 20, 1), (0, 1000, 1), (0, 20, 1), (0, 120, 1), (30, 100, 2), (31, 50, 1)]
    jobs, layout = simple(cluster([group(2, 2)]), *rows)
    jobs = at_speeds(jobs, np.ones(jobs.cut.shape), np.full(jobs.cut.shape, spread))
    jobs.cut["slow"][4] = slow
    rules, placer = SchedulerConfig("fifo", "none", placement, "worth_it", **changes), None
    if placement != "best_fit":
        placer = placer_of(placement, LookaheadConfig())
    state = simulate(jobs, layout, [0], [len(rows)], rules, placer=placer)
    assert state.start[0, 4] == (120 if waits else 30)


@pytest.mark.parametrize("sticky_head", [False, True])
def test_a_head_that_is_kept_is_placed_with_regard_to_the_one_job_behind_it(sticky_head):
    """On the node with few CPUs job 2 leaves job 3 the other one; by best fit that would have to wait for it."""
    jobs, layout = compiled(
        cluster([group(1, 2, "A", 16), group(1, 3, "A", 3)]),
        [
            {"submit_s": 0.0, "run_s": 10.0, "gpus": 2, "cpus": 10.0},
            {"submit_s": 0.0, "run_s": 10.0, "gpus": 3, "cpus": 3.0},
            {"submit_s": 1.0, "run_s": 100.0, "gpus": 2, "cpus": 2.0},
            {"submit_s": 2.0, "run_s": 100.0, "gpus": 2, "cpus": 12.0},
        ],
    )
    rules = SchedulerConfig("fifo", "none", "lookahead", sticky_head=sticky_head)
    state = simulate(jobs, layout, [0], [4], rules, placer=Lookahead(LookaheadConfig()), check=True)
    assert state.start[0].tolist() == [0, 0, 10, 10]


def last_objective(placer: Lookahead) -> float:
    """What the solver said of the last problem that it saw for the first time."""
    return list(placer._memory.values())[-1].objective


class Nowhere:
    """A placer that leaves every job where best_fit put it."""

    top, counts = 1, Counts()

    def place(self, jobs: Any, layout: Any, state: State, asking: np.ndarray) -> None: ...


@pytest.mark.parametrize("locality", ["worth_it", "soonest_end"])
def test_a_placer_that_writes_nothing_splits_no_more_than_best_fit(locality, monkeypatch):
    """The third job would run 1000 s longer split, and waits for 9."""
    monkeypatch.setitem(ASKED, "nowhere", ALWAYS)
    jobs, layout = simple(cluster([group(2, 4)]), (0, 10, 2), (0, 10, 3), (1, 1000, 3))
    ends = []
    for placement, placer in (("best_fit", None), ("nowhere", Nowhere())):
        scheduler = SchedulerConfig("fifo", "none", placement, locality, multi_node_slowdown=2.0)
        ends.append(simulate(jobs, layout, [0], [3], scheduler, placer=placer).end[0].tolist())
    assert ends[0] == ends[1] == [10.0, 10.0, 1010.0]


WORTH_IT = SchedulerConfig("fifo", "none", "lookahead", "worth_it", multi_node_slowdown=1.2)


def test_a_split_that_costs_less_than_waiting():
    """Three of four GPUs of both nodes are taken until 1000. Two GPUs for 100 s: split they take 20 s longer, as a whole
    they wait for 999 s. Of the horizon, twice that, the split loses 20 s; no GPU is left next to its chunks."""
    state, placer = run(WORTH_IT, LookaheadConfig(), 2, (0, 1000, 3), (0, 1000, 3), (1, 100, 2))
    assert state.start[0].tolist() == [0, 0, 1] and state.end[0, 2] == 121
    assert chunks_of(state, 2) == [(0, 1), (1, 1)]
    assert last_objective(placer) == pytest.approx(-20 / (2 * 999))


def test_waiting_that_costs_less_than_a_split():
    """The same job ten seconds before the others end."""
    state, placer = run(WORTH_IT, LookaheadConfig(), 2, (0, 1000, 3), (0, 1000, 3), (990, 100, 2))
    assert state.start[0].tolist() == [0, 0, 1000] and state.end[0, 2] == 1100
    assert last_objective(placer) == pytest.approx(-10 / 20)


@pytest.mark.parametrize(("others", "start_s"), [(0.2, 970), (1.0, 1000)])
def test_waiting_for_the_sake_of_the_next_job(others, start_s):
    """Thirty seconds before they end, with a job of one GPU queued behind: split, the job loses 20 s and the next one
    starts in the second slot, waiting it loses 30 s and the next one starts now. Of 60 s, w = ``others``: w/2 − 1/3
    against w − 1/2."""
    config = weighted({"others": others})
    rows = [(0, 1000, 3), (0, 1000, 3), (970, 100, 2), (970, 10, 1)]
    scheduler = SchedulerConfig("fifo", "greedy", "lookahead", "worth_it", multi_node_slowdown=1.2)
    state, placer = run(scheduler, config, 2, *rows)
    assert state.start[0, 2] == start_s
    assert next(iter(placer._memory.values())).objective == pytest.approx(max(others / 2 - 1 / 3, others - 1 / 2))


def test_a_split_leaves_the_node_that_the_next_job_needs():
    """3, 2 and 2 GPUs free at 10, four asked for, then three. The most room first would take the three and one more;
    two and two leave them. Nothing is left next to either chunk; split, the job loses 30 s of 600."""
    config = LookaheadConfig()
    rows = [(0, 900, 1), (0, 10, 3), (0, 900, 2), (0, 10, 2), (0, 900, 2), (0, 10, 2), (11, 100, 4), (11, 100, 3)]
    state, placer = run(SchedulerConfig("fifo", "none", "lookahead", "any", multi_node_slowdown=1.3), config, 3, *rows)
    assert chunks_of(state, 6) == [(1, 2), (2, 2)] and chunks_of(state, 7) == [(0, 3)]
    assert state.start[0, 6:].tolist() == [11, 11] and state.end[0, 6] == 141
    assert last_objective(placer) == pytest.approx(1 - 30 / 600)
    jobs, layout = simple(cluster([group(3, 4)]), *rows)
    rule = simulate(jobs, layout, [0], [8], SchedulerConfig("fifo", "none", "best_fit", "any", multi_node_slowdown=1.3))
    assert chunks_of(rule, 6) == [(0, 3), (1, 1)] and chunks_of(rule, 7) == [(1, 1), (2, 2)]  # the next is split, too


@pytest.mark.parametrize(("next_gpus", "node", "objective"), [(1, 1, 1 - 0.01 - 0.02), (4, 0, 1 - (50 + 50) / 600)])
def test_a_node_is_shared_where_it_lets_the_next_job_start(next_gpus, node, objective):
    """Two of four GPUs of the first node are in use by one job. Two more for 100 s: both jobs would take half as long
    again for 100 s, 50 s each of 600 s. It goes to the idle node (a whole one, two GPUs left), unless the next job
    needs that one."""
    scheduler = SchedulerConfig("fifo", "none", "lookahead", interference_slowdown=1.5)
    state, placer = run(scheduler, LookaheadConfig(), 2, (0, 1000, 2), (1, 100, 2), (1, 100, next_gpus))
    assert chunks_of(state, 1) == [(node, 2)]
    assert last_objective(placer) == pytest.approx(objective)
    assert state.start[0].tolist() == [0, 1, 1] and state.end[0, 1] == (151 if node == 0 else 101)


def test_the_neighbour_that_loses_least():
    """Two nodes of eight: two GPUs of the first are in use by a job that ends soon, three of the second by one that does
    not. The price is what the other job has left, 9 s or all 100 s of the job's own estimate, times a half; the second
    node, where fewer GPUs are left, would be best_fit's."""
    jobs, layout = simple(cluster([group(2, 8)]), (0, 10, 2), (0, 900, 3), (1, 100, 2), (1, 5, 2))
    placer = Lookahead(weighted({"tightness": 0.0}))
    scheduler = SchedulerConfig("fifo", "none", "lookahead", interference_slowdown=1.5)
    state = simulate(jobs, layout, [0], [4], scheduler, placer=placer, check=True)
    assert [chunks_of(state, job) for job in range(3)] == [[(0, 2)], [(1, 3)], [(0, 2)]]
    assert last_objective(placer) == pytest.approx(1 - (9 * 0.5 + 50) / 600)


@pytest.mark.parametrize("kinds", ["K80", "V100|K80"])
def test_a_slow_gpu_type_is_no_slowdown_by_neighbours(kinds):
    """The job of two GPUs on K80s takes 10,000 s there, whether it might have had a faster type or not: the price of being
    its neighbour is the same, and more than letting the last job start now is worth."""
    speeds = {"V100": 4.0, "K80": 1.0}
    config = cluster([group(1, 4), group(2, 4, "K80")], gpu_types="match", speeds=speeds, recorded_on="K80")
    rows = [
        {"gpus": 4, "run_s": 20_000.0, "gpu_type": "V100"},
        {"submit_s": 1.0, "gpus": 2, "run_s": 10_000.0, "gpu_type": kinds},
        {"submit_s": 2.0, "gpus": 2, "run_s": 800.0, "gpu_type": "K80"},
        {"submit_s": 2.0, "gpus": 4, "run_s": 800.0, "gpu_type": "K80"},
    ]
    jobs, layout = compiled(config, rows)
    scheduler = SchedulerConfig("fifo", "none", "lookahead", interference_slowdown=1.5)
    placer = Lookahead(LookaheadConfig())
    state = simulate(jobs, layout, [0], [4], scheduler, placer=placer, check=True)
    assert [chunks_of(state, job) for job in range(3)] == [[(0, 4)], [(1, 2)], [(2, 2)]]
    assert state.end[0, 1] == 10_001


# where nothing answers, and whole runs


@pytest.mark.parametrize("outcome", [Outcome.INFEASIBLE, Outcome.LIMIT, Outcome.FAILURE])
def test_what_is_not_answered_is_placed_by_the_simulators_own_rule(outcome, monkeypatch):
    """Split where the seconds it loses are fewer than those to its reserved start, waiting else; every outcome counted."""
    monkeypatch.setattr(GlpkSolver, "solve", lambda self, instance: Solution(outcome, float("nan")))
    for rows, start_s in (((1, 100, 2), 1), ((990, 100, 2), 1000)):
        state, placer = run(WORTH_IT, LookaheadConfig(), 2, (0, 1000, 3), (0, 1000, 3), rows)
        assert state.start[0, 2] == start_s
        assert getattr(placer.counts, outcome.value) == placer.counts.calls > 0
        assert placer.counts.optimal == placer.counts.cached == 0


@pytest.mark.parametrize("interference_slowdown", [1.0, 1.5])
@pytest.mark.parametrize("backfill", ["none", "greedy", "easy", "conservative"])
@pytest.mark.parametrize("locality", LOCALITIES)
def test_a_run_without_any_answer_is_the_rules_run(locality, backfill, interference_slowdown, monkeypatch):
    """With and without a sticky head."""
    monkeypatch.setattr(GlpkSolver, "solve", lambda self, instance: Solution(Outcome.FAILURE, float("nan")))
    real = lookahead.presolve
    monkeypatch.setattr(lookahead, "presolve", lambda *a: (*real(*a)[:2], 0))
    rule, failures = "best_fit" if interference_slowdown == 1 else "isolating_best_fit", 0
    for seed in range(2):
        jobs, layout = random_case(seed, n=60)
        slowdowns = {"multi_node_slowdown": 1.3, "interference_slowdown": interference_slowdown}
        by_rule = SchedulerConfig("saf", backfill, rule, locality, sticky_head=seed % 2 == 1, **slowdowns)
        placer, asks = Lookahead(LookaheadConfig()), replace(by_rule, placement="lookahead")
        state = simulate(jobs, layout, [0], [len(jobs.gpus)], asks, placer=placer)
        expected = simulate(jobs, layout, [0], [len(jobs.gpus)], by_rule)
        np.testing.assert_array_equal(state.start, expected.start)
        assert chunk_table(state).equals(chunk_table(expected))
        failures += placer.counts.failure
    assert failures > 0
