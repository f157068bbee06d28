"""Two schedulers on the same windows: how much better one is, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.environment.reward import METRIC_COLUMN, METRIC_SIGN
from rltune.evaluation.intervals import bootstrap_improvement


@dataclass(frozen=True)
class Comparison:
    """Ours against theirs; means over windows of equal length."""

    metric: str
    sequence_jobs: int
    windows: int
    ours_mean: float
    theirs_mean: float
    ours_median: float
    theirs_median: float
    improvement: float
    """1 − Σ ours / Σ theirs; of utilisation, where more is better, Σ ours / Σ theirs − 1."""
    low: float
    high: float
    worst_tenth_share: float
    """Share of theirs' total that the worst tenth of windows carries (at least one window)."""


def select(windows: pd.DataFrame, sequence_jobs: int, which: dict[str, str]) -> pd.DataFrame:
    """The rows of one scheduler at one sequence length, in order of time.

    Raises ValueError when the filter meets none, or more than one scheduler.
    """
    rows = windows[windows["sequence_jobs"] == sequence_jobs]
    for column, value in which.items():
        rows = rows[rows[column] == value]
    if not len(rows):
        raise ValueError(f"no windows of {sequence_jobs} jobs for {which}")
    if rows["window"].duplicated().any():
        raise ValueError(f"{which} meets more than one scheduler at {sequence_jobs} jobs")
    return rows.sort_values("window")


def compare(
    windows: pd.DataFrame,
    metric: str,
    sequence_jobs: int,
    ours: dict[str, str],
    theirs: dict[str, str],
    bootstrap: int = 5000,
    confidence: float = 0.95,
    seed: int = 1,
) -> Comparison:
    """Compare two schedulers, given as column filters of windows.csv, window by window."""
    a, b = (select(windows, sequence_jobs, which) for which in (ours, theirs))
    if list(a["first_job"]) != list(b["first_job"]):
        raise ValueError(f"{ours} and {theirs} were run on different windows")
    x, y = (frame[METRIC_COLUMN[metric]].to_numpy(float) for frame in (a, b))
    low, high = bootstrap_improvement(x, y, bootstrap, confidence, seed)
    sign = METRIC_SIGN[metric]
    if sign < 0:
        low, high = -high, -low
    total = y.sum()
    worst = np.sort(y)[-max(1, round(len(y) / 10)) :].sum()
    return Comparison(
        metric, sequence_jobs, len(x), float(x.mean()), float(y.mean()), float(np.median(x)), float(np.median(y)),
        float(sign * (1 - x.sum() / total)) if total > 0 else float("nan"), low, high,
        float(worst / total) if total > 0 else float("nan"),
    )  # fmt: skip


def strong_baseline(windows: pd.DataFrame, metric: str, sequence_jobs: int) -> dict[str, str]:
    """Filter of the best baseline on these very test windows, in hindsight."""
    return {"role": "baseline", **_best(windows, metric, sequence_jobs, "baseline")}


def picked_baseline(windows: pd.DataFrame, metric: str, sequence_jobs: int) -> dict[str, str] | None:
    """Filter of the baseline that was best on validation windows; None where the validation part has no window."""
    if not ((windows["role"] == "baseline_validation") & (windows["sequence_jobs"] == sequence_jobs)).any():
        return None
    return {"role": "baseline", **_best(windows, metric, sequence_jobs, "baseline_validation")}


def _best(windows: pd.DataFrame, metric: str, sequence_jobs: int, role: str) -> dict[str, str]:
    rows = windows[(windows["role"] == role) & (windows["sequence_jobs"] == sequence_jobs)]
    if not len(rows):
        raise ValueError(f"no {role} rows among the windows of {sequence_jobs} jobs")
    labels = ["policy", "blocking", "placement"]
    means = METRIC_SIGN[metric] * rows.groupby(labels, sort=True)[METRIC_COLUMN[metric]].mean()
    return dict(zip(labels, means.idxmin(), strict=True))
