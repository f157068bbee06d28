"""What can be observed of a queued job (paper §3.2, Table 3), by name, and the sets of it that agents see.

A *feature* is one number of a queued job, about [0, 1]. Where it comes from says how often it is computed: once a job
(``job``), once a shape of job and state of the free GPUs (``shape``), once a pool and decision (``pool``), or once a
job and decision (``now``). A *set* is an ordered list of columns; ``docs/reference/features.md`` has both as tables.

The paper samples eight features a job by the state of the cluster: the job size, weighted, where the free GPUs are
scattered (CFF above 0.5), the urgency, weighted, where they lie together, and the number of candidate placements, weighted, where there
are several. Here a column keeps its place and meaning as far as that goes: two are *switched*, the last one says which
regime holds, and to weight is to multiply by 2.

=========  ==========================================  ==========================================
column     CFF ≤ 0.5, free GPUs lie together           CFF > 0.5, free GPUs are scattered
=========  ==========================================  ==========================================
1          requested time                              2 × job size
2          2 × urgency                                 wait
6          candidates; where several 2 × their number  candidates; where several 2 × their number
7          0                                           1
=========  ==========================================  ==========================================
"""

from dataclasses import dataclass

import numpy as np

JOB, SHAPE, POOL, NOW = range(4)
"""What a feature belongs to: a job as submitted; jobs that ask for the same, while nothing is taken or freed; a pool
and its queue at a decision; a job at a decision."""
EMPHASIS = 2.0
"""How many times as large a column is while the sampling has chosen it (paper: "select and weights"; our number)."""
CFF_THRESHOLD = 0.5
"""Largest fragmentation at which free GPUs lie together (our choice)."""


PER = ("job", "shape of job and state of the free GPUs", "pool and decision", "job and decision")
"""How often a feature of each of these is computed."""
CATEGORIES = VISIBLE, CLUSTER, ENGINEERED = "visible job", "cluster", "engineered"
"""The categories of the paper's Table 3: of the job itself, of what is free and queued, and made of these."""


@dataclass(frozen=True)
class Feature:
    """One number of a queued job."""

    name: str
    of: int
    """JOB, SHAPE, POOL or NOW."""
    category: str
    """VISIBLE, CLUSTER or ENGINEERED."""
    definition: str
    """How it is computed; *seconds* are estimated, *free* is now, *seen* are the jobs whose rows the agent gets."""
    source: str
    """T3: the paper's Table 3; eq.: an equation of its §3.2; ours; or whose else."""
    high: float = 1
    """Largest value that it takes."""
    low: float = 0
    """Least value that it takes."""
    raw: bool = False
    """Whether it is one fact that is only scaled; else it is computed of several."""


