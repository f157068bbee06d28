"""Run times predicted from earlier jobs by gradient-boosted trees (LightGBM), trained again and again along the trace.

After QSSF (Hu et al., SC '21), which adds a rolling estimate and the trees', each with a weight; here the trees correct
the rolling one. They see user, VC, size, GPU type, time of day and what jobs like this one ran lately.

The trees correct the rolling median of rltune.traces.estimates.history: their target is the logarithm of run time over
rolling median, their loss the absolute error, so a prediction is a median. A model is trained on every job whose run
time is known by then, which leaves out those still running, and predicts until the next one. Same rows, same bytes: one
thread, a fixed seed.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from rltune.traces.columns import TraceMeta
from rltune.traces.estimates import history

FIRST_JOBS = 1000
"""Run times that must be known before the first model; until then estimates are rolling medians. Our choice, like …"""
EVERY_JOBS = 2000
"""… the fewest jobs from one training to the next, and …"""
GROWTH = 0.15
"""… the share of the jobs so far that must have come since: it keeps the cost of a long trace near-linear."""
ROUNDS = 100
"""Trees of a model. With 31 leaves of 50 jobs, or without the rolling median to start from, errors were larger on the
first 90 % of real Philly, Venus and HPC2N rows."""
PARAMETERS = {
    "objective": "regression_l1",
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_data_in_leaf": 200,
    "cat_smooth": 20.0,
    "seed": 1,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
CATEGORIES = ("user", "vc", "gpu_type")
MODEL = "model"
NO_MODEL = FALL_BACK = "no model yet: rolling median"


def estimate(request: history.Request) -> tuple[np.ndarray, np.ndarray]:
    """(Estimate [J] in s, where it is from [J] str: MODEL or NO_MODEL), from earlier jobs alone."""
    jobs, meta = request.jobs, request.meta
    groups = history.all_known(jobs)
    inputs = features(jobs, meta, groups)
    rolling = np.log(history.rolling_median(groups)[0])
    target = np.log(jobs["run_s"].to_numpy(np.float64)) - rolling
    submit, ended = jobs["submit_s"].to_numpy(np.float64), history.end_s(jobs)
    correction, source = np.zeros(len(jobs)), np.full(len(jobs), NO_MODEL, dtype=object)
    for begin, stop in training_points(submit, ended):
        past = np.flatnonzero(ended[:begin] <= submit[begin])
        correction[begin:stop] = fit_and_predict(inputs.iloc[past], target[past], inputs.iloc[begin:stop])
        source[begin:stop] = MODEL
    return np.exp(rolling + correction), source


def training_points(submit_s: np.ndarray, ended_s: np.ndarray) -> list[tuple[int, int]]:
    """Rows (in the order of submission) before which a model is trained, and up to which it predicts: the first at whose
    submission FIRST_JOBS run times are known, then whenever EVERY_JOBS jobs, and GROWTH of all before, have come since."""
    ready = np.searchsorted(np.sort(ended_s), submit_s, side="right") >= FIRST_JOBS
    points: list[tuple[int, int]] = []
    row = int(np.argmax(ready)) if ready.any() else len(submit_s)
    while row < len(submit_s):
        begin, row = row, row + max(EVERY_JOBS, int(row * GROWTH))
        points.append((begin, min(row, len(submit_s))))
    return points


def features(jobs: pd.DataFrame, meta: TraceMeta, groups: dict[str, history.Known]) -> pd.DataFrame:
    """What the model sees of each job, all of it known at its submission (float64; NaN: not known).

    Categories as numbers by first appearance, so that later rows do not change those of earlier ones; size; hour and weekday in the cluster's zone; of each group of
    rltune.traces.estimates.history how many run times are known (log), and the mean, the median and the latest (logs
    of s).
    """
    submitted = pd.Timestamp(meta.t0) + pd.to_timedelta(jobs["submit_s"].to_numpy(), unit="s")
    local = submitted.tz_convert(meta.time_zone)
    values = {name: pd.factorize(jobs[name])[0].astype(np.float64) for name in CATEGORIES}
    out = {name: np.where(value < 0, np.nan, value) for name, value in values.items()}
    out |= {"size": history.job_size(jobs), "hour": local.hour + local.minute / 60, "weekday": local.weekday}
    for name in history.GROUPS:
        group = groups[name]
        out[f"{name} known"] = np.log1p(group.count)
        out[f"{name} mean"] = history.mean_known(group.log_s)
        out[f"{name} median"], out[f"{name} latest"] = group.median, group.log_s[:, 0]
    return pd.DataFrame({name: np.asarray(value, np.float64) for name, value in out.items()})


def fit_and_predict(
    inputs: pd.DataFrame,
    target: np.ndarray,
    new: pd.DataFrame,
    parameters: Mapping[str, Any] = PARAMETERS,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """Train ROUNDS trees on the rows of ``inputs`` and predict the target of those of ``new``."""
    import lightgbm  # a second that runs without it need not wait for

    categories = [inputs.columns.get_loc(name) for name in CATEGORIES]
    how = dict(parameters)
    data = lightgbm.Dataset(inputs.to_numpy(), target, weight=weight, categorical_feature=categories, params=how)
    return lightgbm.train(how, data, num_boost_round=ROUNDS).predict(new.to_numpy(), num_threads=1)
