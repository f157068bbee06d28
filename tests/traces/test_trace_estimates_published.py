"""Estimates from a file: run times or GPU times of the jobs it names, and every mistake in it explained."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from history_cases import META, generated
from pydantic import ValidationError

from rltune.config.trace import Predictions
from rltune.errors import ConfigError, DataError
from rltune.traces.estimates import FALL_BACKS, estimates
from rltune.traces.estimates.kinds.published import FALL_BACK as NOT_PUBLISHED, published_run_s

GPU_TIME = Predictions(path="qssf.csv", gpu_time_s="priority")


def write(folder: Path, *lines: str) -> None:
    (folder / "qssf.csv").write_text("\n".join(["job_id,priority,seconds", *lines]) + "\n")


def test_gpu_time_over_gpus_is_a_run_time_and_the_rest_is_reported(tmp_path: Path) -> None:
    jobs = generated(300)
    named = jobs.iloc[10:20]
    write(tmp_path, *(f"{job},{100 * i + 7},1" for i, job in enumerate(named["job_id"])), "stranger,5,1")
    made = estimates(jobs, META, "published", 0, 0, GPU_TIME, tmp_path)
    assert (made["estimate_s"][10:20] * jobs["gpus"][10:20]).tolist() == pytest.approx(np.arange(10) * 100 + 7)
    rolling = estimates(jobs, META, "history-rolling", 0, 0)["estimate_s"]
    others = ~jobs.index.isin(named.index)
    assert made["estimate_s"][others].tolist() == rolling[others].tolist()
    assert made["source"].tolist() == [NOT_PUBLISHED] * 10 + ["published"] * 10 + [NOT_PUBLISHED] * 280
    assert NOT_PUBLISHED in FALL_BACKS


def test_run_times_and_a_packed_file(tmp_path: Path) -> None:
    jobs = generated(20)
    text = "job_id,s\n" + "".join(f"{job},{i + 1}\n" for i, job in enumerate(jobs["job_id"]))
    (tmp_path / "own.csv.gz").write_bytes(gzip.compress(text.encode()))
    found = published_run_s(jobs, "t", Predictions(path="own.csv.gz", run_s="s"), tmp_path)
    assert found.tolist() == list(range(1, 21))


@pytest.mark.parametrize(
    ("lines", "column", "reason"),
    [
        (["a,1,1"], "g", r"qssf.csv: no column 'g'; found job_id, priority"),
        (["a,1,1", "b,2,1", "a,3,1"], "priority", "column job_id: found 'a' twice, expected each job once"),
        (
            ["a,1,1", "b,soon,1"],
            "priority",
            "column priority, line 3: found 'soon', expected a number of seconds above 0",
        ),
        (["a,0,1"], "priority", "column priority, line 2: found '0', expected"),
        (["stranger,500,1"], "priority", "none of the trace's 5 jobs is in the file"),
    ],
)
def test_a_file_that_cannot_be_used_is_explained(lines: list[str], column: str, reason: str, tmp_path: Path) -> None:
    write(tmp_path, *lines)
    with pytest.raises(DataError, match=f"config/traces/t.yaml, predictions: .*{reason}"):
        estimates(generated(5), META, "published", 0, 0, Predictions(path="qssf.csv", gpu_time_s=column), tmp_path)


def test_a_trace_without_predictions_has_none() -> None:
    with pytest.raises(ConfigError, match="estimate published: config/traces/t.yaml has no `predictions`"):
        published_run_s(generated(5), "t", None, Path())


@pytest.mark.parametrize(("given", "found"), [({}, "none"), ({"run_s": "a", "gpu_time_s": "b"}, "both")])
def test_run_time_or_gpu_time(given: dict, found: str) -> None:
    with pytest.raises(ValidationError, match=f"found {found} of `run_s` and `gpu_time_s`, expected one"):
        Predictions(path="x.csv", **given)
