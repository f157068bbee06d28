"""How a run treats groups of jobs, users or virtual clusters: who waits, and how unequally.

Sources: Jain, Chiu and Hawe, *A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
Computer Systems*, DEC TR-301, 1984 (the index); Gini, *Variabilità e mutabilità*, 1912 (the coefficient).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

UNKNOWN = "unknown"
HOUR_S = 3600.0


def fairness(job_table: pd.DataFrame, group: np.ndarray) -> pd.DataFrame:
    """One row a group, by name; ``group`` [jobs] names the group of each row of the job table.

    group: its name as text, "unknown" for all jobs whose group is missing; jobs; gpu_hours: GPUs × run time; wait_s,
    bsld: means over its jobs; median_wait_s; wait_share: its part of the wait of all jobs (NaN when nobody waits).
    Raises ValueError when ``group`` is not as long as the table.
    """
    names = _names(job_table, group)
    frame = pd.DataFrame(
        {
            "group": names,
            "gpu_hours": (job_table["gpus"] * job_table["run_s"]).to_numpy(np.float64) / HOUR_S,
            "wait_s": job_table["wait_s"].to_numpy(np.float64),
            "bsld": job_table["bsld"].to_numpy(np.float64),
        }
    )
    grouped = frame.groupby("group", sort=True)
    all_wait = float(frame["wait_s"].sum())
    return pd.DataFrame(
        {
            "jobs": grouped.size(),
            "gpu_hours": grouped["gpu_hours"].sum(),
            "wait_s": grouped["wait_s"].mean(),
            "median_wait_s": grouped["wait_s"].median(),
            "bsld": grouped["bsld"].mean(),
            "wait_share": grouped["wait_s"].sum() / (all_wait if all_wait > 0 else np.nan),
        }
    ).reset_index()


def fairness_summary(job_table: pd.DataFrame, group: np.ndarray) -> dict[str, float]:
    """A run's fairness in numbers; every group counts once, however many jobs it has, "unknown" among them.

    groups: how many; jain_bsld: Jain's index of the groups' mean bounded slowdowns, 1 when all are slowed down alike,
    down to 1 / groups (of slowdowns and not of waits: these can all be 0 but for one group's second, which the index
    would call the greatest unfairness there is; a slowdown is 1 at least and says what a wait means to a job of that
    length); worst_bsld: the largest of these means over their mean, 1 at best; gini_wait, gini_wait_jobs: Gini's
    coefficient of the groups' mean waits and of the jobs' waits, 0 when all wait alike, towards 1 when few wait for
    all. Raises ValueError as `fairness`, and on a table without jobs.
    """
    table = fairness(job_table, group)
    if table.empty:
        raise ValueError("no jobs, no fairness")
    return {
        "groups": len(table),
        "jain_bsld": jain_index(table["bsld"].to_numpy()),
        "worst_bsld": float(table["bsld"].max() / table["bsld"].mean()),
        "gini_wait": gini(table["wait_s"].to_numpy()),
        "gini_wait_jobs": gini(job_table["wait_s"].to_numpy()),
    }


def jain_index(values: np.ndarray) -> float:
    """(Σx)² / (n Σx²) of n values ≥ 0 (Jain, Chiu and Hawe 1984): 1 when all are equal, 1/n when one has all.

    1 when all are 0. Raises ValueError on no values, or one that is negative or not a number.
    """
    x = _measured(values)
    # in shares of the largest: squares of large values stay finite
    x = x / max(float(x.max()), np.finfo(float).tiny)
    squares = float((x**2).sum())
    return float(x.sum()) ** 2 / (len(x) * squares) if squares > 0 else 1.0


def gini(values: np.ndarray) -> float:
    """Half the mean difference of two of the values over their mean (Gini 1912): 0 when all are equal, below 1.

    0 when all are 0. Raises ValueError on no values, or one that is negative or not a number.
    """
    x = np.sort(_measured(values))
    n, total = len(x), float(x.sum())
    return float((2 * np.arange(1, n + 1) - n - 1) @ x) / (n * total) if total > 0 else 0.0


def _measured(values: np.ndarray) -> np.ndarray:
    x = np.asarray(values, np.float64)
    if len(x) == 0 or not (np.isfinite(x) & (x >= 0)).all():
        raise ValueError("expected one value or more, none negative or missing")
    return x


def _names(job_table: pd.DataFrame, group: np.ndarray) -> np.ndarray:
    if len(group) != len(job_table):
        raise ValueError(f"{len(group)} groups for {len(job_table)} jobs")
    values = np.asarray(group, dtype=object)
    return np.array([UNKNOWN if missing else str(v) for v, missing in zip(values, pd.isna(values))], dtype=object)
