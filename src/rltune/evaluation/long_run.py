"""One long sequence instead of many windows: consecutive jobs from an idle cluster (paper, Section 5.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.evaluation.contenders import Contender, Course, run
from rltune.evaluation.intervals import improved
from rltune.simulator.metrics import job_table
from rltune.traces.split import Split

LONGEST = 10_000
"""Jobs of the sequence, at most (paper, Figure 17)."""
BLOCK_JOBS = 256
"""Jobs that are resampled together, at least, where there are as many."""


@dataclass(frozen=True)
class LongComparison:
    """Ours against theirs on one sequence; means over its jobs."""

    jobs: int
    blocks: int
    ours_mean: float
    theirs_mean: float
    improvement: float
    """1 − Σ ours / Σ theirs."""
    low: float
    high: float


def span_of(split: Split, most: int = LONGEST) -> tuple[int, int]:
    """(First job, number of jobs) of the sequence: the first of the test part, all of it where it is not longer."""
    begin, end = split.test
    return begin, min(most, end - begin)


def long_run(course: Course, contenders: dict[str, Contender], first: int, n: int) -> pd.DataFrame:
    """A row a contender × job, in the order of submission: ``who``, and the columns of
    rltune.simulator.metrics.job_table."""
    frames = []
    for name, contender in contenders.items():
        state, _ = run(course, contender, np.array([first]), np.array([n]))
        frames.append(job_table(course.jobs, state).drop(columns="sequence").assign(who=name))
    return pd.concat(frames, ignore_index=True)


def compare_long(
    ours: np.ndarray, theirs: np.ndarray, bootstrap: int = 5000, confidence: float = 0.95, seed: int = 1
) -> LongComparison:
    """Two schedulers on the same jobs [J], in the order of submission, of a metric to be minimised.

    The interval is that of rltune.evaluation.intervals, over blocks of at least BLOCK_JOBS consecutive jobs in the
    place of windows. One sequence is one course of events: what a job waits for was decided many jobs before, and
    where a backlog outlasts the blocks drawn together the interval is too narrow.
    """
    blocks = max(1, len(ours) // BLOCK_JOBS)
    begins = np.linspace(0, len(ours), blocks + 1).astype(np.int64)[:-1]
    x, y = np.add.reduceat(ours, begins), np.add.reduceat(theirs, begins)
    found = improved(x, y, bootstrap, confidence, seed)
    return LongComparison(len(ours), blocks, float(ours.mean()), float(theirs.mean()), *found[:3])
