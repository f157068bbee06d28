"""Estimates that others have published: a CSV file with a row a job, its predicted run time or GPU time.

QSSF's predictions for a month of Helios' Venus are the example (Hu et al., SC '21): run times. Times the GPUs that a job
asks for they are the larger part of what their scheduler orders by, and all that the policy ``qssf`` does.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from rltune.config.trace import Predictions
from rltune.config.trace_files import local_file
from rltune.errors import ConfigError, DataError
from rltune.traces.estimates.history import Request
from rltune.traces.raw.archive import BROKEN
from rltune.traces.table import recorded_run_s

FALL_BACK = "not published: rolling median"


def estimate(request: Request) -> tuple[np.ndarray, np.ndarray]:
    """Published run times [J], s. Raises as :func:`published_run_s`, and DataError where the file names no job."""
    name = request.meta.name
    found = published_run_s(request.jobs, name, request.predictions, request.root)
    if np.isnan(found).all():
        raise DataError(
            f"config/traces/{name}.yaml, predictions: none of the trace's {len(found):,} jobs is in the file"
        )
    found = found * (request.jobs["run_s"] / recorded_run_s(request.jobs)).to_numpy()  # to the fastest GPU type
    return request.else_rolling(found, "published", FALL_BACK)


def published_run_s(jobs: pd.DataFrame, trace: str, predictions: Predictions | None, root: Path) -> np.ndarray:
    """Predicted run time of each job [J] in s, NaN of a job that the file does not name.

    Args:
        jobs: job table (``job_id`` and ``gpus`` are used).
        trace: name of the trace.
        predictions: its ``predictions``.
        root: folder that a relative path starts from.

    Raises:
        ConfigError: the trace has no ``predictions``, or a variable in their path is not set.
        DataError: the file is missing, no CSV, lacks a column, names a job twice, or holds something that is not a
            number above 0.
    """
    where = f"config/traces/{trace}.yaml, predictions"
    if predictions is None:
        raise ConfigError(f"estimate published: config/traces/{trace}.yaml has no `predictions`; name the file there")
    path = local_file(trace, predictions.path, root, "predictions.path")
    value = predictions.run_s or predictions.gpu_time_s
    try:
        table = pd.read_csv(path, dtype="str", keep_default_na=False)
    except (ValueError, OSError, *BROKEN) as error:  # pandas' own errors are ValueErrors
        raise DataError(f"{where}: {path}: not readable as CSV ({error})") from None
    for column in ("job_id", value):
        if column not in table:
            raise DataError(f"{where}: {path}: no column {column!r}; found {', '.join(map(str, table))}")
    ids = table["job_id"]
    if ids.duplicated().any():
        twice = ids[ids.duplicated()].iloc[0]
        raise DataError(f"{where}: {path}: column job_id: found {twice!r} twice, expected each job once")
    seconds = pd.to_numeric(table[value], errors="coerce").to_numpy(np.float64)
    bad = ~(np.isfinite(seconds) & (seconds > 0))
    if bad.any():
        row = int(np.argmax(bad))
        found = f"column {value}, line {row + 2}: found {table[value].iloc[row]!r}"
        raise DataError(f"{where}: {path}: {found}, expected a number of seconds above 0")
    found = pd.Series(seconds, index=ids).reindex(jobs["job_id"].to_numpy(object)).to_numpy()
    return found if predictions.run_s else found / np.maximum(jobs["gpus"].to_numpy(np.float64), 1.0)
