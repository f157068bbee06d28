"""Metrics of schedules worked out manually (paper §4.4)."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from workload_cases import cluster, group, random_case, simple

from rltune.metrics import METRICS
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import BSLD_FLOOR_S, job_table, sequence_table

SETTING = SchedulerConfig("fifo", "none", "best_fit")


def test_known_answers():
    """Two GPUs: the first job has both from 0 to 5, the second one from 5 to 25, the third the other from 11 to 21."""
    jobs, layout = simple(cluster([group(1, 2)]), (0, 5, 2), (1, 20, 1), (11, 10, 1))
    state = simulate(jobs, layout, [0], [3], SETTING)
    table = job_table(jobs, state)
    assert table["wait_s"].tolist() == [0, 4, 0]
    assert table["jct_s"].tolist() == [5, 24, 10]
    assert table["bsld"].tolist() == pytest.approx([1, 24 / 20, 1])
    row = sequence_table(jobs, state, layout.gpus).iloc[0]
    assert row["wait_s"] == pytest.approx(4 / 3)
    assert row["jct_s"] == pytest.approx(13)
    assert row["bsld"] == pytest.approx(3.2 / 3)
    assert row["makespan_s"] == 25
    assert row["utilisation"] == pytest.approx((10 + 20 + 10) / (2 * 25))
    assert row["utilisation_span"] == pytest.approx((10 + 6 + 0) / (2 * 11))
    assert (row["jobs"], row["first_job"], row["submit_s"]) == (3, 0, 0)


def test_bounded_slowdown_has_a_floor_of_ten_seconds():
    assert BSLD_FLOOR_S == 10
    jobs, layout = simple(cluster([group(1, 1)]), (0, 39, 1), (0, 1, 1), (0, 9, 1), (0, 100, 1))
    table = job_table(jobs, simulate(jobs, layout, [0], [4], SETTING))
    assert table["bsld"].tolist() == pytest.approx([1, (39 + 1) / 10, (40 + 9) / 10, (49 + 100) / 100])


def test_a_metric_of_ones_own_can_neither_change_nor_replace_the_others(monkeypatch):
    def hours(table: pd.DataFrame, gpus: int) -> pd.Series:
        table["wait_s"] /= 3600
        return table.groupby("sequence")["wait_s"].max()

    rng = np.random.default_rng(1)
    jobs, layout = random_case(rng, 40)
    state = simulate(jobs, layout, [0], [len(jobs.row)], SchedulerConfig("fifo", "none"))
    before = sequence_table(jobs, state, layout.gpus)
    own = replace(METRICS["wait"], name="own", column="own_h", compute=hours)
    monkeypatch.setitem(METRICS, "own", own)
    after = sequence_table(jobs, state, layout.gpus)
    pd.testing.assert_frame_equal(after.drop(columns="own_h"), before)
    assert after["own_h"][0] == pytest.approx(before["largest_wait_s"][0] / 3600)
    monkeypatch.setitem(METRICS, "own", replace(own, column="makespan_s"))
    with pytest.raises(ValueError, match="metrics: found column makespan_s, which the table has already"):
        sequence_table(jobs, state, layout.gpus)


def test_simultaneous_jobs_have_no_submission_span():
    jobs, layout = simple(cluster([group(1, 1)]), (0, 10, 1), (0, 10, 1))
    row = sequence_table(jobs, simulate(jobs, layout, [0], [2], SETTING), layout.gpus).iloc[0]
    assert np.isnan(row["utilisation_span"])
    assert row["utilisation"] == pytest.approx(1)


def test_sequences_are_measured_one_by_one_and_within_bounds():
    jobs, layout = random_case(9, n=60)
    n = len(jobs.gpus)
    first, length = np.array([0, 10, 20, 0]), np.array([n, 15, n - 20, 1])
    together = sequence_table(jobs, simulate(jobs, layout, first, length, SETTING), layout.gpus)
    assert together["sequence"].tolist() == [0, 1, 2, 3]
    for s in range(4):
        state = simulate(jobs, layout, first[s : s + 1], length[s : s + 1], SETTING)
        alone = sequence_table(jobs, state, layout.gpus).iloc[0].drop("sequence")
        np.testing.assert_array_equal(together.iloc[s].drop("sequence").to_numpy(float), alone.to_numpy(float))
    assert together["utilisation"].between(0, 1).all()
    assert together["utilisation_span"].dropna().between(0, 1).all()
    assert (together["bsld"] >= 1).all()
    assert (together["mean_queue"] >= 1).all()
    assert (together["choices"] <= together["decisions"]).all()
