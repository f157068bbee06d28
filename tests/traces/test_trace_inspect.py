"""Inspecting files: the format found, the columns shown, the guessed map usable, mistakes named."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces.clean import CleanTrace, clean_trace
from rltune.traces.inspect import inspect_file
from rltune.traces.table import write_table

CSV = (
    "JobID,User,Partition,Submit Time,start_time,end_time,num_gpus,memory_mib,state,o\add\n"
    "7,ann,p1,2021-01-01 00:00:00,2021-01-01 00:01:00,2021-01-01 01:01:00,4,2048,COMPLETED,\n"
    "8,bob,p1,2021-01-01 00:00:10,2021-01-01 00:01:00,2021-01-01 00:02:00,1,1024,CANCELLED,x\n"
)
SWF = (
    "; UnixStartTime: 1027839845\n; TimeZoneString: Europe/Stockholm\n"
    "1 0 5 100 4 -1 -1 4 200 -1 1 3 1 -1 1 -1 -1 -1\n2 86400 5 -1 4 -1 -1 4 200 -1 5 3 1 -1 1 -1 -1 -1\n"
    "3 172800 5 9 4 -1 -1 4 200 -1 1 3 1 -1 1 -1 -1 -1\n"
)
POD = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p0,12000,16384,1,460,T4,LS,Succeeded,100,400,160\n"
)
SACCT = (
    "JobID|Submit|Start|ElapsedRaw|State|AllocTRES\n"
    "7|2024-03-01T10:00:00|2024-03-01T10:05:00|60|COMPLETED|cpu=8,gres/gpu=4,mem=64G,node=2\n"
    "7.batch|2024-03-01T10:00:00|2024-03-01T10:05:00|60|COMPLETED|cpu=8,gres/gpu=4,mem=64G,node=2\n"
)
AUTHORS = "a,100,-1,60,2,-1,-1,12,-1,29.25,1,7,-1,-1,0,-1,-1,7,0\n"
PHILLY = [
    {
        "jobid": "a",
        "submitted_time": "2017-10-01 00:00:00",
        "status": "Pass",
        "vc": "v",
        "attempts": [
            {
                "start_time": "2017-10-01 00:01:00",
                "end_time": "2017-10-01 00:02:00",
                "detail": [{"ip": "m", "gpus": ["0"]}],
            }
        ],
    }
]
HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1,u1,vcA,8,48,1,COMPLETED,2020-04-01 10:00:00,2020-04-01 10:00:10,2020-04-01 10:01:10,60,10\n"
)


def use(text: str, path: Path) -> CleanTrace:
    """Clean a file with the configuration that inspecting it gave, as it is."""
    return clean_trace("mine", TraceConfig(**yaml.safe_load(text[text.index("title:") :])), path)


def test_guessed_map_works_as_it_is(tmp_path: Path, make_gzip: Callable) -> None:
    path = tmp_path / "my jobs.csv.gz"
    make_gzip(path, CSV)
    text = inspect_file(path)
    assert (
        "format: CSV with a header" in text
        and "rows: 2" in text
        and "50.0%" in text
        and '# not used: "o\\u0007dd"' in text
    )
    assert "rows read: 2\n  kept: 2 (2 gpu jobs)" in text
    result = use(text, path)
    assert result.jobs["run_s"].tolist() == [3600, 60]
    assert result.jobs["status"].tolist() == ["passed", "killed"]
    assert result.jobs["mem_gb"].round(3).tolist() == [2.147, 1.074]
    write_table(result.jobs, result.meta, tmp_path / "jobs.parquet")
    assert "format: canonical job table" in inspect_file(tmp_path / "jobs.parquet")


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    text = inspect_file(tmp_path / "a.csv")
    assert "cleaning: not tried, as the lines below are not complete" in text
    for column in ("submit_s", "gpus", "run_s"):
        assert f"# {column}: COLUMN   # needed, and not found" in text


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        (
            "cluster_job_log",
            json.dumps([{"jobid": "a", "attempts": [{}], "submitted_time": "2017-10-01 00:00:00"}]),
            "Philly cluster_job_log",
        ),
        (
            "log.csv",
            "job_id,user,gpu_num,state,submit_time,duration,queue\n1,u,1,COMPLETED,2020-01-01 00:00:00,5,1\n",
            "Helios cluster_log.csv",
        ),
        ("t.csv", "j1,worker,1,Terminated,100,200,600,29.3,50,V100\n", "PAI task table"),
        ("j.csv", "j1,i1,u1,Terminated,100,200\n", "PAI job table"),
        ("x.swf", "; header\n1 0 5 100 4 -1 -1 4 200 -1 1 3 1 -1 1 -1 -1 -1\n", "SWF"),
        ("i.csv", "j1,worker,x0,w0,i1,Terminated,100,200,m1\n", "PAI instance table"),
        ("m.csv", "7399a758eb02bae1a3621236,CPU,96,512,0\n", "PAI machine table"),
        ("g.csv", "7399a758eb02bae1a3621236,u1,V100,75c536d5ba60528b3ef3ae40,bert\n", "PAI group table"),
        (
            "cluster_machine_list",
            "machineId, number of GPUs, single GPU mem\nm0,2, 12GB\n",
            "Philly cluster_machine_list",
        ),
        ("n.csv", "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n", "Alibaba 2023 node list (openb)"),
        ("p.csv", POD, "Alibaba 2023 pod list (openb)"),
        ("s.txt", SACCT, "Slurm sacct --parsable2"),
        ("a.csv", AUTHORS, "the authors' formatted CSV (no header), readme variant"),
        ("b.csv", AUTHORS.replace(",7,0\n", ",-1,7,0\n"), "the authors' formatted CSV (no header), reader variant"),
    ],
)
def test_formats(name: str, text: str, found: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    text = inspect_file(tmp_path / name)
    assert f"format: {found}" in text or f"format: Alibaba {found}" in text
    assert ("title:" in text) == ("a cluster, not jobs" not in text and "not needed" not in text)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "empty"),
        ("header.csv", b"a,b\n", "no rows"),
        ("bad.parquet", b"PAR1 nothing", "cannot be read"),
        (".", None, "a folder"),
        ("none", None, "no such file"),
        ("bad.gz", b"\x1f\x8b\x08\x00nothing", "bad.gz"),
        ("bad.json", b'[{"a": 1}, {', "cannot be read"),
        ("a.zip", b"PK\x03\x04", "truncated or damaged"),
        ("a.tar.gz", b"no archive", "truncated or damaged"),
    ],
)
def test_unreadable(name: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        inspect_file(tmp_path / name)


def test_an_swf_log_is_cleaned_and_its_audit_shown(tmp_path: Path, make_gzip: Callable) -> None:
    path = tmp_path / "a.swf.gz"
    make_gzip(path, SWF)
    text = inspect_file(path)
    assert "span: submissions from 2002-07-28 09:04 to 2002-07-30 09:04 (Europe/Stockholm), 2.0 days" in text
    assert "rows read: 3\n  kept: 2 (2 cpu jobs)\n  left out: 1 cancelled before it started" in text
    assert "time_zone: Europe/Stockholm  # as the log's header says" in text
    assert len(use(text, path).jobs) == 2


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("jobs.txt", SACCT, "left out: 1 step of a job"),
        ("p.csv", POD, "noted (of all rows read): 1 share of a GPU rounded up"),
        ("a.csv", AUTHORS, "noted (of all rows read): 1 read in the readme variant"),
        ("cluster_job_log", json.dumps(PHILLY), "kept: 1"),
        ("cluster_log.csv", HELIOS, "kept: 1 (1 gpu jobs)"),
    ],
)
def test_the_lines_shown_read_the_file(name: str, content: str, line: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)
    text = inspect_file(path)
    assert line in text and len(use(text, path).jobs) == 1


def test_archives_are_looked_into(tmp_path: Path, make_tar: Callable, make_zip: Callable) -> None:
    log = {"trace-data/README": "x", "trace-data/cluster_job_log": json.dumps(PHILLY)}
    make_tar(tmp_path / "trace-data.tar.gz", log)
    text = inspect_file(tmp_path / "trace-data.tar.gz")
    assert "format: Philly archive\nfiles in it: 2\n  trace-data/README" in text and "kept: 1" in text
    assert len(use(text, tmp_path / "trace-data.tar.gz").jobs) == 1
    make_zip(tmp_path / "data.zip", {"data/Earth/cluster_log.csv": HELIOS, "data/Venus/cluster_log.csv": HELIOS})
    text = inspect_file(tmp_path / "data.zip")
    assert "format: Helios archive (Earth, Venus)" in text and "part: Venus" in text
    assert len(use(text, tmp_path / "data.zip").jobs) == 1
    make_zip(tmp_path / "other.zip", {"holiday.jpg": "x"})
    text = inspect_file(tmp_path / "other.zip")
    assert "archive of no known trace" in text and "holiday.jpg" in text and "Unpack it" in text
    assert "title:" not in text


def test_pai_tables_are_read_together(tmp_path: Path, make_tar: Callable) -> None:
    task = "j1,w,1,Terminated,100,200,600,29.3,50,V100\n"
    make_tar(tmp_path / "pai_task_table.tar.gz", {"pai_task_table.csv": task})
    text = inspect_file(tmp_path / "pai_task_table.tar.gz")
    assert "fails: " in text and "expected pai_job_table.csv or pai_job_table.tar.gz" in text
    make_tar(tmp_path / "pai_job_table.tar.gz", {"pai_job_table.csv": "j1,i1,u1,Terminated,100,200\n"})
    for name in ("pai_task_table.tar.gz", "pai_job_table.tar.gz"):
        text = inspect_file(tmp_path / name)
        assert "kept: 1 (1 gpu jobs)" in text and len(use(text, tmp_path).jobs) == 1


def test_the_beginning_of_a_json_list_is_looked_at(tmp_path: Path) -> None:
    jobs = [PHILLY[0] | {"jobid": str(i), "share": 0.5} for i in range(5_001)]
    for count, rows in ((5_000, "rows: 5,000"), (5_001, "rows: first 5,000")):
        (tmp_path / "cluster_job_log").write_text(json.dumps(jobs[:count]))
        text = inspect_file(tmp_path / "cluster_job_log")
        assert f"{rows}\n" in text and f"rows read: {count:,}\n" in text
        assert ["share", "number", "0.0%", "0.5", "0.5", "0.5", "0.5"] in [line.split() for line in text.splitlines()]


@pytest.mark.parametrize("name", ["a.csv.gz", "a.tar.gz"])
def test_what_expands_absurdly_is_refused(name: str, tmp_path: Path, make_tar: Callable) -> None:
    rows = "1,2\n" * (1 << 25)
    if name == "a.tar.gz":
        make_tar(tmp_path / name, {"jobs.csv": rows, "more.csv": "1,2\n"})
    else:
        (tmp_path / name).write_bytes(gzip.compress(("a,b\n" + "0" * (1 << 20) + "1,2\n" * 3).encode() * 80))
    with pytest.raises(DataError, match=f"{name}: .* expand to .* MB or more"):
        inspect_file(tmp_path / name)


STARTS = [
    b"",
    SWF.encode(),
    POD.encode(),
    SACCT.encode(),
    AUTHORS.encode(),
    HELIOS.encode(),
    CSV.encode(),
    json.dumps(PHILLY).encode(),
    b"PAR1",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"[{",
    b"a|b\n",
]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(STARTS),
    st.integers(0, 400),
    st.binary(max_size=80),
    st.sampled_from(["a.csv", "a.txt", "a.swf", "a.tar.gz", "a.zip", "a.json"]),
)
def test_any_bytes_are_described_or_refused(tmp_path: Path, start: bytes, cut: int, rest: bytes, name: str) -> None:
    (tmp_path / name).write_bytes(start[:cut] + rest)
    try:
        assert "format: " in inspect_file(tmp_path / name)
    except DataError as error:
        assert name in str(error)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "utf-8-sig"])
def test_other_encodings(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(CSV.replace("ann", "Åsa").encode(encoding))
    text = inspect_file(path)
    assert "rows read: 2\n  kept: 2" in text and use(text, path).jobs["user"].tolist() == ["Åsa", "bob"]
