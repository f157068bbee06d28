"""What an agent sees of each queued job (paper §3.2), written straight into flat buffers.

Rows have the columns of a feature set, and the critic its five (rltune.environment.features). One code observes in
training, in evaluation and on a live cluster: it reads the arrays of State alone.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rltune.cluster.candidates import class_table
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.environment.encoding import TOGETHER, FeatureEncoding, encode_features
from rltune.environment.features import CRITIC, JOB, NOW, POOL, SHAPE, slots, width_of
from rltune.environment.standing import RANK_BASE, queue_ranks, waits
from rltune.environment.supply import FLAG, FREED, SHAPED, pool_features, shape_features
from rltune.kernels import inlined, kernel, record
from rltune.simulator.queue import rank
from rltune.simulator.state import State, sequence_of

__all__ = ["CRITIC_WIDTH", "Observation", "Observer", "width_of"]

CRITIC_WIDTH = len(CRITIC)

SEEN = record(uint64="row shape rank")
"""A visible job: its row in the workload, its shape, its rank in the queue."""


class Work(NamedTuple):
    """Memory of the compiled part, kept between observations of one run of S sequences."""

    shaped: np.ndarray  # [S, shapes] SHAPED
    by_shape: np.ndarray  # [S, shapes, SHAPE features] float32
    freed: np.ndarray  # [S] FREED
    count: np.ndarray  # [2] int64, free vectors and observations numbered so far
    table: np.ndarray  # CLASS, the node classes of a pool
    gpus: np.ndarray  # [3, T] float64, GPUs of a pool by type: free, expected back within the horizon, in all
    of_pool: np.ndarray  # [POOL features] float32
    now: np.ndarray  # [NOW features, most] float32, of the visible jobs of one queue
    seen: np.ndarray  # [most] SEEN, those jobs, or those of one pool
    value: np.ndarray  # [most] float64


@dataclass(frozen=True)
class Observation:
    """The visible queues of the sequences that ask, one behind the other; k sequences, R rows."""

    asking: np.ndarray
    """[k] int64, sequences."""
    offsets: np.ndarray
    """[k + 1] int64: sequence ``asking[i]`` has the rows offsets[i] … offsets[i + 1] − 1, a row a job, in the order
    of ``State.queued_jobs``."""
    jobs: np.ndarray
    """[R] int64, the jobs, numbered inside their sequences in the order of submission."""
    rows: np.ndarray
    """[R, width] float32."""
    critic: np.ndarray
    """[R, CRITIC_WIDTH] float32."""

    @property
    def length(self) -> np.ndarray:
        """[k] int64, jobs each sequence is to rank."""
        return np.diff(self.offsets)

    @property
    def score_index(self) -> tuple[np.ndarray, np.ndarray]:
        """The sequence of each row, and its rank in the queue, both [R]: the index of its answer in ``State.score``."""
        sequence, before = (np.repeat(each, self.length) for each in (self.asking, self.offsets[:-1]))
        return sequence, np.arange(len(self.jobs)) - before


@dataclass
class Observer:
    """Observes states of runs on one workload, by one feature set. The run asks for rankings, and so keeps track of expected ends.

    A set with the base policy's order (``rank_base``) brings a queue whose scores change with time into that order first.

    Raises ValueError for a feature set that does not exist.
    """

    jobs: Jobs
    layout: Layout
    features: str
    _encoding: FeatureEncoding = field(init=False, repr=False)
    _work: Work = field(init=False, repr=False)
    _run: np.ndarray | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        self._encoding = encode_features(self.jobs, self.layout, self.features)

    @property
    def width(self) -> int:
        """Columns of the rows."""
        return self._encoding.rows.shape[1]

    def __call__(self, state: State, asking: np.ndarray) -> Observation:
        """What the sequences in ``asking`` [k] int64 are to rank."""
        if self._run is not state.status:  # another run: nothing is known of its free vectors
            self._run, s, shapes = state.status, len(state.status), int(self.jobs.row["shape"].max()) + 1
            most = int(state.n.max()) if state.options.visible == 0 else min(int(state.n.max()), state.options.visible)
            self._work = Work(
                np.zeros((s, shapes), SHAPED),
                np.zeros((s, shapes, len(slots(SHAPE))), np.float32),
                np.full(s, -1, FREED),
                np.zeros(2, np.int64),
                class_table(self.layout.nodes),
                np.zeros((3, self.jobs.cut.shape[1])),
                np.zeros(len(slots(POOL)), np.float32),
                np.zeros((len(slots(NOW)), most), np.float32),
                np.zeros(most, SEEN),
                np.zeros(most),
            )
        offsets = np.zeros(len(asking) + 1, np.int64)
        np.cumsum(state.status["visible"][asking], out=offsets[1:])
        rows = np.empty((offsets[-1], self.width), np.float32)
        critic = np.empty((offsets[-1], CRITIC_WIDTH), np.float32)
        jobs = np.empty(offsets[-1], np.int64)
        _observe(self.layout.nodes, self.jobs, state, asking, self._encoding, self._work, offsets, jobs, rows, critic)
        return Observation(asking, offsets, jobs, rows, critic)


@kernel
def _observe(nodes, jobs, st, asking, encoding, work, offsets, job, rows, critic):
    """Write rows ``offsets[i]:offsets[i + 1]`` for the visible queue of sequence ``asking[i]``."""
    for a in range(asking.shape[0]):
        s = asking[a]
        seq, freed = sequence_of(st, s), work.freed[s]
        if freed.started != seq.status.started or freed.running != seq.status.running:
            work.count[0] += 1
            freed.started, freed.running, freed.number = seq.status.started, seq.status.running, work.count[0]
        queue, n = seq.queue[seq.status.queue], seq.status.visible
        if encoding.wants[NOW, RANK_BASE] and not queue.ranked:
            rank(nodes, jobs, seq, seq.status.queue, st.options.base)
        for r in range(n):
            job[offsets[a] + r] = seq.waiting[queue.at + r]
            _note(encoding.fact, work.seen[r], seq.status.first + seq.waiting[queue.at + r], r)
        queue_ranks(encoding.fact, work.seen, n, seq.status.now, encoding.wants[NOW], work.value, work.now)
        pool, stop = (0, nodes.pool.shape[0]) if st.options.sticky_head else (seq.status.queue, seq.status.queue + 1)
        while pool < stop:
            m = n
            if st.options.sticky_head:  # one queue for all pools: those of one, pool by pool
                m = 0
                for r in range(n):
                    j = seq.status.first + job[offsets[a] + r]
                    if encoding.fact[j].pool == pool:
                        _note(encoding.fact, work.seen[m], j, r)
                        m += 1
            if m > 0:
                _pool(nodes, jobs, seq, st.options, pool, encoding, work, s, m, offsets[a], rows, critic)
            pool += 1


@inlined
def _note(fact, seen, j, r):
    seen.row, seen.shape, seen.rank = j, fact[j].shape, r


@inlined
def _pool(nodes, jobs, seq, options, pool, encoding, work, s, m, begin, rows, critic):
    """Write the rows of the ``m`` visible jobs ``work.seen`` of one pool."""
    freed, shaped, by_shape, gpus, seen = work.freed[s], work.shaped[s], work.by_shape[s], work.gpus, work.seen
    fact, wants = encoding.fact, encoding.wants
    work.count[1] += 1
    number = work.count[1]
    pool_features(nodes, seq, options, pool, fact, seen, m, wants, freed, gpus, work.of_pool)
    shape_features(nodes, jobs, seq, options, pool, seen, m, wants, number, freed, gpus, work.table, shaped, by_shape)
    regime = 1 if work.of_pool[FLAG] > 0 else 0
    waits(fact, seen, m, seq.status.now, seq.status.first, wants[NOW], TOGETHER << regime, work.now)
    _write(encoding.rows[regime], encoding.static, by_shape, work.of_pool, work.now, seen, m, rows[begin:])
    _write(encoding.critic[regime], encoding.static, by_shape, work.of_pool, work.now, seen, m, critic[begin:])


@inlined
def _write(sources, static, by_shape, of_pool, now, seen, m, out):
    """Copy each column from where its numbers are."""
    for c in range(sources.shape[0]):
        slot, weight = sources[c].slot, sources[c].weight
        if sources[c].of == JOB:
            for k in range(m):
                out[seen[k].rank, c] = weight * static[seen[k].row, slot]
        elif sources[c].of == SHAPE:
            for k in range(m):
                out[seen[k].rank, c] = weight * by_shape[seen[k].shape, slot]
        elif sources[c].of == POOL:
            value = weight * of_pool[slot]
            for k in range(m):
                out[seen[k].rank, c] = value
        else:
            for k in range(m):
                out[seen[k].rank, c] = weight * now[slot, seen[k].rank]
