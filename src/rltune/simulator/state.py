"""The state of many sequences that advance side by side: flat arrays, one row a sequence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Nodes

# What a sequence is doing; RANK and PLACE are questions to the driver.
EVENT, POOL, RANK, PICK, PLACE, PLACED, DONE = range(7)

# Columns of State.counts.
DECISIONS, CHOICES, QUEUED, CUT, ASKED_PLACE = range(5)
COUNTS = 5

MAX_VISIBLE = 256
"""Jobs an agent sees of a queue (paper §3.2, MAX_QUEUE_SIZE); the rest keep the base policy's order behind them."""


class State(NamedTuple):
    """S sequences of at most N jobs on M nodes in P pools.

    Jobs inside a sequence are numbered from 0; job ``i`` of sequence ``s`` is job ``first[s] + i`` of Jobs.
    """

    first: np.ndarray  # [S] int64
    n: np.ndarray  # [S] int64, jobs of the sequence
    phase: np.ndarray  # [S] int64
    now: np.ndarray  # [S] float64, seconds since the trace's t0
    arrived: np.ndarray  # [S] int64
    started: np.ndarray  # [S] int64
    free_gpus: np.ndarray  # [S, M] int64
    free_cpu: np.ndarray  # [S, M] int64, thousandths
    free_mem: np.ndarray  # [S, M] int64, MB
    pool_free: np.ndarray  # [S, P] int64, free GPUs
    queue: np.ndarray  # [S, N] int64, a stretch a pool, each in order of submission
    queue_at: np.ndarray  # [S, P] int64, where a pool's stretch begins
    queue_len: np.ndarray  # [S, P] int64
    dirty: np.ndarray  # [S, P] bool, pools with an event at this instant
    pool: np.ndarray  # [S] int64, the pool being decided
    heap_end: np.ndarray  # [S, N] float64, running jobs by their true end, a binary heap
    heap_job: np.ndarray  # [S, N] int64
    running: np.ndarray  # [S] int64
    start: np.ndarray  # [S, N] float64, NaN until started
    alloc_at: np.ndarray  # [S, N] int64, where a job's chunks begin
    alloc_len: np.ndarray  # [S, N] int64
    alloc_node: np.ndarray  # [S, A] int64
    alloc_gpus: np.ndarray  # [S, A] int64
    candidates: np.ndarray  # [S, N] int64, the queue as ranked: visible jobs first
    visible: np.ndarray  # [S] int64, how many of them the ranking covers
    queued: np.ndarray  # [S] int64, how many there are
    score: np.ndarray  # [S, N] float64, lower first; the answer to RANK
    chosen: np.ndarray  # [S] int64, the job that PLACE asks about
    top: np.ndarray  # [S, K] int64, the chosen job and the next of the ranking; −1 behind the last
    place_len: np.ndarray  # [S] int64, the answer to PLACE: chunks …
    place_node: np.ndarray  # [S, X] int64
    place_gpus: np.ndarray  # [S, X] int64
    scratch_gpus: np.ndarray  # [S, M] int64, free vectors at a head's reserved start
    scratch_cpu: np.ndarray  # [S, M] int64
    scratch_mem: np.ndarray  # [S, M] int64
    counts: np.ndarray  # [S, COUNTS] int64


def new_state(jobs: Jobs, nodes: Nodes, first: np.ndarray, n: np.ndarray, top: int = 1) -> State:
    """Sequences of ``n[s]`` consecutive jobs from job ``first[s]``, each on an idle cluster."""
    first, n = np.asarray(first, np.int64), np.asarray(n, np.int64)
    s, most, m, p = len(first), int(n.max()), len(nodes.gpus), len(nodes.pool_start) - 1
    # a strict job has full + 1 chunks at most, whatever its type
    chunks = jobs.full.max(axis=1) + 1
    alloc_at = np.zeros((s, most), np.int64)
    queue_at = np.zeros((s, p), np.int64)
    widest = 1
    for i in range(s):
        mine = slice(first[i], first[i] + n[i])
        ends = np.cumsum(chunks[mine])
        alloc_at[i, 1 : n[i]] = ends[:-1]
        widest = max(widest, int(ends[-1]))
        queue_at[i, 1:] = np.cumsum(np.bincount(jobs.pool[mine], minlength=p))[:-1]
    room = 2 * max(int(chunks.max()), 1)  # find() keeps a second allocation behind the first

    def ints(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.int64)

    return State(
        first=first, n=n, phase=ints(s), now=np.zeros(s), arrived=ints(s), started=ints(s),
        free_gpus=np.tile(nodes.gpus, (s, 1)), free_cpu=np.tile(nodes.cpu_milli, (s, 1)),
        free_mem=np.tile(nodes.mem_mb, (s, 1)),
        pool_free=np.tile(np.add.reduceat(nodes.gpus, nodes.pool_start[:-1]), (s, 1)),
        queue=ints(s, most), queue_at=queue_at, queue_len=ints(s, p), dirty=np.zeros((s, p), bool), pool=ints(s),
        heap_end=np.zeros((s, most)), heap_job=ints(s, most), running=ints(s), start=np.full((s, most), np.nan),
        alloc_at=alloc_at, alloc_len=ints(s, most), alloc_node=ints(s, widest), alloc_gpus=ints(s, widest),
        candidates=ints(s, most), visible=ints(s), queued=ints(s), score=np.zeros((s, most)), chosen=ints(s),
        top=np.full((s, top), -1, np.int64), place_len=ints(s), place_node=ints(s, room), place_gpus=ints(s, room),
        scratch_gpus=ints(s, m), scratch_cpu=ints(s, m), scratch_mem=ints(s, m), counts=ints(s, COUNTS),
    )  # fmt: skip
