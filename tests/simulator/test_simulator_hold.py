"""A driver that holds a queue back: nothing of it starts until the next instant, and nothing starves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from twin_cases import SILENT, Case, allocations, cases
from workload_cases import cluster, group, random_case, simple

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.reference import twin
from rltune.simulator.batch import Run, SchedulerConfig
from rltune.simulator.state import State

proof = settings.get_profile("proof")
fewer = settings(proof, max_examples=max(proof.max_examples // 4, 1))


def whim(now: float, rows: np.ndarray) -> bool:
    """Holds back more than half of the time, whatever the order of the jobs."""
    return (int(np.sum(rows)) * 5 + int(now)) % 7 < 4


def held_back(case: Case, alone: bool, holds=whim) -> State:
    """The engine, checked at every instant, its queues ranked by the case's taste and held back by ``holds``."""
    first, n = np.array(case.first), np.array(case.n)
    run = Run(
        case.jobs,
        case.layout,
        first,
        n,
        case.scheduler,
        visible=case.visible,
        check=True,
        alone=alone,
        silent=case.visible in SILENT,
    )
    while len(asking := run.advance()):
        for s in asking:
            rows, now = run.state.first[s] + run.state.queued_jobs(s), float(run.state.now[s])
            run.state.score[s, : len(rows)] = case.taste(now, rows)
            run.state.status["hold"][s] = holds(now, rows)
    return run.state


@fewer
@given(cases().filter(lambda case: case.visible is not None), st.booleans())
def test_engine_equals_twin_where_queues_are_held_back(case: Case, alone: bool) -> None:
    state = held_back(case, alone)
    for s, (first, n) in enumerate(zip(case.first, case.n, strict=True)):
        expected = twin.Twin(
            case.jobs,
            case.layout,
            first,
            n,
            case.scheduler,
            visible=case.visible or 0,
            alone=alone,
            silent=case.visible in SILENT,
            scores=lambda now, rows: case.taste(now, np.array(rows)).tolist(),
            holds=lambda now, rows: whim(now, np.array(rows)),
        )
        expected.play()
        assert state.start[s, :n].tolist() == [expected.start[j] for j in expected.rows], f"starts of sequence {s}"
        assert allocations(state, s) == [expected.allocation[j] for j in expected.rows], f"places of sequence {s}"


def two_jobs() -> tuple[Jobs, Layout]:
    """A GPU each on two GPUs, together; a third comes while the first runs, and a fourth later."""
    return simple(cluster([group(1, 2)]), (0, 10, 1), (0, 30, 1), (4, 10, 1), (20, 10, 1))


@pytest.mark.parametrize(("alone", "starts"), [(False, [0, 0, 10, 20]), (True, [0, 4, 10, 20])])
def test_a_queue_held_back_once_is_asked_again_at_the_next_event(alone: bool, starts: list[float]) -> None:
    jobs, layout = two_jobs()
    case = Case(jobs, layout, [0], [4], SchedulerConfig("fifo"), 256)
    state = held_back(case, alone, lambda now, rows: now == 0 and len(rows) == 1)
    assert state.start[0].tolist() == starts


@pytest.mark.parametrize("backfill", ["none", "greedy", "easy", "conservative"])
@pytest.mark.parametrize("pools", [1, 3])
def test_who_always_holds_back_starts_jobs_only_when_nothing_else_could_happen(backfill: str, pools: int) -> None:
    """A hold is without effect once all is over and nobody is to come, so that every job starts."""
    jobs, layout = random_case(5, n=40, pools=pools)
    jobs, n = jobs._replace(row=jobs.row.copy()), len(jobs.gpus)
    jobs.row["sla"] = False  # of those nobody is asked
    state = held_back(Case(jobs, layout, [0], [n], SchedulerConfig("sjf", backfill), 256), True, lambda now, rows: True)
    start, end = state.start[0], state.end[0]
    assert start.min() >= jobs.submit_s.max(), "every job starts, none before nobody is to come"
    for at in start:  # nothing was running just before
        assert not ((start < at) & (end > at)).any()
