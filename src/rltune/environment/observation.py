"""What an agent sees of each queued job (paper §3.2, Table 3), written straight into flat buffers.

Feature set ``engineered``, eight columns, all about [0, 1]. They are the same for every job; the paper's sampling,
which swaps some of them by the state of the cluster, is not built, and fragmentation stands where it would tell:

===  ======================  =============================================================================
0    GPUs                    log2(1 + GPUs) / 7
1    job size                log10(1 + GPUs × estimated seconds) / 8
2    urgency                 wait / (wait + estimate)
3    demand-supply ratio     GPUs / free GPUs of the types it may use (paper eq. 1), x mapped to x / (1 + x)
4    future availability     (free − GPUs + GPUs expected back within an hour) / pool (paper eq. 2; printed,
                             it subtracts running jobs twice), clipped to [−1, 1]
5    can_schedule_now        0 or 1
6    num_ways_to_schedule    ways, counted to 8, / 8
7    fragmentation (CFF)     1 − Σ free² / Σ (node size · free) of the pool (paper eq. 3 normalised by node
                             size); 0 when nothing is free
===  ======================  =============================================================================

Feature set ``raw``, the same number of columns straight from the trace, each divided by a fixed maximum and
cut at 1 as in RLScheduler: GPUs / 64, estimate / 12 h, submission since the sequence's first / 12 h, CPUs / 512,
memory / 4 TB, VC index, GPU-type index (each / their number), wait / 12 h.

The critic's five columns (paper §3.2): submission as above, estimate / 12 h, GPUs / 64, can_schedule_now,
wait / 12 h.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.search import EXCLUSIVE, find
from rltune.cluster.ways import MAX_WAYS, classes, count_ways, room
from rltune.kernels import kernel
from rltune.simulator.how import DOUBLE
from rltune.simulator.releases import settle_late
from rltune.simulator.state import State, one_of

WIDTH = 8
CRITIC_WIDTH = 5
FEATURE_SETS = {"raw": 0, "engineered": 1}
HORIZON_S = 3600.0
"""How far ahead future availability looks (our choice)."""
TIME_SCALE_S = 12 * 3600.0
"""Largest time told apart by raw features (RLScheduler's)."""

FACTS = np.dtype([
    ("submit_s", np.float64), ("estimate_s", np.float64), ("pool", np.int64), ("shape", np.int64),
    ("log_gpus", np.float32), ("log_area", np.float32), ("asked", np.float32), ("gpus", np.float32),
    ("cpus", np.float32), ("memory", np.float32), ("vc", np.float32), ("kind", np.float32),
], align=True)  # fmt: skip
"""What does not change of a job while it waits: of Jobs, and columns of the feature sets."""
SHAPED = np.dtype([
    ("counted", np.int64), ("ways", np.int64), ("seen", np.int64), ("ratio", np.float32), ("future", np.float32),
], align=True)  # fmt: skip
"""What jobs of one shape share: number of the free vector their ways were counted on, ways; number of the
observation in which their supply was written, the two columns about it."""
FREED = np.dtype([
    ("started", np.int64), ("running", np.int64), ("number", np.int64), ("fragmentation", np.float64),
    ("known", np.int64),
], align=True)  # fmt: skip
"""A sequence's free vector: jobs started and running tell whether it has changed since it got its number; a pool's
fragmentation, and for which number and pool it is known."""


class Work(NamedTuple):
    """Memory of the compiled part, kept between observations of one run of S sequences."""

    fact: np.ndarray  # [J] FACTS
    shaped: np.ndarray  # [S, shapes] SHAPED
    freed: np.ndarray  # [S] FREED
    count: np.ndarray  # [2] int64, free vectors and observations numbered so far
    table: np.ndarray  # CLASS, the node classes of a pool
    gpus: np.ndarray  # [3, T] float64, GPUs of a pool by type: free, expected back within the horizon, in all


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
    """[R, WIDTH] float32."""
    critic: np.ndarray
    """[R, CRITIC_WIDTH] float32."""

    @property
    def length(self) -> np.ndarray:
        """[k] int64, jobs each sequence is to rank."""
        return np.diff(self.offsets)


@dataclass
class Observer:
    """Observes states of runs on one workload, by one feature set. The run has to ``track`` expected ends.

    Raises ValueError for a feature set that does not exist.
    """

    jobs: Jobs
    layout: Layout
    features: str
    _work: Work = field(init=False, repr=False)
    _run: np.ndarray | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if self.features not in FEATURE_SETS:
            raise ValueError(f"features: found {self.features!r}, expected one of {', '.join(FEATURE_SETS)}")
        self._work = Work(
            _facts(self.jobs, self.layout), np.zeros((0, int(self.jobs.row["shape"].max()) + 1), SHAPED),
            np.zeros(0, FREED), np.zeros(2, np.int64), room(self.layout.nodes),
            np.zeros((3, self.jobs.cut.shape[1])),
        )  # fmt: skip

    def __call__(self, state: State, asking: np.ndarray) -> Observation:
        """What the sequences in ``asking`` [k] int64 are to rank."""
        if self._run is not state.me:  # another run: nothing is known of its free vectors
            self._run, s = state.me, len(state.me)
            self._work = self._work._replace(
                shaped=np.zeros((s, self._work.shaped.shape[1]), SHAPED), freed=np.full(s, -1, FREED)
            )
        offsets = np.zeros(len(asking) + 1, np.int64)
        np.cumsum(state.me["visible"][asking], out=offsets[1:])
        rows = np.empty((offsets[-1], WIDTH), np.float32)
        critic = np.empty((offsets[-1], CRITIC_WIDTH), np.float32)
        jobs = np.empty(offsets[-1], np.int64)
        engineered = self.features == "engineered"
        _observe(self.layout.nodes, self.jobs, state, asking, engineered, self._work, offsets, jobs, rows, critic)
        return Observation(asking, offsets, jobs, rows, critic)


def _facts(jobs: Jobs, layout: Layout) -> np.ndarray:
    """Of each job what does not change while it waits [J] FACTS."""
    nodes, row = layout.nodes, jobs.row
    gpus, estimate = row["gpus"].astype(float), row["estimate_s"]
    begin = nodes.pool["start"][row["pool"]]
    share_cpu, share_mem = nodes.row["share_cpu"][begin], nodes.row["share_mem"][begin]
    cpu = np.where(row["cpu_milli"] >= 0, row["cpu_milli"], share_cpu)
    mem = np.where(row["mem_mb"] >= 0, row["mem_mb"], share_mem)
    kind = (jobs.cut["full"] >= 0).argmax(axis=1)
    out = np.zeros(len(row), FACTS)
    for name in ("submit_s", "estimate_s", "pool", "shape"):
        out[name] = row[name]
    out["log_gpus"], out["log_area"] = np.log2(1 + gpus) / 7, np.log10(1 + gpus * estimate) / 8
    out["asked"], out["gpus"] = np.minimum(estimate / TIME_SCALE_S, 1), np.minimum(gpus / 64, 1)
    out["cpus"], out["memory"] = np.minimum(gpus * cpu / 512e3, 1), np.minimum(gpus * mem / 4096e3, 1)
    out["vc"], out["kind"] = row["pool"] / len(nodes.pool), kind / jobs.cut.shape[1]
    return out


@kernel
def _observe(nodes, jobs, st, asking, engineered, work, offsets, job, rows, critic):
    """Write rows ``offsets[i]:offsets[i + 1]`` for the visible queue of sequence ``asking[i]``."""
    for a in range(asking.shape[0]):
        s = asking[a]
        one, freed = one_of(st, s), work.freed[s]
        if freed.started != one.me.started or freed.running != one.me.running:
            work.count[0] += 1
            freed.started, freed.running, freed.number = one.me.started, one.me.running, work.count[0]
        if not st.how.commit:
            _pool(nodes, jobs, one, st.how, one.me.queue, engineered, work, s, offsets[a], job, rows, critic)
            continue
        for p in range(nodes.pool.shape[0]):  # one queue for all pools
            _pool(nodes, jobs, one, st.how, p, engineered, work, s, offsets[a], job, rows, critic)


@kernel
def _pool(nodes, jobs, one, how, pool, engineered, work, s, begin, job, rows, critic):
    """Write the rows of the visible jobs of one pool."""
    first, now, freed = one.me.first, one.me.now, work.freed[s]
    if engineered:
        _sums(nodes, one, how, pool, freed, work.gpus)
    work.count[1] += 1
    this, k = work.count[1], -1
    start_s = work.fact[first].submit_s
    at = one.line[one.me.queue].at
    for i in range(one.me.visible):
        inside = one.queue[at + i]
        fact = work.fact[first + inside]
        if fact.pool != pool:
            continue
        shaped = work.shaped[s, fact.shape]
        if shaped.counted != freed.number:
            if k < 0:
                k = classes(nodes, pool, one.free, how.rule == EXCLUSIVE, work.table)
            shaped.counted = freed.number
            shaped.ways = count_ways(nodes, jobs, first + inside, work.table, k)
            if shaped.ways == 0:  # a split, or no equal chunks: one way, if any
                shaped.ways = min(find(nodes, jobs, one.free, first + inside, how.rule, how.extra, one.place), 1)
        now_ok = np.float32(1.0 if shaped.ways > 0 else 0.0)
        wait = now - fact.submit_s
        since = np.float32(min((fact.submit_s - start_s) / TIME_SCALE_S, 1.0))
        waited = np.float32(min(wait / TIME_SCALE_S, 1.0))
        job[begin + i] = inside
        obs = rows[begin + i]
        if engineered:
            if shaped.seen != this:
                shaped.seen = this
                _supply(jobs, first + inside, work.gpus, shaped)
            obs[0] = fact.log_gpus
            obs[1] = fact.log_area
            obs[2] = wait / (wait + fact.estimate_s)
            obs[3] = shaped.ratio
            obs[4] = shaped.future
            obs[5] = now_ok
            obs[6] = shaped.ways / MAX_WAYS
            obs[7] = freed.fragmentation
        else:
            obs[0] = fact.gpus
            obs[1] = fact.asked
            obs[2] = since
            obs[3] = fact.cpus
            obs[4] = fact.memory
            obs[5] = fact.vc
            obs[6] = fact.kind
            obs[7] = waited
        value = critic[begin + i]
        value[0] = since
        value[1] = fact.asked
        value[2] = fact.gpus
        value[3] = now_ok
        value[4] = waited


@kernel
def _supply(jobs, j, gpus, shaped):
    """The two columns about the GPUs that a job may use."""
    free, back, capacity = 0.0, 0.0, 0.0
    for t in range(gpus.shape[1]):
        if jobs.cut[j, t].full >= 0:
            free += gpus[0, t]
            back += gpus[1, t]
            capacity += gpus[2, t]
    ratio = jobs.row[j].gpus / max(free, 1.0)
    shaped.ratio = ratio / (1.0 + ratio)
    shaped.future = min(max((free - jobs.row[j].gpus + back) / capacity, -1.0), 1.0)


@kernel
def _sums(nodes, one, how, pool, freed, gpus):
    """A pool's fragmentation; its GPUs by type: free, expected back within the horizon, in all."""
    now, ends = one.me.now, one.ends[pool]
    for t in range(gpus.shape[1]):
        d = nodes.domain_of[pool, t]
        gpus[0, t] = one.free.total[d] if d >= 0 else 0.0
        gpus[1, t] = 0.0
        gpus[2, t] = nodes.domain[d].gpus if d >= 0 else 0.0
    known = freed.number * nodes.pool.shape[0] + pool
    if freed.known != known:
        freed.known = known
        squares, weights = 0, 0
        for m in range(nodes.pool[pool].start, nodes.pool[pool].stop):
            here = one.free.row[m].gpus
            squares += here * here
            weights += nodes.row[m].gpus * here
        freed.fragmentation = 1.0 - squares / weights if weights > 0 else 0.0
    settle_late(one, pool)
    for i in range(ends.due_at, ends.due_at + ends.due_len):
        run = one.run[one.due[i]]
        if run.due > now + HORIZON_S:
            break
        _count_back(nodes, one, run, gpus)
    for i in range(ends.late_at + ends.late_len - 1, ends.late_at - 1, -1):
        run = one.run[one.late[i]]
        if how.overrun == DOUBLE and now + (now - run.start) > now + HORIZON_S:
            break
        _count_back(nodes, one, run, gpus)


@kernel
def _count_back(nodes, one, run, gpus):
    for c in range(run.at, run.at + run.len):
        gpus[1, nodes.row[one.chunk[c].node].type] += one.chunk[c].gpus
