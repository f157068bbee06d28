"""The state of many sequences that advance side by side: flat arrays of records, one row a sequence."""

from collections import namedtuple
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.cluster.free import CHUNK, Free, all_free
from rltune.cluster.layout import Nodes
from rltune.kernels import inlined, record
from rltune.policies import FIRST_FAIR
from rltune.simulator.config import EXTERNAL, Options

# What a sequence is doing; from RANK on the driver's turn: RANK and PLACE are questions to it, RESERVE and CHECK programs to run.
EVENT, POOL, PICK, PLACED, BEHIND, RANK, PLACE, RESERVE, CHECK, DONE = range(10)

MAX_VISIBLE = 256
"""Jobs an agent sees of a queue (paper §3.2, MAX_QUEUE_SIZE); the rest keep the base policy's order behind them."""

STATUS = record(
    int64="first n phase arrived started running chunks queue head queued visible picked chosen place_len decisions choices "
    "queue_sum cut asked_place events shadowed",
    float64="now reserved",
    bool="split may_wait scored hold",
)
"""A sequence.

- ``first``, ``n``: its first job and its number of jobs. ``phase``: see above.
- ``arrived``, ``started``, ``running``: jobs. ``chunks``: chunks written.
- ``queue``: the queue being decided. ``queued``: jobs in it. ``visible``: how many of the first a ranking covers.
- ``head``: the job that stays head (sticky_head), −1 for none. ``picked``: rank of the picked job.
- ``chosen``: the job PLACE asks about. ``place_len``: chunks of the answer; 0: it waits.
- ``decisions``, ``choices``: decisions, and those between two jobs or more. ``queue_sum``: jobs queued at each, summed.
  ``cut``: decisions that hid jobs. ``asked_place``: PLACE questions. ``events``: event times.
- ``now``: event time, s since the trace's t0. ``reserved``, ``shadowed``: start and number of nodes of a head's reservation.
- ``split``, ``may_wait``: whether the answer to PLACE is a split, and may be to wait.
- ``scored``, ``hold``: whether the ranking came from the driver, and whether it holds the queue.
"""
QUEUE = record(int64="at len sla", bool="ranked dirty")
"""A queue.

- ``at``, ``len``: where its jobs begin in ``waiting`` (goes up as the first ones start), and how many there are.
- ``sla``: jobs under an agreement. ``ranked``: whether its order is that of this event time. ``dirty``: whether it has an event.
"""
RUN = record(float64="key latest start end due slowdown since done_s", int64="at len planned", bool="late")
"""A job.

- ``key``: score under the base policy. ``latest``: when it is past its maximum wait.
- ``start`` (NaN before), ``end``: true times. ``due``: end by its estimate. ``late``: whether it runs past its estimate.
- ``slowdown``, ``since``, ``done_s``: where co-located jobs slow each other down, its slowdown, since when, and the work done
  until then.
- ``at``, ``len``: its chunks. ``planned``: GPU type of its last reservation, −1 before.
"""
HEAP = record(float64="end", int64="job")
ENDS = record(int64="due_at due_len late_at late_len")
"""A pool's spans in ``due`` and ``late``."""
SHARE = record(float64="used at", int64="using known")
"""An account: decayed GPU-seconds used until ``at``, GPUs in use since; 1 once it has submitted a job (of all in one:
how many have)."""
SHADOW = record(int64="node gpus cpu mem blocked_gpus blocked_cpu blocked_mem")
"""A node of a head's shadow allocation: what is spare there at its reserved start; what backfilled jobs may not take now."""


class State(NamedTuple):
    """Sequences of N jobs on M nodes in P pools, with Q queues: one a pool, or one in all. Scheduled by ``options``.

    Each field has a leading axis [S], but for the work space behind ``order``, which is shared. Jobs inside a sequence are
    numbered from 0; job ``i`` is job ``status.first + i`` of Jobs.
    """

    options: Options
    status: np.ndarray  # STATUS
    free: Free
    queue: np.ndarray  # [Q] QUEUE
    waiting: np.ndarray  # [N] int64, one span per queue, by the base policy where ``queue`` says it is ranked
    run: np.ndarray  # [N] RUN
    heap: np.ndarray  # [N] HEAP, running jobs by their true end
    chunk: np.ndarray  # [chunks] CHUNK, in the order of the starts
    ends: np.ndarray  # [P] ENDS
    due: np.ndarray  # [N] int64, a span a pool: running jobs within their estimate, by its end
    late: np.ndarray  # [N] int64, a span a pool: running jobs past their estimate, by start
    share: np.ndarray  # [accounts + 1] SHARE, all accounts in the last (Slurm multifactor)
    score: np.ndarray  # [N] float64, lower first; the answer to RANK, in the order of the queue
    place: np.ndarray  # [X] CHUNK, the answer to PLACE
    top: np.ndarray  # [K] int64, the chosen job and the next of the ranking; −1 after the last
    order: np.ndarray  # [N] int64, ranks of a queue's jobs, by their scores
    shadow: np.ndarray  # [X] SHADOW
    released: np.ndarray  # [N] int64
    failed: np.ndarray  # [2, shapes] int64, last pass in which a job of this shape did not fit; fit next to a head

    first = property(lambda self: self.status["first"], doc="First job of each sequence [S].")
    n = property(lambda self: self.status["n"], doc="Jobs of each sequence [S].")
    phase = property(lambda self: self.status["phase"], doc="What each sequence is doing [S].")
    now = property(lambda self: self.status["now"], doc="Time each sequence is at, s since the trace's t0 [S].")
    visible = property(lambda self: self.status["visible"], doc="Jobs a ranking covers [S].")
    queued = property(lambda self: self.status["queued"], doc="Jobs in the queue that asks [S].")
    start = property(lambda self: self.run["start"], doc="Starts in s [S, N], NaN before.")
    end = property(lambda self: self.run["end"], doc="True ends in s [S, N] of started jobs.")

    def queued_jobs(self, s: int) -> np.ndarray:
        """Jobs (numbers inside the sequence) that sequence ``s`` asks a ranking of, in the order of ``score[s]``."""
        at = self.queue["at"][s, self.status["queue"][s]]
        return self.waiting[s, at : at + self.status["visible"][s]]


