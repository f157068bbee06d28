"""A run resumed from a snapshot goes on as the whole run does; a snapshot that contradicts itself is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from random_cases import times
from twin_cases import Case, allocations, cases, run_engine
from workload_cases import cluster, compiled, group, simple

from rltune.cluster.free import CHUNK
from rltune.policies import CUSTOM
from rltune.reference.placement import Placement
from rltune.simulator.batch import SchedulerConfig, Simulation, simulate
from rltune.simulator.snapshot import FREE_RESOURCES, Snapshot, could_start, resume
from rltune.simulator.state import State


def free_resources(case: Case, allocations_of: list[dict[int, int]], rows: np.ndarray) -> np.ndarray:
    """What the running jobs leave free [M] FREE_RESOURCES, by the plain-Python twin."""
    placement = Placement(case.jobs, case.layout, case.scheduler.placement)
    free = placement.capacity
    for j, allocation in zip(rows, allocations_of, strict=True):
        free = placement.with_job(free, j, allocation, -1)
    return np.array([free[m] for m in sorted(free)], FREE_RESOURCES)


def snapshot_of(case: Case, state: State, now_s: float) -> tuple[Case, Snapshot, np.ndarray]:
    """(Case with the jobs in the order of the snapshot, snapshot of sequence 0 before its decisions at a time, job order)."""
    first, n = case.first[0], case.n[0]
    start, end = state.start[0, :n], state.end[0, :n]
    submit = case.jobs.submit_s[first : first + n]
    running = np.flatnonzero((start < now_s) & (end > now_s))
    running = running[np.argsort(start[running], kind="stable")]
    queued = np.flatnonzero((submit <= now_s) & ~(start < now_s))
    order = np.concatenate([running, queued, np.flatnonzero(submit > now_s)])
    mine = [allocations(state, 0)[j] for j in running]
    chunks = np.array([chunk for allocation in mine for chunk in allocation.items()], CHUNK)
    offsets = np.cumsum([0, *map(len, mine)])
    free = free_resources(case, mine, first + running)
    snapshot = Snapshot(now_s, start[running], end[running], offsets, chunks, free, len(queued))
    return replace(case, jobs=case.jobs.take(first + order)), snapshot, order


def decision_times(case: Case, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The times of a run up to its last start, ascending, at which every pool with queued jobs decides.

    A resumed run decides for all pools at once, a whole one at a completion or arrival for its pool alone, and what a pool
    decides may depend on when.
    """
    first = case.first[0]
    rows = case.jobs.row[first : first + len(start)]
    submit, pool, last = rows["submit_s"], rows["pool"], np.nanmax(start)
    times = np.unique(np.concatenate([submit, end[end <= last]]))
    queued = (submit <= times[:, None]) & ~(start < times[:, None])
    event = (submit == times[:, None]) | (end == times[:, None])
    decides = [set(pool[q]) <= set(pool[e]) for q, e in zip(queued, event, strict=True)]
    return times[decides]


def resumable(case: Case) -> bool:
    rules = case.scheduler
    plain = not rules.sticky_head and rules.interference_slowdown == 1.0 and not rules.policy.startswith("multifactor")
    return case.visible is None and plain


@times(0.5)
@given(cases().filter(resumable), st.floats(0, 1))
def test_a_resumed_run_goes_on_as_the_whole_run(case, share):
    state = run_engine(case.jobs, case.layout, case.first, case.n, case.scheduler)
    n = case.n[0]
    start, end = state.start[0, :n], state.end[0, :n]
    times = decision_times(case, start, end)
    now_s = float(times[int(share * (len(times) - 1))])
    middle, snapshot, order = snapshot_of(case, state, now_s)
    run = resume(middle.jobs, middle.layout, snapshot, middle.scheduler)
    assert len(run.advance()) == 0
    assert run.state.start[0].tolist() == start[order].tolist()
    assert allocations(run.state, 0) == [allocations(state, 0)[j] for j in order]


TWO = cluster([group(2, 4)])
DAY_S = 86_400.0


def one_running(free: list[tuple[int, int, int]], queued: int, node: int = 0) -> Snapshot:
    """At 20 s: the first job has four GPUs of a node from 0 to 50 s, whatever its run time says; ``free`` on each node."""
    starts, ends, chunks = np.array([0.0]), np.array([50.0]), np.array([(node, 4)], CHUNK)
    return Snapshot(20.0, starts, ends, np.array([0, 1]), chunks, np.array(free, FREE_RESOURCES), queued)


