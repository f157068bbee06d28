"""Calibrated estimates: the run-time estimates that a scheduler is given, corrected by how such estimates turned out.

A calibrated estimate is the posterior of a job's run time given its estimate and the jobs that ended before. There are
three candidates, trained again along the trace (rltune.traces.estimates.kinds.history_lightgbm says when) on the jobs
that have ended by then:

============  =======================================================================================
given         the estimate as it is
recalibrated  the run time to be expected of such an estimate, from the estimate alone
history       trees that correct the recalibrated one by what jobs like this one ran and were given
============  =======================================================================================

Before each training every candidate is evaluated on jobs that have ended since it predicted them, none of which it was
trained on; the nearest predicts until the next training. So estimates that cannot be improved stay as they are: exact
ones are kept to the last digit. Nothing is used of a job but what its submission shows, nor of others before their ends
as recorded. Same rows, same bytes: one thread, a fixed seed.

Of the jobs submitted so far, those whose run time is known are mostly the short ones: the long ones still run. A model
of the known ones alone underestimates every run time, the more so the more its inputs reveal how long ago a job was
submitted. So each known job stands for those like it that still run (inverse probability of censoring, Robins and
Rotnitzky 1992; for trees, Hothorn et al. 2006), and no input reveals the date: neither counts that grow with the trace,
nor hour and weekday, of which few have been seen.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from rltune.traces.columns import TraceMeta
from rltune.traces.estimates.history import MIN_ESTIMATE_S, all_known, end_s, group_keys, known, mean_known
from rltune.traces.estimates.kinds import history_lightgbm
from rltune.traces.table import recorded_run_s

GIVEN, RECALIBRATED, HISTORY = "given", "recalibrated", "history"
TOO_LITTLE_KNOWN = "too little known: given"
EVALUATED = 500
"""Jobs that must have ended since their prediction before a candidate is evaluated. Our choice."""
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


def calibrated(jobs: pd.DataFrame, meta: TraceMeta, given_s: np.ndarray) -> pd.DataFrame:
    """The calibrated estimate of each job's run time when it is submitted, a row a job.

    Args:
        jobs: job table, in the order of submission; history is what it holds, no more.
        meta: its metadata.
        given_s: [J] the estimates that schedulers are given, s, above 0.

    Returns:
        ``calibrated_s``: the run time to rank and to plan by, s, at least 1 (the exponential of the expected logarithm);
        ``source``: which candidate it is, or TOO_LITTLE_KNOWN.
    """
    given = np.log(given_s)
    submit, ended = jobs["submit_s"].to_numpy(np.float64), end_s(jobs)
    started = submit + jobs["wait_s"].fillna(0.0).to_numpy(np.float64)
    run, recorded = (times.to_numpy(np.float64) for times in (jobs["run_s"], recorded_run_s(jobs)))
    log_run = np.log(np.maximum(run, MIN_ESTIMATE_S))  # no estimate is shorter
    points = history_lightgbm.training_points(submit, ended)
    seen = inputs(jobs, meta, given) if points else jobs
    candidates = {name: given.copy() for name in (GIVEN, RECALIBRATED, HISTORY)}
    log_calibrated = given.copy()
    source = np.full(len(jobs), TOO_LITTLE_KNOWN, dtype=object)
    for begin, stop in points:
        new, past = slice(begin, stop), np.flatnonzero(ended[:begin] <= submit[begin])
        weight = censoring_weights(submit[begin] - started[:begin], recorded[past])
        # The later half of what models have predicted: enough to evaluate by, recent enough to see a drift.
        recent = past >= (points[0][0] + begin) // 2
        best = GIVEN
        if recent.sum() >= EVALUATED:
            error = {name: (guess - log_run)[past[recent]] ** 2 for name, guess in candidates.items()}
            best = min(error, key=lambda name: np.average(error[name], weights=weight[recent]))  # the first of equals
            source[new] = best
        if np.array_equal(given[past], log_run[past]):  # nothing to correct
            source[new] = GIVEN
            continue
        curve = recalibration(given[past], log_run[past], weight)
        candidates[RECALIBRATED][new] = expected = curve(given[new])
        rest = log_run[past] - curve(given[past])
        trees = history_lightgbm.fit_and_predict(seen.iloc[past], rest, seen.iloc[new], PARAMETERS, weight)
        candidates[HISTORY][new] = expected + trees
        log_calibrated[new] = candidates[best][new]
    as_given = np.isin(source, (GIVEN, TOO_LITTLE_KNOWN))
    calibrated_s = np.maximum(np.where(as_given, given_s, np.exp(log_calibrated)), MIN_ESTIMATE_S)
    return pd.DataFrame({"calibrated_s": calibrated_s, "source": pd.Series(source, dtype="str")})


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