Sequence = namedtuple("Sequence", State._fields[1:])
"""One sequence of a State: its fields without the options and without the leading axis."""


@inlined
def sequence_of(st, s):
    """One sequence's part of the state."""
    free = Free(st.free.row[s], st.free.total[s], st.free.count[s], st.free.words[s])
    return Sequence(
        st.status[s],
        free,
        st.queue[s],
        st.waiting[s],
        st.run[s],
        st.heap[s],
        st.chunk[s],
        st.ends[s],
        st.due[s],
        st.late[s],
        st.share[s],
        st.score[s],
        st.place[s],
        st.top[s],
        st.order[s],
        st.shadow,
        st.released,
        st.failed,
    )


def new_state(
    jobs: Jobs,
    nodes: Nodes,
    first: np.ndarray,
    n: np.ndarray,
    options: Options,
    top: int = 1,
    max_wait_h: Mapping[int, float] | None = None,
) -> State:
    """Sequences of ``n[s]`` consecutive jobs from job ``first[s]``, each on an idle cluster."""
    first, n = np.asarray(first, np.int64), np.asarray(n, np.int64)
    s, most, pools = len(first), int(n.max()), len(nodes.pool)
    status = np.zeros(s, STATUS)
    status["first"], status["n"], status["head"] = first, n, -1
    pool_at = _pool_offsets(jobs.pool, first, n, pools)
    queue = np.zeros((s, 1 if options.sticky_head else pools), QUEUE)
    if not options.sticky_head:
        queue["at"] = pool_at
    run = np.zeros((s, most), RUN)
    run["start"] = np.nan
    run["latest"] = np.inf
    run["planned"] = -1
    if max_wait_h:
        mine = np.minimum(first[:, None] + np.arange(most), len(jobs.row) - 1)
        run["latest"] = latest_s(jobs.submit_s[mine], jobs.gpus[mine], max_wait_h)
    ends = np.zeros((s, pools), ENDS)
    ends["due_at"] = ends["late_at"] = pool_at
    # chunks a job may get: a strict cut's, or with more nodes allowed one a GPU
    chunks = jobs.cut["full"].max(axis=1) + 1
    if options.splits:
        pool = nodes.pool[jobs.pool]
        chunks = np.maximum(chunks, np.minimum(jobs.gpus, pool["stop"] - pool["start"]))
    before = np.concatenate([[0], np.cumsum(chunks)])
    widest, room = int((before[first + n] - before[first]).max()), int(chunks.max())
    accounts = int(jobs.account.max()) + 2 if options.base >= FIRST_FAIR else 0
    by_end, ranked = most if options.tracks else 0, most if options.order == EXTERNAL else 0
    return State(
        options,
        status,
        all_free(nodes, s),
        queue,
        np.zeros((s, most), np.int64),
        run,
        np.zeros((s, most), HEAP),
        np.zeros((s, widest), CHUNK),
        ends,
        np.zeros((s, by_end), np.int64),
        np.zeros((s, by_end), np.int64),
        np.zeros((s, accounts), SHARE),
        np.zeros((s, ranked)),
        np.zeros((s, room), CHUNK),
        np.full((s, top), -1, np.int64),
        np.zeros((s, ranked), np.int64),
        np.zeros(room, SHADOW),
        np.zeros(by_end, np.int64),
        np.zeros((2, int(jobs.row["shape"].max()) + 2), np.int64),
    )


def latest_s(submit_s: np.ndarray, gpus: np.ndarray, max_wait_h: Mapping[int, float]) -> np.ndarray:
    """When jobs of these submissions and sizes are past their maximum wait, s since the trace's t0, of the same shape."""
    sizes = np.array(sorted(max_wait_h))
    hours = np.array([max_wait_h[size] for size in sizes.tolist()])
    return submit_s + 3600.0 * hours[np.minimum(np.searchsorted(sizes, gpus), len(sizes) - 1)]


def _pool_offsets(pool: np.ndarray, first: np.ndarray, n: np.ndarray, pools: int) -> np.ndarray:
    """Where each pool's jobs would begin if a sequence's jobs were sorted by pool [S, P]."""
    if pools == 1:
        return np.zeros((len(first), 1), np.int64)
    number = np.array([np.bincount(pool[a : a + k], minlength=pools) for a, k in zip(first, n)])
    return np.cumsum(number, axis=1) - number
