"""What can be told of a queued job (paper §3.2, Table 3), by name, and the sets of it that agents see.

A *feature* is one number of a queued job, about [0, 1]. Where it comes from says how often it is computed: once a job
(``job``), once a shape of job and state of the free GPUs (``shape``), once a pool and decision (``pool``), or once a
job and decision (``now``). A *set* is an ordered list of columns; ``docs/reference/features.md`` has both as tables.

The paper samples eight features a job by the state of the cluster: the job size, weighted, where the free GPUs are
scattered (CFF above 0.5), the urgency, weighted, where they lie together, and the number of ways, weighted, where there
are several. Here a column keeps its place and meaning as far as that goes: two are *switched*, the last one says which
way, and to weight is to multiply by 2.

=========  ==========================================  ==========================================
column     CFF ≤ 0.5, free GPUs lie together           CFF > 0.5, free GPUs are scattered
=========  ==========================================  ==========================================
1          requested time                              2 × job size
2          2 × urgency                                 wait
6          ways; where there are several 2 × ways      ways; where there are several 2 × ways
7          0                                           1
=========  ==========================================  ==========================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

JOB, SHAPE, POOL, NOW = range(4)
"""What a feature belongs to: a job as submitted; jobs that ask for the same, while nothing is taken or freed; a pool
and its queue at a decision; a job at a decision."""
EMPHASIS = 2.0
"""How many times as large a column is while the sampling has chosen it (paper: "select and weights"; our number)."""
CFF_THRESHOLD = 0.5
"""Largest fragmentation at which free GPUs lie together (our choice)."""


@dataclass(frozen=True)
class Feature:
    """One number of a queued job."""

    name: str
    of: int
    """JOB, SHAPE, POOL or NOW."""
    low: float
    high: float
    """Its range, ends included."""


FEATURES: dict[str, Feature] = {
    name: Feature(name, of, low, high)
    for of, name, low, high in (
        (JOB, "gpus", 0, 1),
        (JOB, "estimate", 0, 1),
        (JOB, "cpus", 0, 1),
        (JOB, "memory", 0, 1),
        (JOB, "vc", 0, 1),
        (JOB, "gpu_type", 0, 1),
        (JOB, "log_gpus", 0, 2),
        (JOB, "log_estimate", 0, 2),
        (JOB, "job_size", 0, 2),
        (SHAPE, "can_schedule_now", 0, 1),
        (SHAPE, "num_ways", 0, 1),
        (SHAPE, "sampled_ways", 0, EMPHASIS),
        (SHAPE, "dsr", 0, 1),
        (SHAPE, "future_availability", -1, 1),
        (POOL, "cff", 0, 1),
        (POOL, "scattered", 0, 1),
        (POOL, "free_share", 0, 1),
        (POOL, "free_nodes", 0, 1),
        (POOL, "queue_length", 0, 2),
        (POOL, "backlog", 0, 2),
        (POOL, "next_release", 0, 1),
        (NOW, "submit", 0, 1),
        (NOW, "wait", 0, 1),
        (NOW, "log_wait", 0, 2),
        (NOW, "urgency", 0, 1),
        (NOW, "rank_size", 0, 1),
        (NOW, "rank_estimate", 0, 1),
        (NOW, "rank_gpus", 0, 1),
        (NOW, "rank_wait", 0, 1),
        (NOW, "place", 0, 1),
    )
}
"""Every feature by its name."""


def slots(of: int) -> dict[str, int]:
    """Names of the features that belong to a job, shape, pool or job now, each with its number among them."""
    return {name: i for i, name in enumerate(f.name for f in FEATURES.values() if f.of == of)}


@dataclass(frozen=True)
class Column:
    """A column of a set: a feature, or one while free GPUs lie together and another while they are scattered."""

    together: str
    scattered: str
    weight_together: float = 1.0
    weight_scattered: float = 1.0

    @property
    def switched(self) -> bool:
        """Whether what it shows depends on the state of the cluster."""
        return self.together != self.scattered

    @property
    def names(self) -> tuple[str, str]:
        """The features it shows."""
        return self.together, self.scattered

    @property
    def weights(self) -> tuple[float, float]:
        """What they are multiplied by."""
        return self.weight_together, self.weight_scattered

    def __str__(self) -> str:
        """``wait``, or ``2 · urgency or log_wait``."""
        shown = [n if w == 1 else f"{w:g} · {n}" for n, w in zip(self.names, self.weights, strict=True)]
        return shown[0] if not self.switched else " or ".join(shown)


def _columns(names: str) -> tuple[Column, ...]:
    return tuple(Column(name, name) for name in names.split())


_GPUS, _FLAG, _SUPPLY = _columns("log_gpus"), _columns("scattered"), _columns("dsr future_availability")
_SWITCHED = (Column("log_estimate", "job_size", 1.0, EMPHASIS), Column("urgency", "log_wait", EMPHASIS, 1.0))

FEATURE_SETS: dict[str, tuple[Column, ...]] = {
    "raw": _columns("gpus estimate submit cpus memory vc gpu_type wait"),
    "engineered": (*_GPUS, *_SWITCHED, *_SUPPLY, *_columns("can_schedule_now sampled_ways"), *_FLAG),
    "engineered7": (*_GPUS, *_SWITCHED, *_SUPPLY, *_columns("sampled_ways"), *_FLAG),
    "engineered9": (*_GPUS, *_SWITCHED, *_SUPPLY, *_columns("can_schedule_now sampled_ways"), *_FLAG, *_columns("cff")),
    "unsampled": _columns("log_gpus job_size urgency dsr future_availability can_schedule_now num_ways cff"),
    "rlscheduler": _columns("wait estimate gpus memory vc can_schedule_now"),
    "rich": _columns(
        "log_gpus log_estimate job_size log_wait urgency dsr future_availability can_schedule_now num_ways cff "
        "rank_size rank_estimate rank_gpus rank_wait place queue_length free_share backlog next_release"
    ),
}
"""Columns of each set, in order.

- ``raw``: straight from the trace; naive RLTune.
- ``engineered``: the paper's eight sampled columns; pro RLTune.
- ``engineered7``, ``engineered9``: without can_schedule_now, which is 1 just where there is a way; with the CFF itself,
  of which the last column tells one bit. For the paper's study of the number of features.
- ``unsampled``: eight engineered columns that never change their meaning; shows what the sampling is worth.
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
