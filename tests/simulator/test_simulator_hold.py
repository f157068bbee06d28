"""A driver that holds a queue back: nothing of it starts until the next instant, and nothing starves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from random_cases import times
from twin_cases import BACKFILLS, Case, assert_same, cases, run_engine
from workload_cases import cluster, group, random_case, simple

from rltune.simulator.batch import SchedulerConfig


def whim(now: float, rows: np.ndarray) -> bool:
    """Holds back more than half of the time, whatever the order of the jobs."""
    return (int(np.sum(rows)) * 5 + int(now)) % 7 < 4


@times(0.5)
@given(cases().filter(lambda case: case.visible is not None), st.booleans())
def test_engine_equals_twin_where_queues_are_held_back(case: Case, alone: bool) -> None:
    assert_same(case, whim, alone)


@pytest.mark.parametrize(("alone", "starts"), [(False, [0, 0, 10, 20]), (True, [0, 4, 10, 20])])
def test_a_queue_held_back_once_is_asked_again_at_the_next_event(alone: bool, starts: list[float]) -> None:
    """A GPU each on two GPUs, two jobs together; a third comes while the first runs, and a fourth later."""
    jobs, layout = simple(cluster([group(1, 2)]), (0, 10, 1), (0, 30, 1), (4, 10, 1), (20, 10, 1))

    def first_alone(now: float, rows: np.ndarray) -> bool:
        return now == 0 and len(rows) == 1

    state = run_engine(jobs, layout, [0], [4], SchedulerConfig("fifo"), 256, lambda now, rows: rows, first_alone, alone)
    assert state.start[0].tolist() == starts


@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("pools", [1, 3])
def test_who_always_holds_back_starts_jobs_only_when_nothing_else_could_happen(backfill: str, pools: int) -> None:
    """A hold is without effect once all is over and nobody is to come, so that every job starts."""
    jobs, layout = random_case(5, n=40, pools=pools)
    jobs, n = jobs._replace(row=jobs.row.copy()), len(jobs.gpus)
    jobs.row["sla"] = False  # of those nobody is asked
    scheduler = SchedulerConfig("sjf", backfill)
    state = run_engine(jobs, layout, [0], [n], scheduler, 256, lambda now, rows: rows, lambda now, rows: True, True)
    start, end = state.start[0], state.end[0]
    assert start.min() >= jobs.submit_s.max(), "every job starts, none before nobody is to come"
    for at in start:  # nothing was running just before
        assert not ((start < at) & (end > at)).any()
