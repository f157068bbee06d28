"""What traces look like in numbers: the rows of the paper's Table 2 (workload) and Table 4 (trace summary)."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from rltune.errors import DataError
from rltune.traces.columns import TraceMeta

DAY_S = 86_400.0
MONTH_S = 30 * DAY_S
"""One month of Table 2, which is "normalized over one month" without saying how long that is: our choice."""


def span_s(jobs: pd.DataFrame) -> float:
    """Seconds from the first to the last submission.

    Raises:
        DataError: fewer than two submissions, or all at the same time: no rate can be given.
    """
    span = float(jobs["submit_s"].iloc[-1] - jobs["submit_s"].iloc[0]) if len(jobs) else 0.0
    if span <= 0:
        raise DataError(f"{len(jobs)} jobs submitted over {span:.0f} s: too few for a rate; give a longer trace.")
    return span


def workload_row(jobs: pd.DataFrame, meta: TraceMeta) -> pd.DataFrame:
    """One row of Table 2.

    Columns: ``title``, ``data``, ``type`` (GPU or CPU), ``jobs_per_month``, ``avg_wait_s`` (recorded waits; null
    where none is recorded), ``avg_run_s``, ``arrival_per_s``, ``alloc`` (GPUs, for CPU traces CPUs, summed over the
    jobs of one month). A month has 30 days.
    """
    span = span_s(jobs)
    rate = (len(jobs) - 1) / span
    gpu = bool((jobs["resource"] == "gpu").any())
    allocated = jobs["gpus"].mean() if gpu else jobs["cpus"].mean()
    return pd.DataFrame(
        {
            "title": [meta.title],
            "data": [meta.data],
            "type": ["GPU" if gpu else "CPU"],
            "jobs_per_month": [rate * MONTH_S],
            "avg_wait_s": [jobs["wait_s"].mean()],
            "avg_run_s": [jobs["run_s"].mean()],
            "arrival_per_s": [rate],
            "alloc": [allocated * rate * MONTH_S],
        }
    )


def summary_row(
    jobs: pd.DataFrame,
    meta: TraceMeta,
    gpus: int | None = None,
    nodes: int | None = None,
    gpu_types: Iterable[str] | None = None,
) -> pd.DataFrame:
    """One row of Table 4.

    Args:
        jobs: job table.
        meta: its metadata.
        gpus: GPUs of the cluster the trace was recorded on, where known.
        nodes: its nodes, where known.
        gpu_types: its GPU types; default: those the jobs name.

    Columns: ``title``, ``data``, ``days`` (first to last submission), ``jobs``, ``gpus``, ``nodes``, ``gpu_types``
    (comma-separated), ``users``, ``run_avg_s``, ``run_max_days``. What is not known is null.
    """
    types = list(gpu_types) if gpu_types is not None else sorted(set(jobs["gpu_type"].dropna()))
    users = jobs["user"].nunique()
    return pd.DataFrame(
        {
            "title": [meta.title],
            "data": [meta.data],
            "days": [span_s(jobs) / DAY_S],
            "jobs": [len(jobs)],
            "gpus": pd.array([gpus], dtype="Int64"),
            "nodes": pd.array([nodes], dtype="Int64"),
            "gpu_types": pd.Series([", ".join(types) or None], dtype="str"),
            "users": pd.array([users or None], dtype="Int64"),
            "run_avg_s": [jobs["run_s"].mean()],
            "run_max_days": [jobs["run_s"].max() / DAY_S],
        }
    )
