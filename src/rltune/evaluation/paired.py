"""Paired comparisons of waits on the same windows, and how a gain is shared out, each with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rltune.evaluation.intervals import Improvement, improved


@dataclass(frozen=True)
class Judge:
    """How intervals are made: resamples, level, seed."""

    bootstrap: int = 5000
    confidence: float = 0.95
    seed: int = 1

    def less(self, ours: np.ndarray, theirs: np.ndarray, parts: Sequence[int] = ()) -> Improvement:
        """How much less ours are, with interval and p-value. Both [windows], in order of time; ``parts``: as bootstrap's."""
        return improved(ours, theirs, self.bootstrap, self.confidence, self.seed, parts=parts)

    def longer(self, ours: np.ndarray, theirs: np.ndarray, jobs: np.ndarray) -> Improvement:
        """How much longer ours wait a job in the mean, in the unit of the sums, with interval and p-value.

        ``ours`` and ``theirs``: sums over the jobs of each window, ``jobs``: their numbers, all [windows] or
        [seeds, windows]. Unlike a fraction it is there where theirs did not wait at all.
        """
        return improved(jobs - (ours - theirs), jobs, self.bootstrap, self.confidence, self.seed, float("inf"))

    def share(self, start: np.ndarray, part: np.ndarray, whole: np.ndarray) -> tuple[float, float, float]:
        """Which share of what ``whole`` gains over ``start`` is gained by ``part``, and its interval.

        (Σ start − Σ part) / (Σ start − Σ whole) of waits [windows]; over 1 where the part waits less than the whole;
        below 0 where it waits longer than the start; NaN where the whole gains nothing.
        """
        rest = improved(start - part, start - whole, self.bootstrap, self.confidence, self.seed, float("inf"))
        return 1 - rest.gain, 1 - rest.high, 1 - rest.low
