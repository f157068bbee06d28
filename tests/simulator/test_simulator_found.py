"""A run taken up in its middle goes on as if it had never been laid down; what contradicts itself is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from random_cases import times
from twin_cases import Case, allocations, cases, run_engine
from workload_cases import cluster, group, simple

from rltune.cluster.free import CHUNK
from rltune.simulator.batch import SchedulerConfig
from rltune.simulator.found import ROOM, Found, resume
from rltune.simulator.state import State


def room_left(case: Case, held: list[dict[int, int]], rows: np.ndarray) -> np.ndarray:
    """What is free beside the running jobs, reckoned by hand [M] ROOM."""
    nodes, row = case.layout.nodes.row, case.jobs.row
    left = np.zeros(len(nodes), ROOM)
    left["gpus"], left["cpu"], left["mem"] = nodes["gpus"], nodes["cpu_milli"], nodes["mem_mb"]
    for job, places in zip(rows, held, strict=True):
        for m, gpus in places.items():
            cpu = row[job]["cpu_milli"] if row[job]["cpu_milli"] >= 0 else nodes[m]["share_cpu"]
            mem = row[job]["mem_mb"] if row[job]["mem_mb"] >= 0 else nodes[m]["share_mem"]
            whole = case.scheduler.placement == "exclusive"
            left["gpus"][m] = 0 if whole else left["gpus"][m] - gpus
            left["cpu"][m] = 0 if whole else left["cpu"][m] - gpus * cpu
            left["mem"][m] = 0 if whole else left["mem"][m] - gpus * mem
    return left


def laid_down(case: Case, state: State, now_s: float) -> tuple[Case, Found, np.ndarray]:
    """Sequence 0 before its decisions at an instant: (its jobs in the order of Found, it, their numbers)."""
    first, n = case.first[0], case.n[0]
    start, end = state.start[0, :n], state.end[0, :n]
    submit = case.jobs.submit_s[first : first + n]
    running = np.flatnonzero((start < now_s) & (end > now_s))
    running = running[np.argsort(start[running], kind="stable")]
    queued = np.flatnonzero((submit <= now_s) & ~(start < now_s))
    order = np.concatenate([running, queued, np.flatnonzero(submit > now_s)])
    held = [allocations(state, 0)[j] for j in running]
    jobs = case.jobs.take(first + order)
    chunks = np.array([(m, g) for places in held for m, g in places.items()], CHUNK)
    offsets = np.cumsum([0, *(len(places) for places in held)])
    found = Found(
        now_s, start[running], end[running], offsets, chunks, room_left(case, held, first + running), len(queued)
    )
    return replace(case, jobs=jobs), found, order


@times(0.5)
@given(
    cases().filter(
        lambda c: (
            c.visible is None
            and not c.scheduler.sticky_head
            and c.scheduler.interference_slowdown == 1.0
            and not c.scheduler.policy.startswith("multifactor")
        )
    ),
    st.floats(0, 1),
)
def test_a_run_taken_up_in_its_middle_goes_on_as_it_would_have(case: Case, share: float) -> None:
    state = run_engine(case.jobs, case.layout, case.first, case.n, case.scheduler)
    n = case.n[0]
    start, end = state.start[0, :n], state.end[0, :n]
    last = np.nanmax(start)
    times = np.unique(np.concatenate([start, end[end <= last], case.jobs.submit_s[case.first[0] :][:n]]))
    now_s = float(times[int(share * (len(times) - 1))])
    middle, found, order = laid_down(case, state, now_s)
    run = resume(middle.jobs, middle.layout, found, middle.scheduler)
    assert len(run.advance()) == 0
    assert run.state.start[0].tolist() == start[order].tolist()
    assert allocations(run.state, 0) == [allocations(state, 0)[j] for j in order]


TWO = cluster([group(2, 4)])


def one_running(room: list[tuple[int, int, int]], queued: int, node: int = 0) -> Found:
    """At 20 s: the first job has four GPUs of a node from 0 to 50 s, whatever its run time says; so much is free."""
    starts, ends, chunks = np.array([0.0]), np.array([50.0]), np.array([(node, 4)], CHUNK)
    return Found(20.0, starts, ends, np.array([0, 1]), chunks, np.array(room, ROOM), queued)


def test_who_starts_first_is_asked_of_the_driver_and_ends_are_those_said() -> None:
    jobs, layout = simple(TWO, (0, 10, 4), (5, 10, 4), (6, 10, 4))
    found = one_running([(0, 0, 0), (4, 10**6, 10**6)], 2)
    run = resume(jobs, layout, found, SchedulerConfig("fifo"), asks=True)
    assert run.advance().tolist() == [0] and run.state.queued_jobs(0).tolist() == [1, 2]
    run.state.score[0, :2] = [1.0, 0.0]
    while len(run.advance()):
        pass
    assert run.state.start[0].tolist() == [0.0, 30.0, 20.0] and run.state.end[0, 0] == 50.0


def test_what_is_neither_free_nor_a_jobs_stays_taken() -> None:
    jobs, layout = simple(TWO, (0, 10, 4), (5, 10, 4))
    found = one_running([(3, 10**6, 10**6), (0, 0, 0)], 1, node=1)  # one GPU of node 0 is somebody else's
    run = resume(jobs, layout, found, SchedulerConfig("fifo"))
    run.advance()
    assert run.state.start[0].tolist() == [0.0, 50.0] and allocations(run.state, 0)[1] == {1: 4}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"now_s": -1.0}, "start_s"),
        ({"end_s": np.array([19.0])}, "end_s"),
        ({"queued": 3}, "of 2 jobs"),
        ({"free": np.array([(4, 0, 0), (4, 0, 0)], ROOM)}, "node 0: found 4 GPUs in use and 4 free"),
        ({"now_s": 4.0, "end_s": np.array([9.0])}, "queued jobs"),
    ],
)
def test_contradictions_are_refused(change: dict, words: str) -> None:
    jobs, layout = simple(TWO, (0, 10, 4), (5, 10, 4))
    found = one_running([(0, 0, 0), (4, 0, 0)], 1)
    with pytest.raises(ValueError, match=words):
        resume(jobs, layout, found._replace(**change), SchedulerConfig("fifo"))
