"""How near simulated waits are to those that a log recorded: one measure, for `rltune init` and for the report.

The nearer of two simulations is the one whose waits are off by the smaller factor, job by job. It is bounded for each
job (MOST), because what a log records besides queueing, such as time held back by dependencies, lengthens some waits by
hours: sums of hours are then those of few jobs, and favour whatever rule waits too long for another reason. How far hours
in all and ranks are apart says whether even the nearest is near enough.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

MINUTE_S = 60.0
"""Below it a wait is none, s: Slurm looks at its queue every half minute to minute. Added to both waits before they are
divided by each other."""
MOST = 4.0
"""A job's wait counts as off by this factor at most. Our choice; on simulated logs, with a part of the waits lengthened
or a tenth of the jobs missing, the right rule was found more often than without."""
FAR = 2.0
"""A simulation with more than so many times the recorded hours, or less than one over it, is far off. Our choice."""
LEAST_RANK = 0.5
"""Spearman's correlation of simulated with recorded waits, job by job, below which it is far off too. Our choice: hours
in all can be near by chance, while other jobs wait than did."""


@dataclass(frozen=True)
class Nearness:
    """Simulated waits next to recorded ones, of the jobs whose wait is recorded; NaN where nothing is known."""

    jobs: int
    recorded_h: float
    """Hours that they waited."""
    simulated_h: float
    ratio: float
    """Simulated over recorded hours; NaN where nobody waited."""
    rank: float
    """Spearman's correlation, job by job, of waits in which those below MINUTE_S are none; NaN where all are the same."""
    factor: float
    """By which a job's wait is off, the one way or the other, with MINUTE_S added to both and MOST at most: geometric
    mean over jobs, from 1 (the same) to MOST."""

    @property
    def recorded_mean_s(self) -> float:
        """Mean recorded wait, s."""
        return self.recorded_h * 3600 / self.jobs if self.jobs else np.nan

    @property
    def simulated_mean_s(self) -> float:
        """Mean simulated wait of the same jobs, s."""
        return self.simulated_h * 3600 / self.jobs if self.jobs else np.nan

    def silent(self, least_wait_s: float) -> bool:
        """Whether these waits say nothing: none are recorded, or nobody waits by either account."""
        return not self.jobs or max(self.recorded_mean_s, self.simulated_mean_s) < least_wait_s

    def hours_far(self, least_wait_s: float) -> bool:
        """Whether hours in all are further apart than FAR."""
        return not self.silent(least_wait_s) and not 1 / FAR <= self.ratio <= FAR

    def ranks_far(self, least_wait_s: float) -> bool:
        """Whether other jobs wait than did: a correlation below LEAST_RANK."""
        return not self.silent(least_wait_s) and self.rank < LEAST_RANK

    def near(self, least_wait_s: float) -> bool:
        """Whether the simulation can stand for the log; True where the waits say nothing."""
        return not self.hours_far(least_wait_s) and not self.ranks_far(least_wait_s)


def nearness(simulated_s: np.ndarray, recorded_s: np.ndarray) -> Nearness:
    """Simulated and recorded waits of the same jobs [J], s; a recorded one that is not known is NaN."""
    known = ~np.isnan(recorded_s)
    ours, theirs = np.asarray(simulated_s, float)[known], np.asarray(recorded_s, float)[known]
    if not len(ours):
        return Nearness(0, *[np.nan] * 5)
    waited = [pd.Series(np.where(side < MINUTE_S, 0.0, side)) for side in (ours, theirs)]
    varied = len(ours) > 2 and all(side.nunique() > 1 for side in waited)
    off = np.minimum(np.abs(np.log((ours + MINUTE_S) / (theirs + MINUTE_S))), np.log(MOST))
    return Nearness(
        len(ours),
        float(theirs.sum() / 3600),
        float(ours.sum() / 3600),
        float(ours.sum() / theirs.sum()) if theirs.sum() > 0 else np.nan,
        float(waited[0].corr(waited[1], method="spearman")) if varied else np.nan,
        float(np.exp(off.mean())),
    )
