"""Rows of Tables 2 and 4 on a table whose figures can be worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from rltune.errors import DataError
from rltune.traces.columns import TraceMeta, empty_columns
from rltune.traces.statistics import DAY_S, summary_row, workload_row

META = TraceMeta("t", "Title", "own", "csv", "2020-01-01T00:00:00.000+00:00", "UTC", "a file")


@pytest.fixture
def jobs() -> pd.DataFrame:
    """Eleven jobs, one a day, of 1 or 3 GPUs in turn."""
    table = empty_columns(11)
    table["job_id"] = pd.Series([f"j{i:02d}" for i in range(11)], dtype="str")
    table["submit_s"] = [i * DAY_S for i in range(11)]
    table["run_s"] = [float(100 * (i + 1)) for i in range(11)]
    table["gpus"] = [1, 3] * 5 + [2]
    return table


def test_workload(jobs: pd.DataFrame) -> None:
    row = workload_row(jobs, META).iloc[0]
    assert row["type"] == "GPU" and row["avg_run_s"] == 600
    assert row["arrival_per_s"] == pytest.approx(1 / DAY_S)
    assert row["jobs_per_month"] == pytest.approx(30)
    assert row["alloc"] == pytest.approx(60)
    assert pd.isna(row["avg_wait_s"])
    jobs["wait_s"] = 5.0
    assert workload_row(jobs, META)["avg_wait_s"].item() == 5


def test_cpu_trace(jobs: pd.DataFrame) -> None:
    row = workload_row(jobs.assign(resource="cpu", gpus=0, cpus=4.0), META).iloc[0]
    assert row["type"] == "CPU" and row["alloc"] == pytest.approx(120)


def test_summary(jobs: pd.DataFrame) -> None:
    row = summary_row(jobs, META).iloc[0]
    assert row["days"] == 10 and row["jobs"] == 11 and row["run_max_days"] == pytest.approx(1100 / DAY_S)
    assert pd.isna(row[["gpus", "nodes", "gpu_types", "users"]]).all()
    jobs.loc[:1, "user"] = ["a", "b"]
    jobs.loc[:1, "gpu_type"] = ["T4", "P100"]
    row = summary_row(jobs, META, gpus=16, nodes=2).iloc[0]
    assert row["gpu_types"] == "P100, T4" and row["users"] == 2 and row["gpus"] == 16 and row["nodes"] == 2
    assert summary_row(jobs, META, gpu_types=["V100"])["gpu_types"].item() == "V100"


def test_too_short(jobs: pd.DataFrame) -> None:
    for few in (jobs.head(0), jobs.head(1)):
        with pytest.raises(DataError, match="too few"):
            workload_row(few, META)
