"""The rows that ship with the package, other real rows, and the reader of such files."""

import re

import pandas as pd
import pytest
from raw_cases import trace_config

from rltune.config.load import load_trace, project_root
from rltune.errors import DataError
from rltune.traces.clean import clean_trace
from rltune.traces.fetch import download, obtain, sha256
from rltune.traces.fetch.download import DATA

ROWS = {"job_id": [1, 2, 3], "submit_unix_s": [10, 5, 20], "run_s": [60, 0, 5], "gpus": [1, 1, 2]}


@pytest.mark.parametrize(("name", "kept"), [("philly", 103_467), ("venus", 125_303)])
def test_they_are_the_ones_described(name, kept, tmp_path):
    path = DATA / f"{name}.parquet"
    assert f"| `{path.name}` |" in (readme := (DATA / "README.md").read_text()) and f"`{sha256(path)}`" in readme
    trace = load_trace(f"{name}-rows", project_root())
    clean = clean_trace(f"{name}-rows", trace, obtain(f"{name}-rows", trace, tmp_path, project_root()))
    assert len(clean.jobs) == kept and clean.meta.licence == "CC-BY-4.0"


def test_a_damaged_one_is_named_with_what_to_do(tmp_path, monkeypatch):
    damaged = tmp_path / "data" / "venus.parquet"
    damaged.parent.mkdir()
    damaged.write_bytes((DATA / damaged.name).read_bytes()[:-1])
    monkeypatch.setattr(download, "DATA", damaged.parent)
    trace = load_trace("venus-rows", project_root())
    with pytest.raises(DataError) as error:
        obtain("venus-rows", trace, tmp_path / "raw", project_root())
    for words in (f"sha256 {sha256(damaged)}, expected", trace.downloads[0].sha256, f"or restore {damaged}."):
        assert words in str(error.value)
    assert "Manually" not in str(error.value) and not list((tmp_path / "raw").glob("**/venus.parquet*"))


def test_a_file_of_raw_columns(tmp_path):
    config = trace_config("rows")
    path = tmp_path / "mine.parquet"
    pd.DataFrame(ROWS).to_parquet(path)
    clean = clean_trace("t", config, path)
    assert clean.jobs["job_id"].tolist() == ["1", "3"] and clean.audit.left_out == {"run time zero": 1}
    for wrong, message in (
        (pd.DataFrame(ROWS).drop(columns="gpus"), "column 'gpus' (needed) is not in the file"),
        (pd.DataFrame(ROWS).assign(nodes=1), "found column nodes; expected job_id"),
        (pd.DataFrame(ROWS).assign(gpus="many"), "a column is of the wrong type"),
    ):
        wrong.to_parquet(path)
        with pytest.raises(DataError, match=re.escape(message)):
            clean_trace("t", config, path)
    path.write_bytes(b"PAR1 nothing")
    with pytest.raises(DataError, match="not readable as parquet"):
        clean_trace("t", config, path)


def test_a_share_of_a_gpu_by_the_rule_named(tmp_path):
    path = tmp_path / "mine.parquet"
    pd.DataFrame(ROWS | {"run_s": 60, "gpus": [1.5, 0.4, 2]}).assign(unusable=["odd", None, None]).to_parquet(path)
    found = {rule: clean_trace("t", trace_config("rows", gpu_share=rule), path) for rule in ("round_up", "leave_out")}
    assert {rule: one.jobs["gpus"].tolist() for rule, one in found.items()} == {"round_up": [1, 2], "leave_out": [2]}
    assert found["round_up"].audit.noted == {"share of a GPU rounded up to whole GPUs": 2}
    assert found["leave_out"].audit.left_out == {"odd": 1, "asks for a share of a GPU (gpu_share: leave_out)": 1}


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
def test_real_rows(name, kept, out, real_traces, monkeypatch):
    """Counted, and compared with what their publishers say of them; run times of Venus are cut off at 48 h."""
    monkeypatch.setenv("RLTUNE_REAL_TRACES", str(real_traces.resolve()))
    trace = load_trace(name, project_root())
    clean = clean_trace(name, trace, obtain(name, trace, project_root() / ".cache", project_root()))
    jobs = clean.jobs
    assert clean.audit.rows_kept == kept and out.items() <= clean.audit.left_out.items()
    if trace.title == "Helios":
        summary = pd.read_csv(real_traces / "helios" / "helios_cluster_summary.csv").set_index("id").loc["Venus"]
        assert len(jobs) == summary["gpu_job_num"]
        assert jobs["gpus"].mean() == pytest.approx(summary["avg_gpu_num"], abs=5e-4)
        assert jobs["run_s"].median() == summary["med_run_time_gpu"]
        assert 0.6 < jobs["run_s"].mean() / summary["avg_run_time_gpu"] < 1
