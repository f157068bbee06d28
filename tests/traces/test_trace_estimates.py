"""Run-time estimates: median, spread, independence of order and company, and golden values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from history_cases import META
from scipy.stats import spearmanr

from rltune.traces.estimates import estimates
from rltune.traces.estimates.accuracy import accuracy
from rltune.traces.estimates.kinds.lognormal import job_normal

JOBS = pd.DataFrame({"job_id": pd.Series([f"job-{i}" for i in range(20_000)], dtype="str"), "run_s": 1000.0})
GOLDEN = [668.769402726, 1212.935776449, 422.057555957, 297.504512177]


def estimate_run_s(jobs: pd.DataFrame, kind: str, sigma: float, trace: str, seed: int) -> np.ndarray:
    return estimates(jobs, replace(META, name=trace), kind, sigma, seed)["estimate_s"].to_numpy()


def test_golden_values() -> None:
    """Results published with a seed must not change under our feet."""
    got = estimate_run_s(JOBS.head(4), "lognormal", 1.0, "philly", 7)
    assert got == pytest.approx(GOLDEN, rel=1e-9)


def test_median_one_and_sigma() -> None:
    z = job_normal(JOBS["job_id"], "philly", 0)
    assert abs(np.median(z)) < 0.03 and abs(z.mean()) < 0.03 and abs(z.std() - 1) < 0.02
    ratio = estimate_run_s(JOBS, "lognormal", 0.5, "philly", 0) / 1000
    assert np.median(ratio) == pytest.approx(1, abs=0.02)
    assert np.log(ratio).std() == pytest.approx(0.5, rel=0.03)


def test_depends_on_neither_order_nor_company() -> None:
    whole = pd.Series(estimate_run_s(JOBS, "lognormal", 1, "t", 1), index=JOBS["job_id"])
    part = JOBS.sample(500, random_state=1)
    assert np.array_equal(estimate_run_s(part, "lognormal", 1, "t", 1), whole[part["job_id"]])
    one = JOBS.iloc[[77]]
    assert estimate_run_s(one, "lognormal", 1, "t", 1)[0] == whole["job-77"]


def test_depends_on_trace_and_seed() -> None:
    first, *others = (job_normal(JOBS["job_id"], t, s) for t, s in (("a", 1), ("b", 1), ("a", 2), ("a1", 1)))
    for other in others:
        assert abs(np.corrcoef(first, other)[0, 1]) < 0.03


def test_exact_zero_sigma_and_floor() -> None:
    jobs = JOBS.head(3).assign(run_s=[0.25, 1.0, 50.0])
    assert estimate_run_s(jobs, "exact", 1, "t", 0).tolist() == [1, 1, 50]
    assert estimate_run_s(jobs, "lognormal", 0, "t", 0).tolist() == [1, 1, 50]


RUN_S = np.array([1.0, 10.0, 100.0, 1000.0, 50.0])


def test_known_answer() -> None:
    found = accuracy(RUN_S * [2, 0.5, 4, 0.1, 1], RUN_S)
    assert found["within_2"] == 0.6
    assert found["median_abs_log"] == pytest.approx(np.log(2))
    assert found["median_ratio"] == pytest.approx(1)


def test_the_order_alone_decides_the_rank_correlation() -> None:
    rng = np.random.default_rng(2)
    run, noise = rng.lognormal(5, 2, 400).round(), rng.lognormal(0, 1, 400)
    assert accuracy(run * noise, run)["spearman"] == pytest.approx(spearmanr(run * noise, run)[0])
    assert accuracy(1 / RUN_S, RUN_S)["spearman"] == pytest.approx(-1)
    assert np.isnan(accuracy(np.full(5, 3.0), RUN_S)["spearman"])
