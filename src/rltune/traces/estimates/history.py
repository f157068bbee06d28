"""What an estimate is made for, and the run times of earlier, similar jobs that are known when a job is submitted.

A job's run time is known from its end on, which in a recorded trace is submission + recorded wait (0 where none is
recorded) + run time; an end at the time of a submission is known to it, as completions come before arrivals.
A model sees nothing else: neither later jobs nor those still running.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.config.trace import Predictions
from rltune.traces.columns import TraceMeta
from rltune.traces.table import recorded_run_s

LAST = 10
"""Jobs that a rolling median looks back on; our choice, between what suits Venus (5) and Philly (50) on the first 90 %
of their rows."""
START_S = 3600.0
"""Estimate while nothing at all is known, seconds; our choice."""

GROUPS: dict[str, tuple[str, ...]] = {
    "user, VC and size": ("user", "vc", "size"),
    "user": ("user",),
    "VC and size": ("vc", "size"),
    "size": ("size",),
    "all jobs": (),
}
"""Groups of jobs that are like a new one, the most alike first. Size: GPUs, of CPU jobs CPUs. A job without a user is
in no group by user; a missing VC counts as a separate VC."""
NOTHING_KNOWN = f"nothing known yet: {START_S:.0f} s"


@dataclass(frozen=True)
class Known:
    """The run times of one group that each of J jobs can look back on."""

    log_s: np.ndarray
    """[J, LAST] natural logarithms of run times in s, latest first; NaN where there are fewer."""
    count: np.ndarray
    """[J] int64: how many are known in all."""

    @property
    def median(self) -> np.ndarray:
        """[J] median of the logarithms; NaN where none is known."""
        ordered = np.sort(self.log_s, axis=1)  # NaN last
        there = np.minimum(self.count, self.log_s.shape[1])
        rows = np.arange(len(there))
        low, high = (ordered[rows, np.maximum(i, 0)] for i in ((there - 1) // 2, there // 2 - (there == 0)))
        return (low + high) / 2


def mean_known(values: np.ndarray) -> np.ndarray:
    """Mean of each row's numbers [J] of ``values`` [J, n]; NaN where there are none."""
    there = ~np.isnan(values)
    number = there.sum(axis=1)
    return np.where(number > 0, np.where(there, values, 0.0).sum(axis=1) / np.maximum(number, 1), np.nan)


def end_s(jobs: pd.DataFrame) -> np.ndarray:
    """When each job's run time becomes known, seconds since t0 (float64); always after its own submission."""
    submit = jobs["submit_s"].to_numpy(np.float64)
    wait = jobs["wait_s"].fillna(0.0).to_numpy(np.float64)
    return np.maximum(submit + wait + recorded_run_s(jobs).to_numpy(np.float64), np.nextafter(submit, np.inf))


def job_size(jobs: pd.DataFrame) -> np.ndarray:
    """GPUs of GPU jobs, CPUs of CPU jobs (float64; −1 where not known)."""
    cpus = jobs["cpus"].fillna(-1.0).to_numpy(np.float64)
    return np.where(jobs["resource"] == "gpu", jobs["gpus"].to_numpy(np.float64), cpus)


def group_keys(jobs: pd.DataFrame) -> dict[str, np.ndarray]:
    """Group → number of the group each job is in (int64); −1: in none."""
    seen = pd.DataFrame({"user": jobs["user"], "vc": jobs["vc"], "size": job_size(jobs), "all": 0})
    keys = {}
    for name, columns in GROUPS.items():
        key = seen.groupby([*columns, "all"], sort=False, dropna=False).ngroup().to_numpy(np.int64)
        keys[name] = np.where(seen["user"].isna(), -1, key) if "user" in columns else key
    return keys


def known(key: np.ndarray, submit_s: np.ndarray, ended_s: np.ndarray, log_run: np.ndarray) -> Known:
    """What each job can look back on in its group.

    Args:
        key: [J] number of the group; −1: in none.
        submit_s: [J] submission, s.
        ended_s: [J] when its run time becomes known, s.
        log_run: [J] logarithm of its run time in s.
    """
    jobs = len(key)
    times = np.concatenate([ended_s, submit_s])
    asks = np.repeat([False, True], jobs)
    order = np.lexsort((asks, times, np.tile(key, 2)))  # by group, then time, ends before submissions
    ends = ~asks[order]
    past = np.cumsum(ends)  # ends so far, over all groups
    new_group = np.r_[True, np.diff(np.tile(key, 2)[order]) != 0]
    before_group = np.maximum.accumulate(np.where(new_group, past - ends, 0))
    at, begin = np.empty(jobs, np.int64), np.empty(jobs, np.int64)
    who = order[~ends] - jobs
    at[who], begin[who] = past[~ends], before_group[~ends]
    count = np.where(key < 0, 0, at - begin)
    values = log_run[order[ends]]
    rows = at[:, None] - 1 - np.arange(LAST)
    there = np.arange(LAST) < count[:, None]
    return Known(np.where(there, values[np.maximum(rows, 0)], np.nan), count)


def all_known(jobs: pd.DataFrame) -> dict[str, Known]:
    """Group → what each job can look back on in it."""
    submit, ended = jobs["submit_s"].to_numpy(np.float64), end_s(jobs)
    log_run = np.log(jobs["run_s"].to_numpy(np.float64))
    return {name: known(key, submit, ended, log_run) for name, key in group_keys(jobs).items()}


def rolling_median(groups: dict[str, Known]) -> tuple[np.ndarray, np.ndarray]:
    """(Estimate [J] in s, the group it is from [J] str): the most alike of which any run time is known.

    The median is of the logarithms of the last LAST run times known; START_S where nothing is.
    """
    count = len(next(iter(groups.values())).count)
    seconds, source = np.full(count, START_S), np.full(count, NOTHING_KNOWN, dtype=object)
    for name, group in reversed(groups.items()):
        some = group.count > 0
        seconds[some], source[some] = np.exp(group.median[some]), name
    return seconds, source


MIN_ESTIMATE_S = 1.0


@dataclass(frozen=True)
class Request:
    """Jobs to estimate the run times of, and what else some kinds need."""

    jobs: pd.DataFrame
    """In the order of submission; history is what it holds, no more."""
    meta: TraceMeta
    sigma: float = 0.0
    seed: int = 0
    predictions: Predictions | None = None
    root: Path = Path()
    """Folder that a relative path in ``predictions`` starts from."""

    def else_rolling(self, seconds: np.ndarray, source: str, other: str) -> tuple[np.ndarray, np.ndarray]:
        """``seconds`` [J] where they are not NaN, else the rolling median; what each is made from."""
        there = ~np.isnan(seconds)
        rolling, _ = rolling_median(all_known(self.jobs))
        return np.where(there, seconds, rolling), np.where(there, source, other).astype(object)
