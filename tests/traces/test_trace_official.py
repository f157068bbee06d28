"""Cleaned real rows beside what their publishers say of them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from rltune.config.load import load_trace
from rltune.traces.clean import CleanTrace, clean_trace
from rltune.traces.fetch import obtain

ROOT = Path(__file__).resolve().parents[2]


def cleaned(name: str, real_traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CleanTrace:
    monkeypatch.setenv("RLTUNE_REAL_TRACES", str(real_traces.resolve()))
    trace = load_trace(name, ROOT)
    return clean_trace(name, trace, obtain(name, trace, tmp_path, ROOT))


def test_venus_is_the_venus_of_the_published_summary(
    real_traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of its GPU jobs, their GPUs and median run time; the mean run time is lower, as ours is cut off at 48 h."""
    summary = pd.read_csv(real_traces / "helios" / "helios_cluster_summary.csv").set_index("id").loc["Venus"]
    jobs = cleaned("venus-csv", real_traces, tmp_path, monkeypatch).jobs
    assert len(jobs) == summary["gpu_job_num"]
    assert jobs["gpus"].mean() == pytest.approx(summary["avg_gpu_num"], abs=5e-4)
    assert jobs["gpus"].median() == summary["med_gpu_num"]
    assert jobs["run_s"].median() == summary["med_run_time_gpu"]
    assert 0.6 < jobs["run_s"].mean() / summary["avg_run_time_gpu"] < 1


def test_philly_from_october_is_near_the_papers_table_4(
    real_traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = cleaned("philly-csv", real_traces, tmp_path, monkeypatch)
    assert clean.audit.rows_read == 111_549 and clean.audit.rows_kept == 103_467
    assert clean.audit.left_out == {"submitted before 2017-10-01": 8072, "run time zero": 10}
    assert clean.jobs["run_s"].mean() == pytest.approx(28_329, rel=0.03)  # paper, Table 4
    assert clean.jobs["run_s"].max() == pytest.approx(60 * 86_400, rel=0.35)
