"""A run over time: what the cluster and its queue look like at every event time."""

import numpy as np
import pandas as pd


def timeline(job_table: pd.DataFrame) -> pd.DataFrame:
    """One row a time at which a job of the sequence is submitted, starts or ends; the state holds until the next.

    Whatever happens at one time falls into one row: a job that starts when it is submitted is never queued.

    time_s; used_gpus: GPUs with a job; queued: jobs submitted and not started; running: jobs.
    """
    submit, start, end = (job_table[c].to_numpy(np.float64) for c in ("submit_s", "start_s", "end_s"))
    gpus = job_table["gpus"].to_numpy(np.int64)
    time = np.unique(np.concatenate([submit, start, end]))
    at_submit, at_start, at_end = (np.searchsorted(time, t) for t in (submit, start, end))
    one = np.ones_like(gpus)
    return pd.DataFrame(
        {
            "time_s": time,
            "used_gpus": _level(len(time), at_start, at_end, gpus),
            "queued": _level(len(time), at_submit, at_start, one),
            "running": _level(len(time), at_start, at_end, one),
        }
    )


def _level(n: int, up: np.ndarray, down: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """[n] int64, what has gone up at ``up`` and not yet come down at ``down``."""
    return np.cumsum(np.bincount(up, weight, n) - np.bincount(down, weight, n)).astype(np.int64)