def test_the_driver_ranks_the_queue_and_running_jobs_end_as_the_snapshot_says():
    jobs, layout = simple(TWO, (0, 10, 4), (5, 10, 4), (6, 10, 4))
    snapshot = one_running([(0, 0, 0), (4, 10**6, 10**6)], 2)
    run = resume(jobs, layout, snapshot, SchedulerConfig("fifo"), asks=True)
    assert run.advance().tolist() == [0] and run.state.queued_jobs(0).tolist() == [1, 2]
    run.state.score[0, :2] = [1.0, 0.0]
    while len(run.advance()):
        pass
    assert run.state.start[0].tolist() == [0.0, 30.0, 20.0] and run.state.end[0, 0] == 50.0


def test_a_custom_policy_is_not_taken_for_another(monkeypatch):
    monkeypatch.setitem(CUSTOM, "mine", lambda queue, now: queue.gpus)
    jobs, layout = simple(cluster([group(1, 2)]), (0, 5, 1), (0, 5, 1))
    with pytest.raises(ValueError, match="policy mine: a custom policy orders only in"):
        Simulation(jobs, layout, np.array([0]), np.array([2]), SchedulerConfig("mine", "easy"))


def test_thousandths_of_a_cpu_that_were_rounded_off_are_nobodys():
    rows = [{"submit_s": s, "run_s": 30, "gpus": gpus, "cpus": cpus} for s, gpus, cpus in ((0, 3, 10), (5, 8, 64))]
    jobs, layout = compiled(cluster([group(1, 8, cpus=64)]), rows)
    free = np.array([(5, 54_000, int(layout.nodes.row["mem_mb"][0]))], FREE_RESOURCES)  # as Slurm says, to the CPU
    starts, ends, chunks = np.array([0.0]), np.array([50.0]), np.array([(0, 3)], CHUNK)
    snapshot = Snapshot(20.0, starts, ends, np.array([0, 1]), chunks, free, 1)
    assert could_start(jobs, layout, snapshot).tolist() == [True]


def test_accounts_of_running_jobs_share_too():
    """After five days half of all use is a's. Among three accounts b goes before a's older job, among two it would not."""
    rows = zip((0, 0, 1, 4 * DAY_S), (5 * DAY_S, 5 * DAY_S + 100, 100, 100), "acab")
    made = [{"submit_s": s, "run_s": r, "gpus": 1, "user": user} for s, r, user in rows]
    jobs, layout = compiled(cluster([group(1, 2)]), made)
    whole = simulate(jobs, layout, [0], [4], SchedulerConfig("multifactor")).start[0].tolist()
    assert whole == [0, 0, 5 * DAY_S + 100, 5 * DAY_S]
    row = layout.nodes.row[0]
    free = np.array([(0, row["cpu_milli"] - 16_000, row["mem_mb"] - 64_000)], FREE_RESOURCES)
    chunks, ends = np.array([(0, 1), (0, 1)], CHUNK), jobs.run_s[:2]
    snapshot = Snapshot(4.5 * DAY_S, np.zeros(2), ends, np.arange(3), chunks, free, 2)
    run = resume(jobs, layout, snapshot, SchedulerConfig("multifactor"))
    run.advance()
    assert run.state.start[0].tolist() == whole


def test_gpus_neither_free_nor_of_a_running_job_stay_taken():
    jobs, layout = simple(TWO, (0, 10, 4), (5, 10, 4))
    snapshot = one_running([(3, 10**6, 10**6), (0, 0, 0)], 1, node=1)  # one GPU of node 0 is in use by others
    run = resume(jobs, layout, snapshot, SchedulerConfig("fifo"))
    run.advance()
    assert run.state.start[0].tolist() == [0.0, 50.0] and allocations(run.state, 0)[1] == {1: 4}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"now_s": -1.0}, "start_s"),
        ({"end_s": np.array([19.0])}, "end_s"),
        ({"queued": 3}, "of 2 jobs"),
        ({"free": np.array([(4, 0, 0), (4, 0, 0)], FREE_RESOURCES)}, "node 0: found 4 GPUs in use and 4 free"),
        ({"now_s": 4.0, "end_s": np.array([9.0])}, "queued jobs"),
    ],
)
def test_contradictions_are_refused(change, words):
    jobs, layout = simple(TWO, (0, 10, 4), (5, 10, 4))
    snapshot = one_running([(0, 0, 0), (4, 0, 0)], 1)
    with pytest.raises(ValueError, match=words):
        resume(jobs, layout, snapshot._replace(**change), SchedulerConfig("fifo"))