_TABLE = (
    Feature("gpus", JOB, VISIBLE, "GPUs / 64, cut at 1", "T3, requested GPUs", raw=True),
    Feature(
        "estimate",
        JOB,
        VISIBLE,
        "estimated run time / 12 h, cut at 1",
        "T3, requested time; scale of RLScheduler",
        raw=True,
    ),
    Feature(
        "cpus",
        JOB,
        VISIBLE,
        "CPUs / 512, cut at 1; where none were asked for, those that go with the GPUs",
        "T3, req_CPU",
        raw=True,
    ),
    Feature(
        "memory",
        JOB,
        VISIBLE,
        "memory / 4,096 GB, cut at 1; where none was asked for, what goes with the GPUs",
        "T3, req_mem",
        raw=True,
    ),
    Feature("vc", JOB, VISIBLE, "number of the pool from 0 / pools", "T3, virtual cluster", raw=True),
    Feature(
        "gpu_type", JOB, VISIBLE, "number of the first GPU type it may use, from 0 / types", "T3, GPU type", raw=True
    ),
    Feature("log_gpus", JOB, VISIBLE, "log2(1 + GPUs) / 7, cut at 2", "ours: 128 GPUs are 1", high=2, raw=True),
    Feature("log_estimate", JOB, VISIBLE, "log10(1 + seconds) / 6, cut at 2", "ours: 12 days are 1", high=2, raw=True),
    Feature("job_size", JOB, ENGINEERED, "log10(1 + GPUs × seconds) / 8, cut at 2", "T3, job size", high=2),
    Feature("can_schedule_now", SHAPE, CLUSTER, "1 when it could start now, split where plus_one or any let it", "T3"),
    Feature("num_ways", SHAPE, CLUSTER, "candidate placements now, counted to 8, / 8", "T3, num_ways_to_schedule"),
    Feature(
        "sampled_ways",
        SHAPE,
        CLUSTER,
        "num_ways, doubled from two candidates on",
        "§3.2, feature sampling",
        high=EMPHASIS,
    ),
    Feature(
        "dsr", SHAPE, ENGINEERED, "x / (1 + x), x = GPUs / free GPUs of the types it may use (at least 1)", "T3, eq. 1"
    ),
    Feature(
        "future_availability",
        SHAPE,
        ENGINEERED,
        "(free − its GPUs + GPUs expected back within 1 h) / all, of its types, cut at ±1",
        "T3, eq. 2",
        low=-1,
    ),
    Feature(
        "cff",
        POOL,
        ENGINEERED,
        "fragmentation, 1 − Σ free² / Σ (node size × free) over nodes; 0 when nothing is free",
        "T3, eq. 3",
    ),
    Feature("scattered", POOL, CLUSTER, "1 when cff is above 0.5", "regime of the sampling"),
    Feature("free_share", POOL, CLUSTER, "free GPUs / GPUs", "§3.2", raw=True),
    Feature("free_nodes", POOL, CLUSTER, "nodes of which every GPU is free / nodes", "T3", raw=True),
    Feature(
        "queue_length",
        POOL,
        CLUSTER,
        "log2(1 + jobs in the queue, unseen ones too) / 8, cut at 2",
        "ours: 255 jobs are 1",
        high=2,
        raw=True,
    ),
    Feature(
        "backlog",
        POOL,
        CLUSTER,
        "log10(1 + hours) / 3, cut at 2; hours the whole pool would need for the jobs seen",
        "ours: 1,000 h are 1",
        high=2,
    ),
    Feature(
        "next_release",
        POOL,
        CLUSTER,
        "t / (t + 10 min), t until the next expected end in the pool; 1 when nothing runs",
        "ours",
    ),
    Feature(
        "submit", NOW, VISIBLE, "submission since the sequence's first / 12 h, cut at 1", "T3, submit time", raw=True
    ),
    Feature("wait", NOW, VISIBLE, "wait so far / 12 h, cut at 1", "RLScheduler", raw=True),
    Feature("log_wait", NOW, VISIBLE, "log10(1 + seconds waited) / 6, cut at 2", "ours", high=2, raw=True),
    Feature("urgency", NOW, ENGINEERED, "wait / (wait + estimate)", "T3, job urgency score; formula ours"),
    Feature("rank_size", NOW, ENGINEERED, "share of the other jobs seen with less GPUs × seconds", "ours"),
    Feature("rank_estimate", NOW, ENGINEERED, "share of the other jobs seen with a shorter estimate", "ours"),
    Feature("rank_gpus", NOW, ENGINEERED, "share of the other jobs seen with fewer GPUs", "ours"),
    Feature(
        "rank_wait", NOW, ENGINEERED, "share of the other jobs seen with a shorter wait: 1 has waited longest", "ours"
    ),
    Feature("rank_base", NOW, ENGINEERED, "rank in the order of the base policy: 0 first, 1 last", "ours"),
)
FEATURES = {feature.name: feature for feature in _TABLE}
"""Every feature by its name."""


def slots(of: int) -> dict[str, int]:
    """Names of the features that belong to a job, shape, pool or job now, each with its number among them."""
    return {name: i for i, name in enumerate(f.name for f in FEATURES.values() if f.of == of)}


