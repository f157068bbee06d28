"""What a trace is like, in figures: the same for real rows and generated ones, with how near they have to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.traces.split import disjoint_windows

OUTAGES = 20
"""Longest gaps left out of their coefficient of variation: outages and holidays."""
RARE = 1000
"""One bin in this many, the fullest, is left out of the dispersion of counts, which a single flood would decide."""
BINS_S = (60, 600, 3600, 21_600)
CLOSE_S = 60
"""Consecutive submissions this near count as a burst."""
ALIKE = 1.25
"""Run times within this factor are alike."""
WINDOW = 256
"""Jobs of a window (paper §4.1)."""
CLASSES = {"1 GPU": (1, 1), "2–7 GPUs": (2, 7), "8 GPUs": (8, 8), "over 8 GPUs": (9, 10**9)}


@dataclass(frozen=True)
class Tolerance:
    """How near is near enough: within a factor, or within a difference."""

    factor: float | None = None
    difference: float | None = None

    def holds(self, ours: float, theirs: float) -> bool:
        """Whether ``ours`` is as near to ``theirs`` as it has to be."""
        if self.difference is not None:
            return abs(ours - theirs) <= self.difference
        assert self.factor is not None
        return theirs / self.factor <= ours <= theirs * self.factor

    def __str__(self) -> str:
        return f"± {self.difference:g}" if self.difference is not None else f"× {self.factor:g}"


WAITS = Tolerance(factor=2)
"""Mean waits of FIFO, SJF and SAF."""
_TWICE, _HALF_AGAIN, _CORRELATION = Tolerance(factor=2), Tolerance(factor=1.5), Tolerance(difference=0.15)

TOLERANCES: dict[str, Tolerance] = {
    "arrivals, jobs per s": _TWICE,
    "inter-arrival CV": _HALF_AGAIN,
    "gaps of at most 1 s": Tolerance(difference=0.1),
    "gaps of at most 10 s": Tolerance(difference=0.15),
    **{f"dispersion of counts, {b} s": _TWICE for b in BINS_S},
    "share of the busiest 8 hours": Tolerance(difference=0.1),
    **{f"run time, {q} % quantile, s": _TWICE for q in (10, 25, 50, 75, 90, 95)},
    "run time, mean, s": _HALF_AGAIN,
    **{f"share of {c}": Tolerance(difference=0.08) for c in CLASSES},
    "GPUs, mean": _HALF_AGAIN,
    **{f"run time of {c}, {q} % quantile, s": _TWICE for c in CLASSES for q in (50, 90)},
    "run time with GPUs (rank correlation)": _CORRELATION,
    **{
        f"{what} of jobs {lag} apart (rank correlation)": _CORRELATION
        for what in ("run times", "GPUs")
        for lag in (1, 20)
    },
    "bursts: same GPUs as the job before": _CORRELATION,
    "bursts: run time like the job before's": _CORRELATION,
    "GPU time of windows of 256, CV": _TWICE,
    "span of windows of 256, median, s": _TWICE,
    "share of the busiest VC": Tolerance(difference=0.1),
    "share of the three busiest VCs": Tolerance(difference=0.1),
    "share of the busiest 5 % of users": _CORRELATION,
    "run time explained by user": _CORRELATION,
    "recorded wait, mean, s": _TWICE,
    "requested over run time, median": _TWICE,
    "ran longer than requested": Tolerance(difference=0.05),
    "requested with run time (rank correlation)": _CORRELATION,
    "recorded wait with run time (rank correlation)": _CORRELATION,
}
"""Every figure with its tolerance, our choice: about as near as the months of a real trace are to each other."""


def describe(jobs: pd.DataFrame, t0: pd.Timestamp, sample: int = 1) -> dict[str, float]:
    """The figures of :data:`TOLERANCES` that the rows can give.

    Args:
        jobs: columns ``submit_s`` (ascending), ``gpus`` (processors for CPU traces), ``run_s``, and ``vc`` and
            ``user`` with nulls where unknown; where there, ``wait_s`` and ``requested_s`` count as well.
        t0: local time of ``submit_s`` 0.
        sample: how many times faster the clock of ``submit_s`` runs (1: as it is).
    """
    submit_s = jobs["submit_s"].to_numpy(np.float64)
    run_s, gpus = jobs["run_s"].to_numpy(np.float64), jobs["gpus"].to_numpy(np.float64)
    found = {**_arrivals(submit_s), "share of the busiest 8 hours": _busiest(submit_s, t0, sample)}
    found |= {f"run time, {q} % quantile, s": float(np.quantile(run_s, q / 100)) for q in (10, 25, 50, 75, 90, 95)}
    found |= {"run time, mean, s": float(run_s.mean()), "GPUs, mean": float(gpus.mean())}
    for name, (low, high) in CLASSES.items():
        inside = (gpus >= low) & (gpus <= high)
        found[f"share of {name}"] = float(inside.mean())
        if inside.sum() >= 20:
            found |= {
                f"run time of {name}, {q} % quantile, s": float(np.quantile(run_s[inside], q / 100)) for q in (50, 90)
            }
    return found | _alike(submit_s, run_s, gpus) | _windows(submit_s, run_s * gpus) | _skew(jobs) | _asked(jobs)


def _arrivals(submit_s: np.ndarray) -> dict[str, float]:
    gaps, since = np.diff(submit_s), submit_s - submit_s[0]
    usual = np.sort(gaps)[:-OUTAGES] if len(gaps) > 2 * OUTAGES else gaps
    found = {
        "arrivals, jobs per s": len(gaps) / float(since[-1]),
        "inter-arrival CV": float(usual.std() / usual.mean()),
        "gaps of at most 1 s": float((gaps <= 1).mean()),
        "gaps of at most 10 s": float((gaps <= 10).mean()),
    }
    for width_s in BINS_S:
        counts = np.sort(np.bincount((since // width_s).astype(np.int64)))
        counts = counts[: len(counts) - len(counts) // RARE]
        found[f"dispersion of counts, {width_s} s"] = float(counts.var() / counts.mean()) if counts.any() else 0.0
    return found


def _busiest(submit_s: np.ndarray, t0: pd.Timestamp, sample: int) -> float:
    """Share of submissions in the busiest 8 hours in a row of the day; bursts count once."""
    begins = submit_s[np.append(True, np.diff(submit_s) > CLOSE_S / sample)]
    midnight_s = (t0 - t0.normalize()).total_seconds()
    hour = ((midnight_s + begins * sample) // 3600).astype(np.int64) % 24
    shares = np.bincount(hour, minlength=24) / len(hour)
    return float(max(np.roll(shares, -h)[:8].sum() for h in range(24)))


def _alike(submit_s: np.ndarray, run_s: np.ndarray, gpus: np.ndarray) -> dict[str, float]:
    run, count = (pd.Series(x).rank().to_numpy() for x in (run_s, gpus))
    found = {"run time with GPUs (rank correlation)": _correlation(run, count)}
    for lag in (1, 20):
        found[f"run times of jobs {lag} apart (rank correlation)"] = _correlation(run[lag:], run[:-lag])
        found[f"GPUs of jobs {lag} apart (rank correlation)"] = _correlation(count[lag:], count[:-lag])
    close = np.diff(submit_s) < CLOSE_S
    if close.any():
        found["bursts: same GPUs as the job before"] = float((np.diff(gpus) == 0)[close].mean())
        like = np.abs(np.diff(np.log(run_s))) < np.log(ALIKE)
        found["bursts: run time like the job before's"] = float(like[close].mean())
    return found


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    varied = len(a) > 1 and a.std() > 0 and b.std() > 0
    return float(np.corrcoef(a, b)[0, 1]) if varied else 0.0


def _windows(submit_s: np.ndarray, work: np.ndarray) -> dict[str, float]:
    if len(work) < WINDOW:
        return {}
    first = disjoint_windows(0, len(work), WINDOW)
    sums = work[first[:, None] + np.arange(WINDOW)].sum(axis=1)
    return {
        "GPU time of windows of 256, CV": float(sums.std() / sums.mean()),
        "span of windows of 256, median, s": float(np.median(submit_s[first + WINDOW - 1] - submit_s[first])),
    }


def _skew(jobs: pd.DataFrame) -> dict[str, float]:
    found = {}
    if jobs["vc"].notna().any():
        shares = jobs["vc"].value_counts(normalize=True)
        found["share of the busiest VC"] = float(shares.iloc[0])
        found["share of the three busiest VCs"] = float(shares.iloc[:3].sum())
    if jobs["user"].notna().any():
        known = jobs[jobs["user"].notna()]
        shares = known["user"].value_counts(normalize=True)
        found["share of the busiest 5 % of users"] = float(shares.iloc[: max(1, round(len(shares) / 20))].sum())
        log_run = np.log(known["run_s"])
        by_user = log_run.groupby(known["user"]).transform("mean")
        found["run time explained by user"] = float(by_user.var() / log_run.var())
    return found


def _asked(jobs: pd.DataFrame) -> dict[str, float]:
    """What is recorded of waits, and what jobs asked for, where the rows have it."""
    found = {}
    wait = jobs["wait_s"].notna() if "wait_s" in jobs else np.zeros(len(jobs), bool)
    if wait.any():
        found["recorded wait, mean, s"] = float(jobs["wait_s"].mean())
    asked = jobs["requested_s"].notna() if "requested_s" in jobs else np.zeros(len(jobs), bool)
    if asked.any():
        run_s, wanted_s = (jobs.loc[asked, c].astype(np.float64) for c in ("run_s", "requested_s"))
        found["requested over run time, median"] = float((wanted_s / run_s).median())
        found["ran longer than requested"] = float((run_s > wanted_s).mean())
        found["requested with run time (rank correlation)"] = float(run_s.rank().corr(wanted_s.rank()))
        if wait.any():
            waited = jobs.loc[asked, "wait_s"].astype(np.float64)
            found["recorded wait with run time (rank correlation)"] = float(run_s.rank().corr(waited.rank()))
    return found
