"""Offered load: the GPU-seconds that jobs request over those the cluster has; and thinning to a given load."""

import numpy as np
import pandas as pd

from rltune.config import ClusterConfig
from rltune.traces.columns import job_uniform

THINNING = "thinning"
"""Key of the random number of each job that decides which jobs are left out first."""


def offered_load(jobs: pd.DataFrame, gpus: int) -> float:
    """Requested GPU-seconds per second of the submission span, over the cluster's GPUs; NaN for a span of nothing.

    Above 1 queues grow as long as jobs arrive. Where GPU types differ in speed a job counts as on its fastest: queues may grow
    below 1, too.
    """
    span = jobs["submit_s"].max() - jobs["submit_s"].min()
    return float(_gpu_seconds(jobs).sum()) / span / gpus if span > 0 else float("nan")


def gpus_in_use(jobs: pd.DataFrame) -> float:
    """GPUs that a finished log must have had: as many as its jobs used together for a hundredth of the time at least.

    Where more than a tenth of the waits is unknown, the mean use between the first submission and the last possible end.
    """
    submit, run = jobs["submit_s"].to_numpy(np.float64), jobs["run_s"].to_numpy(np.float64)
    wait = jobs["wait_s"].to_numpy(np.float64)
    if np.isnan(wait).mean() > 0.1:
        return float(_gpu_seconds(jobs).sum() / max((submit + run).max() - submit.min(), 1.0))
    start = submit + np.nan_to_num(wait)
    gpus = jobs["gpus"].to_numpy(np.float64)
    at = np.concatenate([start, start + run])
    order = np.argsort(at, kind="stable")
    use = np.cumsum(np.concatenate([gpus, -gpus])[order])[:-1]
    lasts = np.diff(at[order])
    by_use = np.argsort(use)
    share = np.cumsum(lasts[by_use]) / max(lasts.sum(), 1e-9)
    return float(use[by_use][np.searchsorted(share, 0.99)])


def within_load(jobs: pd.DataFrame, gpus: int, load: float, known: int) -> np.ndarray:
    """[jobs] bool, the jobs to keep so that the first ``known`` of them offer no more than ``load``.

    Each job has a random number in (0, 1) that depends on its id alone, so all kinds of jobs are thinned alike. Kept are
    the jobs with numbers up to a threshold, which the first ``known`` jobs determine.
    """
    number = job_uniform(jobs["job_id"].to_numpy(), THINNING)
    order = np.argsort(number[:known], kind="stable")
    submit = jobs["submit_s"].to_numpy(np.float64)[order]
    span = np.maximum.accumulate(submit) - np.minimum.accumulate(submit)  # of the first 1, 2, … jobs
    enough = np.flatnonzero(np.cumsum(_gpu_seconds(jobs)[order]) <= load * span * gpus)
    return number <= (number[order[enough[-1]]] if len(enough) else -1.0)


def scaled(cluster: ClusterConfig, factor: float) -> ClusterConfig:
    """The cluster with ``factor`` times the nodes: every group stays, rounded to whole nodes, one at least."""
    pools = [
        pool.model_copy(
            update={"groups": [g.model_copy(update={"nodes": max(1, round(g.nodes * factor))}) for g in pool.groups]}
        )
        for pool in cluster.pools
    ]
    return cluster.model_copy(update={"pools": pools})


def _gpu_seconds(jobs: pd.DataFrame) -> np.ndarray:
    return jobs["gpus"].to_numpy(np.float64) * jobs["run_s"].to_numpy(np.float64)
