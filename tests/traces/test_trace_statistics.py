"""Tables 2 and 4, batches, arrivals and distributions of small tables with known answers."""

import numpy as np
import pandas as pd
import pytest
from history_cases import table

from rltune.config.trace import RecordedOn
from rltune.errors import DataError
from rltune.traces import statistics
from rltune.traces.columns import TraceMeta, empty_columns


@pytest.fixture
def jobs() -> pd.DataFrame:
    """Eleven jobs, one a day, of 1 or 3 GPUs in turn."""
    sizes = [1, 3] * 5 + [2]
    return table(
        [{"submit_s": i * statistics.DAY_S, "run_s": 100 * (i + 1), "gpus": gpus} for i, gpus in enumerate(sizes)]
    )


def test_workload(jobs):
    row = statistics.workload_row(jobs).iloc[0]
    assert row["type"] == "GPU" and row["avg_run_s"] == 600
    assert row["arrival_per_s"] == pytest.approx(1 / statistics.DAY_S)
    assert row["jobs_per_month"] == pytest.approx(30)
    assert row["alloc"] == pytest.approx(60)
    assert pd.isna(row["avg_wait_s"])
    jobs["wait_s"] = 5.0
    assert statistics.workload_row(jobs)["avg_wait_s"].item() == 5
    row = statistics.workload_row(jobs.assign(resource="cpu", gpus=0, cpus=4.0)).iloc[0]
    assert row["type"] == "CPU" and row["alloc"] == pytest.approx(120)


def test_summary(jobs):
    row = statistics.summary_row(jobs, None).iloc[0]
    assert row["days"] == 10 and row["jobs"] == 11 and row["run_max_days"] == pytest.approx(1100 / statistics.DAY_S)
    assert pd.isna(row[["gpus", "nodes", "gpu_types", "users"]]).all()
    jobs.loc[:1, "user"] = ["a", "b"]
    jobs.loc[:1, "gpu_type"] = ["T4", "P100"]
    row = statistics.summary_row(jobs, RecordedOn(gpus=16, nodes=2, source="a paper")).iloc[0]
    assert row["gpu_types"] == "P100, T4" and row["users"] == 2 and row["gpus"] == 16 and row["nodes"] == 2
    named = RecordedOn(gpu_types=["V100"], source="a paper")
    assert statistics.summary_row(jobs, named)["gpu_types"].item() == "V100"


def test_too_short(jobs):
    for few in (jobs.head(0), jobs.head(1)):
        with pytest.raises(DataError, match="too few"):
            statistics.workload_row(few)


MONDAY = TraceMeta("t", "T", "own", "csv", "2020-01-06T08:30:00.000+08:00", "Asia/Shanghai", "a file")
"""A Monday morning."""


def jobs_at(submit_s: list[float], **columns: object) -> pd.DataFrame:
    return empty_columns(len(submit_s)).assign(submit_s=submit_s, gpus=1, run_s=60.0).assign(**columns)


def test_batches_count_jobs_above_the_median_of_all():
    wait = pd.Series([0.0, 0, 3600, 3600] + [0.0] * 6 + [np.nan, 7200.0])
    found = statistics.batches(wait, jobs=4)
    assert found["batch"].tolist() == [1, 2] and set(found["jobs"]) == {4}  # three jobs make no whole batch
    assert found["above"].tolist() == [2, 0] and found["wait_h"].tolist() == [2, 0]
    assert set(found["median_wait_s"]) == {0} and set(found["of_batches"]) == {2}


def test_the_batches_shown_are_those_that_wait_most():
    wait = pd.Series(np.repeat([1.0, 0.0, 5.0, 5.0, 2.0], 10))
    found = statistics.batches(wait, jobs=10, most=2)
    assert found["batch"].tolist() == [3, 4] and set(found["of_batches"]) == {5}
    assert statistics.batches(pd.Series(np.ones(50)), jobs=10, most=2)["batch"].tolist() == [1, 2]
    assert len(statistics.batches(wait, jobs=10, most=99)) == 5


def test_few_jobs_are_one_batch_and_no_wait_is_none():
    assert statistics.batches(pd.Series([1.0, 2.0, 3.0]))["above"].tolist() == [1]
    with pytest.raises(DataError, match="no job's wait is known"):
        statistics.batches(pd.Series([np.nan, np.nan]))


def test_arrivals_are_by_the_clusters_clock_and_over_the_hours_there_were():
    # one job at 8:30, three an hour later, then one at 8:00 of the next day
    found = statistics.arrivals(jobs_at([0, 3600, 3600, 3601, 23.5 * 3600]), MONDAY)
    hours = found[found["by"] == "hour"].set_index("bin")
    assert hours["jobs"].sum() == 5 and hours["hours"].sum() == 25  # 8:00 on Monday to 9:00 on Tuesday
    assert hours.loc[8, ["jobs", "hours", "jobs_per_h"]].tolist() == [2, 2, 1]
    assert hours.loc[9, ["jobs", "hours", "jobs_per_h"]].tolist() == [3, 1, 3]
    assert hours.loc[9, "relative"] == pytest.approx(3 / (5 / 25))
    days = found[found["by"] == "weekday"].set_index("bin")
    assert days["jobs"].tolist() == [4, 1, 0, 0, 0, 0, 0] and days["hours"].tolist()[:3] == [16, 9, 0]
    assert days["relative"].isna().tolist() == [False] * 2 + [True] * 5


def test_even_arrivals_are_all_as_ever():
    found = statistics.arrivals(jobs_at([1800.0 * i for i in range(2 * 24 * 14 - 1)]), MONDAY)
    assert found["relative"].between(0.95, 1.05).all()  # the first and the last hour are halves
    assert statistics.busiest_share(jobs_at([1800.0 * i for i in range(2 * 24 * 14)])) == pytest.approx(0.1, abs=0.01)


def test_a_burst_is_busy():
    assert statistics.busiest_share(jobs_at([0.0] * 90 + [3600.0 * i for i in range(10, 20)])) == pytest.approx(0.91)


def test_run_times_are_shares_of_jobs_and_of_work():
    found = statistics.run_times(jobs_at([0, 1, 2, 3], run_s=[1.0, 1.0, 10.0, 100.0], gpus=[1, 1, 1, 10]))
    assert found["run_s"].iloc[[0, -1]].tolist() == [1, 100] and found["jobs"].iloc[0] == 0.5
    assert found[["jobs", "work"]].iloc[-1].tolist() == [1, 1]
    middle = found[(found["run_s"] > 11) & (found["run_s"] < 99)]
    assert (middle["jobs"] == 0.75).all() and np.allclose(middle["work"], 12 / 1012)
    assert found["jobs"].is_monotonic_increasing and found["work"].is_monotonic_increasing


def test_sizes_are_up_to_powers_of_two():
    found = statistics.sizes(jobs_at([0, 1, 2, 3], gpus=[1, 3, 4, 5], run_s=[1.0, 1.0, 1.0, 2.0]))
    assert found["most"].tolist() == [1, 2, 4, 8] and found["jobs"].tolist() == [0.25, 0, 0.5, 0.25]
    assert np.allclose(found["work"], np.array([1, 0, 7, 10]) / 18)


def test_cpu_traces_go_by_cpus_and_unknown_sizes_count_nowhere():
    cpu = jobs_at([0, 1, 2], resource="cpu", gpus=0, cpus=[2.0, 2.0, np.nan])
    assert statistics.sizes(cpu)["jobs"].tolist() == [0, 1]
    none = cpu.assign(cpus=np.nan)
    assert statistics.sizes(none).empty and statistics.run_times(none)["work"].isna().all()
