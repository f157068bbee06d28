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
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.traces.columns import TraceMeta
from rltune.traces.estimates import MIN_ESTIMATE_S
from rltune.traces.estimates.calibration_models import PARAMETERS, censoring_weights, inputs, recalibration
from rltune.traces.estimates.history import end_s
from rltune.traces.estimates.kinds.history_lightgbm import fit_and_predict, training_points

GIVEN, RECALIBRATED, HISTORY = "given", "recalibrated", "history"
TOO_LITTLE_KNOWN = "too little known: given"
EVALUATED = 500
"""Jobs that must have ended since their prediction before a candidate is evaluated. Our choice."""


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
    run = jobs["run_s"].to_numpy(np.float64)
    log_run = np.log(np.maximum(run, MIN_ESTIMATE_S))  # no estimate is shorter
    points = training_points(submit, ended)
    seen = inputs(jobs, meta, given) if points else jobs
    candidates = {name: given.copy() for name in (GIVEN, RECALIBRATED, HISTORY)}
    log_calibrated = given.copy()
    source = np.full(len(jobs), TOO_LITTLE_KNOWN, dtype=object)
    for begin, stop in points:
        new, past = slice(begin, stop), np.flatnonzero(ended[:begin] <= submit[begin])
        weight = censoring_weights(submit[begin] - started[:begin], run[past])
        # The later half of what models have predicted: enough to evaluate by, recent enough to see a drift.
        recent = past >= (points[0][0] + begin) // 2
        evaluated = past if recent.sum() < EVALUATED else past[recent]
        error = {name: (guess - log_run)[evaluated] ** 2 for name, guess in candidates.items()}
        by = weight[np.searchsorted(past, evaluated)]
        best = GIVEN
        if recent.sum() >= EVALUATED:
            best = min(error, key=lambda name: np.average(error[name], weights=by))  # the first of equals
            source[new] = best
        if np.array_equal(given[past], log_run[past]):  # nothing to correct
            source[new] = GIVEN
            continue
        curve = recalibration(given[past], log_run[past], weight)
        candidates[RECALIBRATED][new] = expected = curve(given[new])
        rest = log_run[past] - curve(given[past])
        trees = fit_and_predict(seen.iloc[past], rest, seen.iloc[new], PARAMETERS, weight)
        candidates[HISTORY][new] = expected + trees
        log_calibrated[new] = candidates[best][new]
    as_given = np.isin(source, (GIVEN, TOO_LITTLE_KNOWN))
    calibrated_s = np.maximum(np.where(as_given, given_s, np.exp(log_calibrated)), MIN_ESTIMATE_S)
    return pd.DataFrame({"calibrated_s": calibrated_s, "source": pd.Series(source, dtype="str")})
