"""Run-time estimates: median, spread, independence of the order and of other jobs, golden values; those read from a file."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from history_cases import META, generated
from pydantic import ValidationError
from scipy.stats import spearmanr

from rltune.config.trace import Predictions
from rltune.errors import ConfigError, DataError
from rltune.traces.estimates import FALL_BACKS, estimate_jobs
from rltune.traces.estimates.accuracy import accuracy
from rltune.traces.estimates.kinds.lognormal import job_normal
from rltune.traces.estimates.kinds.published import FALL_BACK as NOT_PUBLISHED

JOBS = pd.DataFrame({"job_id": pd.Series([f"job-{i}" for i in range(20_000)], dtype="str"), "run_s": 1000.0})
GOLDEN = [668.769402726, 1212.935776449, 422.057555957, 297.504512177]


def estimate_s(jobs: pd.DataFrame, name: str, seed: int = 0, trace: str = "t") -> np.ndarray:
    return estimate_jobs(jobs, replace(META, name=trace), name, seed)["estimate_s"].to_numpy()


def test_golden_values():
    """Results published with a seed must not change under our feet."""
    assert estimate_s(JOBS.head(4), "lognormal-1", 7, "philly") == pytest.approx(GOLDEN, rel=1e-9)


def test_median_one_and_sigma():
    z = job_normal(JOBS["job_id"], "philly", 0)
    assert abs(np.median(z)) < 0.03 and abs(z.mean()) < 0.03 and abs(z.std() - 1) < 0.02
    ratio = estimate_s(JOBS, "lognormal-0.5", trace="philly") / 1000
    assert np.median(ratio) == pytest.approx(1, abs=0.02)
    assert np.log(ratio).std() == pytest.approx(0.5, rel=0.03)


def test_depends_on_trace_and_seed_but_not_on_order_or_other_jobs():
    whole = pd.Series(estimate_s(JOBS, "lognormal-1"), index=JOBS["job_id"])
    for part in (JOBS.sample(500, random_state=1), JOBS.iloc[[77]]):
        assert np.array_equal(estimate_s(part, "lognormal-1"), whole[part["job_id"]])
    first, *others = (job_normal(JOBS["job_id"], t, s) for t, s in (("a", 1), ("b", 1), ("a", 2), ("a1", 1)))
    for other in others:
        assert abs(np.corrcoef(first, other)[0, 1]) < 0.03


@pytest.mark.parametrize("name", ["exact", "lognormal-0"])
def test_exact_zero_sigma_and_floor(name):
    assert estimate_s(JOBS.head(3).assign(run_s=[0.25, 1.0, 50.0]), name).tolist() == [1, 1, 50]


RUN_S = np.array([1.0, 10.0, 100.0, 1000.0, 50.0])


def test_known_answer():
    found = accuracy(RUN_S * [2, 0.5, 4, 0.1, 1], RUN_S)
    assert found["within_2"] == 0.6
    assert found["median_abs_log"] == pytest.approx(np.log(2))
    assert found["median_ratio"] == pytest.approx(1)


def test_the_order_alone_decides_the_rank_correlation():
    rng = np.random.default_rng(2)
    run, noise = rng.lognormal(5, 2, 400).round(), rng.lognormal(0, 1, 400)
    assert accuracy(run * noise, run)["spearman"] == pytest.approx(spearmanr(run * noise, run)[0])
    assert accuracy(1 / RUN_S, RUN_S)["spearman"] == pytest.approx(-1)
    assert np.isnan(accuracy(np.full(5, 3.0), RUN_S)["spearman"])


def published(jobs: pd.DataFrame, folder: Path, rows: list[str], column: str = "priority") -> pd.DataFrame:
    """Estimates from a file of these rows, packed; its ``column`` is a GPU time, or the run time where it is seconds."""
    text = "\n".join(["job_id,priority,seconds", *rows]) + "\n"
    (folder / "qssf.csv.gz").write_bytes(gzip.compress(text.encode()))
    of = {"run_s" if column == "seconds" else "gpu_time_s": column}
    return estimate_jobs(jobs, META, "published", 0, Predictions(path="qssf.csv.gz", **of), folder)


def test_gpu_time_over_gpus_is_a_run_time_and_the_rest_is_reported(tmp_path):
    jobs = generated(300)
    named = jobs.iloc[10:20]
    rows = [f"{job},{100 * i + 7},{i + 1}" for i, job in enumerate(named["job_id"])] + ["stranger,5,1"]
    made = published(jobs, tmp_path, rows)
    assert (made["estimate_s"][10:20] * jobs["gpus"][10:20]).tolist() == pytest.approx(np.arange(10) * 100 + 7)
    others = ~jobs.index.isin(named.index)
    assert made["estimate_s"][others].tolist() == estimate_s(jobs, "history-rolling")[others].tolist()
    assert made["source"].tolist() == [NOT_PUBLISHED] * 10 + ["published"] * 10 + [NOT_PUBLISHED] * 280
    assert NOT_PUBLISHED in FALL_BACKS
    assert published(jobs, tmp_path, rows, "seconds")["estimate_s"][10:20].tolist() == list(range(1, 11))


def test_run_times_published_for_the_type_recorded_are_turned_into_those_on_the_fastest(tmp_path):
    jobs = generated(10)
    recorded = jobs["run_s"] * 4
    rows = [f"{job},1,{run_s!r}" for job, run_s in zip(jobs["job_id"], recorded.astype(float))]
    made = published(jobs.assign(recorded_run_s=recorded), tmp_path, rows, "seconds")
    assert made["estimate_s"].to_numpy() == pytest.approx(jobs["run_s"].clip(lower=1).to_numpy())


@pytest.mark.parametrize(
    ("rows", "column", "reason"),
    [
        (["a,1,1"], "g", r"qssf.csv.gz: no column 'g'; found job_id, priority"),
        (["a,1,1", "b,2,1", "a,3,1"], "priority", "column job_id: found 'a' twice, expected each job once"),
        (
            ["a,1,1", "b,soon,1"],
            "priority",
            "column priority, line 3: found 'soon', expected a number of sec.* above 0",
        ),
        (["a,0,1"], "priority", "column priority, line 2: found '0', expected"),
        (["stranger,500,1"], "priority", "none of the trace's 5 jobs is in the file"),
    ],
)
def test_a_file_that_cannot_be_used_is_explained(rows, column, reason, tmp_path):
    with pytest.raises(DataError, match=f"config/traces/t.yaml, predictions: .*{reason}"):
        published(generated(5), tmp_path, rows, column)


def test_a_damaged_file_of_predictions_is_explained(tmp_path):
    packed = gzip.compress(b"job_id,priority\na,1\n")
    (tmp_path / "qssf.csv.gz").write_bytes(packed[:12] + b"x" * 20)
    with pytest.raises(DataError, match=r"config/traces/t.yaml, predictions: .*qssf.csv.gz: not readable as CSV"):
        estimate_jobs(generated(5), META, "published", 0, Predictions(path="qssf.csv.gz", run_s="priority"), tmp_path)


def test_a_trace_without_predictions_has_none():
    with pytest.raises(ConfigError, match="estimate published: config/traces/t.yaml has no `predictions`"):
        estimate_jobs(generated(5), META, "published", 0)
    for given, found in (({}, "none"), ({"run_s": "a", "gpu_time_s": "b"}, "both")):
        with pytest.raises(ValidationError, match=f"found {found} of `run_s` and `gpu_time_s`, expected one"):
            Predictions(path="x.csv", **given)
