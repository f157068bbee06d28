"""Inspecting files: the format found, the columns shown, the guessed map usable, mistakes named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces.clean import clean_trace
from rltune.traces.inspect import inspect_file
from rltune.traces.table import write_table

CSV = (
    "JobID,User,Partition,Submit Time,start_time,end_time,num_gpus,memory_mib,state,odd\n"
    "7,ann,p1,2021-01-01 00:00:00,2021-01-01 00:01:00,2021-01-01 01:01:00,4,2048,COMPLETED,\n"
    "8,bob,p1,2021-01-01 00:00:10,2021-01-01 00:01:00,2021-01-01 00:02:00,1,1024,CANCELLED,x\n"
)


def test_guessed_map_works_as_it_is(tmp_path: Path, make_gzip: Callable) -> None:
    path = tmp_path / "my jobs.csv.gz"
    make_gzip(path, CSV)
    text = inspect_file(path)
    assert "format: CSV with a header" in text and "rows: 2" in text and "50.0%" in text and "# not used: odd" in text
    block = text[text.index("title:"):]
    config = TraceConfig(**yaml.safe_load(block))
    result = clean_trace("mine", config, path)
    assert result.jobs["run_s"].tolist() == [3600, 60]
    assert result.jobs["status"].tolist() == ["passed", "killed"]
    assert result.jobs["mem_gb"].round(3).tolist() == [2.147, 1.074]
    write_table(result.jobs, result.meta, tmp_path / "jobs.parquet")
    assert "format: canonical job table" in inspect_file(tmp_path / "jobs.parquet")


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    text = inspect_file(tmp_path / "a.csv")
    for column in ("submit_s", "gpus", "run_s"):
        assert f"# {column}: COLUMN   # needed, and not found" in text


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("cluster_job_log", json.dumps([{"jobid": "a", "attempts": [{}], "submitted_time": "2017-10-01 00:00:00"}]),
         "Philly cluster_job_log"),
        ("log.csv", "job_id,user,gpu_num,state,submit_time,duration,queue\n1,u,1,COMPLETED,2020-01-01 00:00:00,5,1\n",
         "Helios cluster_log.csv"),
        ("t.csv", "j1,worker,1,Terminated,100,200,600,29.3,50,V100\n", "PAI task table"),
        ("j.csv", "j1,i1,u1,Terminated,100,200\n", "PAI job table"),
        ("x.swf", "; header\n1 0 5 100 4 -1 -1 4 200 -1 1 3 1 -1 1 -1 -1 -1\n", "SWF"),
    ],
)
def test_formats(name: str, text: str, found: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert f"format: {found}" in inspect_file(tmp_path / name) or f"Alibaba {found}" in inspect_file(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "empty"),
        ("header.csv", b"a,b\n", "no rows"),
        ("bad.parquet", b"PAR1 nothing", "cannot be read"),
        ("bad.gz", b"\x1f\x8b\x08\x00nothing", "bad.gz"),
        ("bad.json", b'[{"a": 1}, {', "cannot be read"),
        ("a.zip", b"PK\x03\x04", "an archive; unpack"),
    ],
)
def test_unreadable(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        inspect_file(tmp_path / name)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        inspect_file(tmp_path / "none")
    with pytest.raises(DataError, match="a folder"):
        inspect_file(tmp_path)
