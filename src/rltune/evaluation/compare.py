"""Two schedulers on the same windows: how much better one is, and how sure that is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from rltune.environment.reward import METRIC_COLUMN, METRIC_SIGN, SPAN
from rltune.evaluation.intervals import NAN, Intervals, improved

COLUMN = {**METRIC_COLUMN, SPAN: SPAN}
"""Column of the windows that each comparison is of: utilisation over the submission span next to that over the makespan."""
SIGN = {**METRIC_SIGN, SPAN: METRIC_SIGN["utilisation"]}
BASE, RANDOM, STRONG, PICKED = "base policy", "random order", "best rule in hindsight", "rule picked on validation"
"""Whom an agent is compared with."""


@dataclass(frozen=True)
class Comparison:
    """Ours against theirs; means over windows of equal length, and over training seeds."""

    metric: str
    sequence_jobs: int
    windows: int
    seeds: int
    ours_mean: float
    theirs_mean: float
    ours_median: float
    theirs_median: float
    improvement: float
    """1 − Σ ours / Σ theirs; of utilisation, where more is better, Σ ours / Σ theirs − 1."""
    low: float
    high: float
    p: float
    """Two-sided; of this comparison alone."""
    seed_low: float
    """The least improvement of one seed."""
    seed_high: float
    worst_tenth_share: float
    """Share of theirs' total that the worst tenth of windows carries (at least one window)."""


def where(frame: pd.DataFrame, **values: object) -> pd.DataFrame:
    """Rows whose columns have these values."""
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return frame


def select(windows: pd.DataFrame, sequence_jobs: int, which: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of one scheduler at one sequence length, in order of time.

    Raises ValueError when the filter meets none, or more than one scheduler.
    """
    rows = where(windows, sequence_jobs=sequence_jobs, **which)
    if not len(rows):
        raise ValueError(f"no windows of {sequence_jobs} jobs for {which}")
    if rows["window"].duplicated().any():
        raise ValueError(f"{which} meets more than one scheduler at {sequence_jobs} jobs")
    return rows.sort_values("window")


def compare(
    windows: pd.DataFrame | Sequence[pd.DataFrame],
    metric: str,
    sequence_jobs: int,
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    by: Intervals,
) -> Comparison:
    """Compare two schedulers, given as column filters of windows.csv, window by window.

    ``windows``: the table, or one table per training seed of the same setting. ``metric``: one of COLUMN; windows in
    which either side has no value of it are left out. ``by``: Intervals, or a run's ``evaluation``. Raises ValueError where the windows differ.
    """
    tables = [windows] if isinstance(windows, pd.DataFrame) else list(windows)
    sides = [[select(table, sequence_jobs, which) for table in tables] for which in (ours, theirs)]
    if len({tuple(frame["first_job"]) for side in sides for frame in side}) > 1:
        raise ValueError(f"{ours} and {theirs} were run on different windows")
    x, y = (np.stack([frame[COLUMN[metric]].to_numpy(float) for frame in side]) for side in sides)
    known = ~np.isnan(x + y).any(axis=0)
    x, y = x[:, known], y[:, known]
    sign = SIGN[metric]
    found = improved(x, y, by.bootstrap)
    low, high = (found.low, found.high) if sign > 0 else (-found.high, -found.low)
    each = [_improvement(sign, *pair) for pair in zip(x, y, strict=True)]
    rival = np.sort(sign * y.mean(axis=0))
    worst = sign * rival[-max(1, round(len(rival) / 10)) :].sum()
    means, medians = ([float(of(side)) if side.size else NAN for side in (x, y)] for of in (np.mean, np.median))
    gains = (sign * found.gain, low, high, found.p, min(each), max(each))
    share = float(worst / y.mean(axis=0).sum()) if y.sum() > 0 else NAN
    return Comparison(metric, sequence_jobs, x.shape[1], len(tables), *means, *medians, *gains, share)


def against_all(windows: pd.DataFrame, metrics: Iterable[str], by: Intervals) -> pd.DataFrame:
    """The agent of a windows.csv against BASE, RANDOM, STRONG and, where there are validation windows, PICKED.

    A row per metric × window length × opponent: against, policy and backfill (the opponent's), the fields of Comparison.
    """
    rows = []
    for metric, n in product(metrics, sorted(windows["sequence_jobs"].unique())):
        rules = {STRONG: strong_baseline(windows, metric, n), PICKED: picked_baseline(windows, metric, n)}
        for against, theirs in {BASE: {"role": "base"}, RANDOM: {"role": "random"}, **rules}.items():
            if theirs is None:
                continue
            labels = select(windows, n, theirs)[["policy", "backfill"]].iloc[0]
            found = compare(windows, metric, n, {"role": "rltune"}, theirs, by)
            rows.append({"against": against, **labels, **asdict(found)})
    return pd.DataFrame(rows)


def _improvement(sign: float, ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(sign * (1 - ours.sum() / theirs.sum())) if theirs.sum() > 0 else NAN


def strong_baseline(windows: pd.DataFrame, metric: str, sequence_jobs: int) -> dict[str, str]:
    """Filter of the best baseline on these very test windows, in hindsight."""
    return {"role": "baseline", **_best(windows, metric, sequence_jobs, "baseline")}


def picked_baseline(windows: pd.DataFrame, metric: str, sequence_jobs: int) -> dict[str, str] | None:
    """Filter of the baseline that was best on validation windows; None where the validation part has no window."""
    if where(windows, role="baseline_validation", sequence_jobs=sequence_jobs).empty:
        return None
    return {"role": "baseline", **_best(windows, metric, sequence_jobs, "baseline_validation")}


def _best(windows: pd.DataFrame, metric: str, sequence_jobs: int, role: str) -> dict[str, str]:
    rows = where(windows, role=role, sequence_jobs=sequence_jobs)
    if not len(rows):
        raise ValueError(f"no {role} rows among the windows of {sequence_jobs} jobs")
    labels = ["policy", "backfill", "placement"]
    means = SIGN[metric] * rows.groupby(labels, sort=True)[COLUMN[metric]].mean()
    return dict(zip(labels, means.idxmin(), strict=True))
