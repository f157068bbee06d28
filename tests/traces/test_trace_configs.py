"""The trace configurations that come with the project."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from rltune.config.load import load_trace
from rltune.traces.clean import clean_trace
from rltune.traces.fetch import obtain

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(p.stem for p in (ROOT / "config" / "traces").glob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_is_valid(name: str) -> None:
    trace = load_trace(name, ROOT)
    assert (trace.synthetic is not None) == (trace.data == "synthetic")
    assert trace.data in ("synthetic", "own") or (trace.licence and trace.citation)


@pytest.mark.parametrize(
    ("name", "kept", "out"),
    [
        ("philly-csv", 103_467, {"submitted before 2017-10-01": 8_072, "run time zero": 10}),
        ("venus-csv", 125_303, {}),
        ("pai-csv", 60_105, {}),
        ("openb-csv", 2_054, {"never scheduled (phase Pending)": 897, "CPU pod (num_gpu 0)": 8}),
        ("hpc2n-swf", 202_871, {}),
    ],
)
def test_real_rows(name: str, kept: int, out: dict[str, int], real_traces: Path, monkeypatch) -> None:
    """Counted, and beside what their publishers say of them; run times of Venus are cut off at 48 h."""
    monkeypatch.setenv("RLTUNE_REAL_TRACES", str(real_traces.resolve()))
    trace = load_trace(name, ROOT)
    clean = clean_trace(name, trace, obtain(name, trace, ROOT / ".cache", ROOT))
    jobs = clean.jobs
    assert clean.audit.rows_kept == kept and out.items() <= clean.audit.left_out.items()
    if trace.title == "Helios":
        summary = pd.read_csv(real_traces / "helios" / "helios_cluster_summary.csv").set_index("id").loc["Venus"]
        assert len(jobs) == summary["gpu_job_num"]
        assert jobs["gpus"].mean() == pytest.approx(summary["avg_gpu_num"], abs=5e-4)
        assert jobs["run_s"].median() == summary["med_run_time_gpu"]
        assert 0.6 < jobs["run_s"].mean() / summary["avg_run_time_gpu"] < 1
