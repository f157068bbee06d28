"""Parts of calibrated estimates: weights for jobs still running, a recalibrated estimate, trees over it.

Of the jobs submitted so far, those whose run time is known are mostly the short ones: the long ones still run. A model
of the known ones alone underestimates every run time, the more so the more its inputs reveal how long ago a job was
submitted. So each known job stands for those like it that still run (inverse probability of censoring, Robins and
Rotnitzky 1992; for trees, Hothorn et al. 2006), and no input reveals the date: neither counts that grow with the trace,
nor hour and weekday, of which few have been seen.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from rltune.traces.columns import TraceMeta
from rltune.traces.estimates.history import all_known, group_keys, known, mean_known
from rltune.traces.estimates.kinds import history_lightgbm

HEAVIEST = 20.0
"""Largest weight of a job, so that one of the longest does not decide by itself. Our choice."""
BINS = 24
"""Quantile bins of a smooth curve, and …"""
SHRINK = 10.0
"""… the weight with which each bin's mean is drawn towards 0. Our choices."""
PARAMETERS = {
    **history_lightgbm.PARAMETERS,
    "objective": "regression",
    "learning_rate": 0.08,
    "num_leaves": 31,
    "min_data_in_leaf": 100,
    "max_bin": 63,
}
"""These leaves were best on the first 80 % of real Philly and Venus rows, and no worse on PAI."""
RECENT = 3
"""Of the jobs submitted last, those whose estimates are averaged by themselves as well. Our choice."""

Curve = Callable[[np.ndarray], np.ndarray]


def censoring_weights(elapsed_s: np.ndarray, run_s: np.ndarray) -> np.ndarray:
    """How many jobs each known one stands for (float64, shape of ``run_s``), 1 to HEAVIEST.

    A run time is known only when at least that long has passed since the job's start: its weight is one over the
    share of all jobs of which that much has.

    Args:
        elapsed_s: [J] of every job submitted so far, time since its start, s; negative before it.
        run_s: [K] run times of the known ones, s.
    """
    elapsed = np.sort(elapsed_s)
    long_ago = len(elapsed) - np.searchsorted(elapsed, run_s, side="left")
    return np.minimum(len(elapsed) / np.maximum(long_ago, 1), HEAVIEST)


def binned(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> Curve:
    """A curve through the weighted means of y in quantile bins of x, straight between their centres and level outside.

    Each mean is drawn towards 0 as if by SHRINK more points there.
    """
    cuts = np.unique(np.quantile(x, np.arange(1, BINS) / BINS))
    own = np.searchsorted(cuts, x)
    total, sum_x, sum_y = (np.bincount(own, weight * v, len(cuts) + 1) for v in (np.ones(len(x)), x, y))
    some = total > 0
    centre, mean = sum_x[some] / total[some], sum_y[some] / (total[some] + SHRINK)
    return lambda new: np.interp(new, centre, mean)


def recalibration(log_given: np.ndarray, log_run: np.ndarray, weight: np.ndarray) -> Curve:
    """Expected logarithm of the run time as a function of the logarithm of the estimate: a line and what bins add."""
    mean_x, mean_y = np.average(log_given, weights=weight), np.average(log_run, weights=weight)
    spread = np.average((log_given - mean_x) ** 2, weights=weight)
    slope = np.average((log_given - mean_x) * (log_run - mean_y), weights=weight) / spread if spread > 0 else 0.0
    rest = binned(log_given, log_run - mean_y - slope * (log_given - mean_x), weight)
    return lambda new: mean_y + slope * (new - mean_x) + rest(new)


def inputs(jobs: pd.DataFrame, meta: TraceMeta, log_given: np.ndarray) -> pd.DataFrame:
    """What the trees see of each job, all of it known at its submission (float64; NaN: not known).

    The estimate; of rltune.traces.estimates.kinds.history_lightgbm the categories, the size and the run times known of each group;
    of the jobs submitted last in each group, whether they have ended or not: the mean estimate of the last RECENT and
    the last ten, the spread of these, and how long ago the last and the tenth came (logs of s).
    """
    submit = jobs["submit_s"].to_numpy(np.float64)
    seen = history_lightgbm.features(jobs, meta, all_known(jobs))
    dated = ["hour", "weekday", *(name for name in seen if name.endswith(" known"))]
    out = {"given": log_given, **seen.drop(columns=dated)}
    row = np.arange(len(jobs), dtype=np.float64)
    for name, key in group_keys(jobs).items():
        given, came = (known(key, row, row + 0.5, value).log_s for value in (log_given, submit))
        out[f"{name} given, recent"], out[f"{name} given"] = mean_known(given[:, :RECENT]), mean_known(given)
        out[f"{name} given, spread"] = np.sqrt(np.maximum(mean_known(given**2) - mean_known(given) ** 2, 0.0))
        out[f"{name} came last"], out[f"{name} came tenth"] = (np.log1p(submit - came[:, i]) for i in (0, -1))
    return pd.DataFrame(out)
