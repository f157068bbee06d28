"""Run-time estimates: what policies are told of a job's run time.

==================  ====================================================================================
name                estimate
==================  ====================================================================================
exact               the true run time
lognormal-SIGMA     the true run time, blurred
requested           the user's own (``requested_s``); of a job without one, as history-rolling
history-rolling     median of the last run times known of jobs like it (rltune.traces.estimates_history)
history-lightgbm    predicted by trees trained on earlier jobs (rltune.traces.estimates_lightgbm)
published           from a file (rltune.traces.estimates_published); of a job it does not name, as history-rolling
==================  ====================================================================================

``requested`` and those of history see nothing of a job that its submission does not show, nor of other jobs before
their ends as recorded (where a trace records no wait: as if they had not waited). A simulated queue that is longer than
the recorded one ends jobs later, so that there they know some run times sooner than the simulated cluster would. What
``published`` ones saw, their authors know. The blurred ones depend neither on the order of rows nor on which other jobs
are there: each job has its own random number, made of (trace name, job id, run seed) alone. Every policy sees the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from rltune.config import parse_estimate
from rltune.config.trace import Predictions
from rltune.errors import ConfigError, DataError
from rltune.traces.columns import TraceMeta, job_uniform
from rltune.traces.estimates_history import NOTHING_KNOWN, all_known, rolling_median
from rltune.traces.estimates_lightgbm import NO_MODEL, lightgbm_estimate
from rltune.traces.estimates_published import NOT_PUBLISHED, PUBLISHED, published_run_s

Kind = Literal["exact", "lognormal"]
MIN_ESTIMATE_S = 1.0
HISTORY = ("requested", "history-rolling", "history-lightgbm")
"""Kinds that the true run time of the job itself has no part in."""
NOT_REQUESTED = "none requested: rolling median"
FALL_BACKS = (NOT_REQUESTED, NO_MODEL, NOT_PUBLISHED, NOTHING_KNOWN)
"""Sources of estimates that are not of the kind asked for."""


def estimates(
    jobs: pd.DataFrame, meta: TraceMeta, kind: str, sigma: float, seed: int, published_s: np.ndarray | None = None
) -> pd.DataFrame:
    """One row a job: ``estimate_s`` (float64, at least 1 s) and ``source`` (str), what it was made from.

    Args:
        jobs: job table, in the order of submission; history is what it holds, no more.
        meta: its metadata.
        kind: ``exact``, ``lognormal``, ``published`` or one of HISTORY.
        sigma: of the kind ``lognormal``.
        seed: of the run, for ``lognormal``.
        published_s: [J] for ``published``, s; NaN where there is none.

    Raises:
        ConfigError: unknown kind or impossible sigma.
        DataError: ``requested``, but no job of the trace names a time.
    """
    if kind == PUBLISHED:
        assert published_s is not None
        return _frame(*_else_rolling(jobs, published_s, PUBLISHED, NOT_PUBLISHED))
    if kind not in HISTORY:
        return _frame(estimate_run_s(jobs, kind, sigma, meta.name, seed), np.full(len(jobs), kind, dtype=object))
    if kind == "history-lightgbm":
        return _frame(*lightgbm_estimate(jobs, meta))
    if kind == "requested":
        asked = jobs["requested_s"].to_numpy(np.float64)
        if np.isnan(asked).all():
            raise DataError(
                f"trace {meta.name}: estimate requested, but no job names a requested time; give its `columns` a "
                "`requested_s`, or take history-rolling"
            )
        return _frame(*_else_rolling(jobs, asked, "requested", NOT_REQUESTED))
    return _frame(*rolling_median(all_known(jobs)))


def _else_rolling(jobs: pd.DataFrame, seconds: np.ndarray, source: str, other: str) -> tuple[np.ndarray, np.ndarray]:
    """``seconds`` [J] where they are not NaN, else the rolling median; where each is from."""
    there = ~np.isnan(seconds)
    return np.where(there, seconds, rolling_median(all_known(jobs))[0]), np.where(there, source, other).astype(object)


def _frame(seconds: np.ndarray, source: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"estimate_s": np.maximum(seconds, MIN_ESTIMATE_S), "source": pd.Series(source, dtype="str")})


def estimate_run_s(jobs: pd.DataFrame, kind: Kind, sigma: float, trace_name: str, seed: int) -> np.ndarray:
    """Run time of each job, true or blurred, seconds (float64, shape (jobs,), at least 1 s).

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


def estimate_jobs(
    jobs: pd.DataFrame, meta: TraceMeta, name: str, seed: int, predictions: Predictions | None, root: Path
) -> pd.DataFrame:
    """The same by an estimate's full name, such as ``lognormal-1``; ``published`` from the trace's ``predictions``.

    Raises besides DataError where none of the jobs is in the file of published run times.
    """
    kind, sigma = parse_estimate(name)
    published_s = published_run_s(jobs, meta.name, predictions, root) if kind == PUBLISHED else None
    made = estimates(jobs, meta, kind, sigma, seed, published_s)
    if kind == PUBLISHED and (made["source"] == NOT_PUBLISHED).all():
        raise DataError(
            f"config/traces/{meta.name}.yaml, predictions: none of the {len(made):,} jobs is in the file; expected job "
            "ids as in the trace"
        )
    return made