@dataclass(frozen=True)
class Column:
    """A column of a set: a feature, or one while free GPUs lie together and another while they are scattered."""

    names: tuple[str, str]
    """The features it shows, the first while free GPUs lie together."""
    weights: tuple[float, float] = (1.0, 1.0)
    """What they are multiplied by."""

    @property
    def switched(self) -> bool:
        """Whether what it shows depends on the state of the cluster."""
        return self.names[0] != self.names[1]

    def __str__(self) -> str:
        """``wait``, or ``2 · urgency or log_wait``."""
        shown = [n if w == 1 else f"{w:g} · {n}" for n, w in zip(self.names, self.weights, strict=True)]
        return shown[0] if not self.switched else " or ".join(shown)


def _columns(names: str) -> tuple[Column, ...]:
    return tuple(Column((name, name)) for name in names.split())


_GPUS, _FLAG, _SUPPLY = _columns("log_gpus"), _columns("scattered"), _columns("dsr future_availability")
_SWITCHED = (Column(("log_estimate", "job_size"), (1.0, EMPHASIS)), Column(("urgency", "log_wait"), (EMPHASIS, 1.0)))

FEATURE_SETS: dict[str, tuple[Column, ...]] = {
    "raw": _columns("gpus estimate submit cpus memory vc gpu_type wait"),
    "engineered": (*_GPUS, *_SWITCHED, *_SUPPLY, *_columns("can_schedule_now sampled_ways"), *_FLAG),
    "engineered7": (*_GPUS, *_SWITCHED, *_SUPPLY, *_columns("sampled_ways"), *_FLAG),
    "engineered9": (*_GPUS, *_SWITCHED, *_SUPPLY, *_columns("can_schedule_now sampled_ways"), *_FLAG, *_columns("cff")),
    "unsampled": _columns("log_gpus job_size urgency dsr future_availability can_schedule_now num_ways cff"),
    "rlscheduler": _columns("wait estimate gpus memory vc can_schedule_now"),
    "rich": _columns(
        "log_gpus log_estimate job_size log_wait urgency dsr future_availability can_schedule_now num_ways cff "
        "rank_size rank_estimate rank_gpus rank_wait rank_base queue_length free_share backlog next_release"
    ),
}
"""Columns of each set, in order.

- ``raw``: straight from the trace; naive RLTune.
- ``engineered``: the paper's eight sampled columns; pro RLTune.
- ``engineered7``, ``engineered9``: without can_schedule_now, which is 1 just where there is a candidate placement; with the CFF itself,
  of which the last column tells one bit. For the paper's study of the number of features.
- ``unsampled``: eight engineered columns that never change their meaning; shows what the sampling gains.
- ``rlscheduler``: RLScheduler's (Zhang et al., SC '20), as released, without the numbers of user and program.
- ``rich``: more than the paper's: ranks in the queue, the base policy's opinion and the state of the pool.
"""
CRITIC: tuple[Column, ...] = _columns("submit estimate gpus can_schedule_now wait")
"""Columns of the critic, whatever the set (paper §3.2)."""


def columns_of(features: str) -> tuple[Column, ...]:
    """Columns of a feature set. Raises ValueError where there is no such set."""
    if features not in FEATURE_SETS:
        raise ValueError(f"features: found {features!r}, expected one of {', '.join(FEATURE_SETS)}")
    return FEATURE_SETS[features]


def width_of(features: str) -> int:
    """Columns of a feature set, how many. Raises ValueError where there is no such set."""
    return len(columns_of(features))


def bounds_of(features: str) -> tuple[np.ndarray, np.ndarray]:
    """(Lowest, highest) value of each column of a feature set, both [width] float32. Raises ValueError for no set."""
    of = [[(FEATURES[n], w) for n, w in zip(c.names, c.weights, strict=True)] for c in columns_of(features)]
    low = [min(w * f.low for f, w in pair) for pair in of]
    return np.array(low, np.float32), np.array([max(w * f.high for f, w in pair) for pair in of], np.float32)
