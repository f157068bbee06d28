"""Simulations that start from a snapshot of a cluster in use: some jobs run, others are queued.

Every other simulation starts from an idle cluster. A live cluster is not idle, nor is the middle of a replay.
"""

from typing import NamedTuple

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.cluster.free import CHUNK, change, take
from rltune.cluster.layout import Layout
from rltune.cluster.search import BEST_FIT, EXCLUSIVE, find
from rltune.config.cells import PLANNED_TYPES
from rltune.kernels import ONE, ZERO, allocating, kernel, record
from rltune.simulator.batch import Placer, Simulation
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.queue import enqueue
from rltune.simulator.start import start_job
from rltune.simulator.state import MAX_VISIBLE, POOL, sequence_of
from rltune.simulator.usage import know

FREE_RESOURCES = record(int64="gpus cpu mem")
"""What is free on a node: GPUs, thousandths of a CPU, MB."""


class Snapshot(NamedTuple):
    """A cluster in use at one time; R jobs run, all others of Jobs are queued or yet to come."""

    now_s: float
    """Now, s since the same t0 as the submissions of Jobs."""
    start_s: np.ndarray
    """[R] starts, ascending; the running jobs are the first R of Jobs, in this order."""
    end_s: np.ndarray
    """[R] when each ends in a simulation that goes on from here; after now."""
    offsets: np.ndarray
    """[R + 1] int64: job r runs on ``chunks[offsets[r]:offsets[r + 1]]``."""
    chunks: np.ndarray
    """[C] CHUNK."""
    free: np.ndarray
    """[M] FREE_RESOURCES, what is free on each node now; whatever is neither free nor a running job's stays taken."""
    queued: int
    """Jobs queued now: the Q after the first R of Jobs, in the order of submission; those after them are to come."""


def resume(
    jobs: Jobs,
    layout: Layout,
    snapshot: Snapshot,
    scheduler: SchedulerConfig,
    placer: Placer | None = None,
    asks: bool = False,
) -> Simulation:
    """A simulation at the time of a snapshot, before its first decision, which every queue makes.

    ``asks``: rankings are asked of the driver, of the first MAX_VISIBLE jobs of each queue; else the order is the
    scheduler's. Where GPU types are planned, all jobs then have a reservation, and a single job is ranked too. Running jobs
    keep the start and end of the snapshot. Raises ValueError where the snapshot contradicts itself: chunks and free GPUs
    beyond a node's, starts or submissions after now, ends before it.
    """
    _check(jobs, layout, snapshot)
    scheduler = scheduler.on(jobs)
    everyone = np.array([len(jobs.row)])
    plans = asks and scheduler.types in PLANNED_TYPES
    run = Simulation(
        jobs, layout, np.array([0]), everyone, scheduler, placer, MAX_VISIBLE if asks else None, alone=plans
    )
    # what others use may leave a node GPUs without CPUs
    state = run.state._replace(options=run.state.options._replace(resources=3, whole=plans))
    widest = int(np.diff(snapshot.offsets).max(initial=0))
    if widest > state.place.shape[1]:  # a job runs on more nodes than the scheduler would use
        state = state._replace(place=np.zeros((1, widest), CHUNK))
    state = state._replace(chunk=np.zeros((1, state.chunk.shape[1] + len(snapshot.chunks)), CHUNK))
    run.state = state
    _resume(layout.nodes, jobs, state, snapshot)
    running, order = len(snapshot.start_s), np.argsort(snapshot.end_s, kind="stable")  # sorted is a heap
    state.end[0, :running] = snapshot.end_s  # where co-located jobs slow each other down: until that changes
    state.heap["end"][0, :running], state.heap["job"][0, :running] = snapshot.end_s[order], order
    return run


def _check(jobs: Jobs, layout: Layout, snapshot: Snapshot) -> None:
    r, q = len(snapshot.start_s), snapshot.queued
    if r + q > len(jobs.row):
        raise ValueError(f"found {r} jobs running and {q} queued, of {len(jobs.row)} jobs")
    taken = np.bincount(snapshot.chunks["node"], snapshot.chunks["gpus"], minlength=len(layout.nodes.row))
    over = np.flatnonzero((taken + snapshot.free["gpus"] > layout.nodes.gpus) | (snapshot.free["gpus"] < 0))
    if len(over):
        m = int(over[0])
        raise ValueError(
            f"node {m}: found {int(taken[m])} GPUs in use and {int(snapshot.free['gpus'][m])} free, expected "
            f"no more than its {int(layout.nodes.gpus[m])}"
        )
    if (np.diff(snapshot.start_s) < 0).any() or (snapshot.start_s > snapshot.now_s).any():
        raise ValueError("start_s: expected starts in ascending order, none after now_s")
    if (snapshot.end_s <= snapshot.now_s).any():
        raise ValueError("end_s: expected ends after now_s")
    submitted = jobs.submit_s[r : r + q]
    if (np.diff(submitted) < 0).any() or (submitted > snapshot.now_s).any():
        raise ValueError("queued jobs: expected submissions in ascending order, none after now_s")


@kernel
def _resume(nodes, jobs, st, snapshot):
    seq = sequence_of(st, 0)
    status, running = seq.status, snapshot.start_s.shape[0]
    for r in range(running):
        n = snapshot.offsets[r + 1] - snapshot.offsets[r]
        for c in range(n):
            chunk = snapshot.chunks[snapshot.offsets[r] + c]
            seq.place[c].node, seq.place[c].gpus = chunk.node, chunk.gpus
        status.now = snapshot.start_s[r]
        start_job(nodes, jobs, seq, st.options, r, n)
        if seq.share.shape[0] > 0:
            know(seq.share, jobs.row[r].account)
    for m in range(nodes.row.shape[0]):
        free, here, most = snapshot.free[m], seq.free.row[m], nodes.row[m].gpus
        # what jobs request is rounded down a GPU: less than a unit for each GPU is nobody's
        cpu = here.cpu if 0 <= here.cpu - free.cpu <= most else free.cpu
        mem = here.mem if 0 <= here.mem - free.mem <= most else free.mem
        change(nodes, seq.free, m, free.gpus - here.gpus, cpu - here.cpu, mem - here.mem)
    status.now, status.arrived, status.events = snapshot.now_s, running + snapshot.queued, 1
    for job in range(running, running + snapshot.queued):
        q = 0 if st.options.sticky_head else jobs.row[job].pool
        enqueue(nodes, jobs, seq, q, st.options, job)
        seq.queue[q].dirty = True
    status.queue, status.phase = 0, POOL


def could_start(jobs: Jobs, layout: Layout, snapshot: Snapshot) -> np.ndarray:
    """Which of the queued jobs [Q] bool would fit, on the fewest nodes that could hold them, once all running jobs ended.

    The others wait for GPUs that no job will release, and would stop a simulation.
    """
    run = resume(jobs, layout, snapshot, SchedulerConfig("fifo"))
    return _could_start(layout.nodes, run.jobs, run.state, len(snapshot.start_s), snapshot.queued)


@allocating
def _could_start(nodes, jobs, st, running, queued):
    seq = sequence_of(st, 0)
    for r in range(running):
        take(nodes, jobs, seq.free, r, st.options.rule == EXCLUSIVE, seq.chunk, seq.run[r].at, seq.run[r].len, ONE)
    fits = np.zeros(queued, np.bool_)
    for q in range(queued):
        fits[q] = find(nodes, jobs, seq.free, running + q, BEST_FIT, ZERO, seq.place) > 0
    return fits
