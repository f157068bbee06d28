"""Run-time estimates made from the true run time, exact or blurred. A user's own (``requested_s``) is not used yet.

Each job has its own random number, made of (trace name, job id, run seed) alone, so an estimate depends neither on
the order of rows nor on which other jobs are there, and every policy sees the same.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import numpy as np
import pandas as pd
from pandas.util import hash_array

from rltune.errors import ConfigError

Kind = Literal["exact", "lognormal"]
MIN_ESTIMATE_S = 1.0


def estimate_run_s(jobs: pd.DataFrame, kind: Kind, sigma: float, trace_name: str, seed: int) -> np.ndarray:
    """Estimated run time of each job, seconds (float64, shape (jobs,), at least 1 s).

    Args:
        jobs: job table (``job_id`` and ``run_s`` are used).
        kind: ``exact``: the true run time; ``lognormal``: run × exp(sigma × z), z standard normal, so the median ratio
            of estimate to truth is 1.
        sigma: spread of the logarithm, ≥ 0 (paper §4.1: estimates are "potentially noisy"; 1 is our choice).
        trace_name: name of the trace.
        seed: seed of the run.

    Raises:
        ConfigError: unknown kind, or a sigma that is negative or not finite.
    """
    run_s = jobs["run_s"].to_numpy(np.float64)
    if kind == "exact":
        return np.maximum(run_s, MIN_ESTIMATE_S)
    if kind != "lognormal":
        raise ConfigError(f"estimate: found {kind!r}, expected exact or lognormal.")
    if not (np.isfinite(sigma) and sigma >= 0):
        raise ConfigError(f"estimate sigma: found {sigma}, expected a number ≥ 0.")
    return np.maximum(run_s * np.exp(sigma * job_normal(jobs["job_id"], trace_name, seed)), MIN_ESTIMATE_S)


def job_normal(job_id: pd.Series, trace_name: str, seed: int) -> np.ndarray:
    """A standard normal number for each job (float64), a function of trace name, job id and seed alone."""
    from scipy.special import ndtri  # a tenth of a second that simulations need not wait for

    return ndtri(job_uniform(job_id, f"{trace_name}\n{seed}"))


def job_uniform(job_id: pd.Series | np.ndarray, key: str) -> np.ndarray:
    """A number in (0, 1) for each job (float64), a function of its id and ``key`` alone."""
    # hash_array is SipHash under a 16-character key.
    digest = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
    bits = hash_array(np.asarray(job_id, dtype=object), hash_key=digest, categorize=False)
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
