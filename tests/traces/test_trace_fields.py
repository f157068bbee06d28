"""Raw records as they come, and which field becomes which column."""

import json
from pathlib import Path

import pandas as pd
import pytest
from raw_cases import BASES, FILES, trace_config, write_zip

from rltune.config import load_trace, project_root
from rltune.config.trace import FORMATS, TraceConfig
from rltune.traces.columns import COLUMNS
from rltune.traces.fields import TABLE, fields, without_people
from rltune.traces.sniff import first_records
from rltune.traces.synthetic.archives import write_tar_gz

JOBS = [{"jobid": f"application_{n}", "submitted_time": "2017-10-01 00:00:00", "attempts": []} for n in range(5)]
HELIOS = "job_id,gpu_num,state,submit_time,duration,queue\n1,8,COMPLETED,2020-07-01 00:00:00,60,0\n"


@pytest.mark.parametrize(
    ("name", "member", "text", "first"),
    [
        ("trace-data.tar.gz", "trace-data/cluster_job_log", json.dumps(JOBS), {"jobid": "application_0"}),
        ("data.zip", "data/Venus/cluster_log.csv", HELIOS, {"gpu_num": 8, "duration": 60}),
        ("pai_task_table.tar.gz", "pai_task_table.csv", "j,t,2,Terminated,1,9,600,29,50,T4\n", {"plan_gpu": 50}),
    ],
)
def test_first_records_of_archives_are_as_they_come(tmp_path, name, member, text, first):
    write = write_zip if name.endswith(".zip") else write_tar_gz
    write(tmp_path / name, {"data/README": "about " * 100, member: text})
    records = first_records(tmp_path, 3)
    assert len(records) == min(3, text.count("jobid") or 1)
    assert {field: records[field][0] for field in first} == first


def test_first_records_of_one_file(tmp_path):
    rows = pd.DataFrame({"job_id": [1, 2], "run_s": [3.0, None]})
    rows.to_parquet(tmp_path / "rows.parquet")
    pd.testing.assert_frame_equal(first_records(tmp_path / "rows.parquet", 1), rows.head(1))
    (tmp_path / "jobs.csv").write_text("job,hours\n" + "a,1\n" * 30_000)  # longer than what is read of it
    assert list(first_records(tmp_path / "jobs.csv")["hours"]) == [1, 1, 1]


@pytest.mark.parametrize("name", [*sorted(set(FORMATS) - {"csv", "rows"}), "venus-rows", "pai-csv"])
def test_every_format_says_where_its_columns_come_from(name):
    trace = TraceConfig.model_construct(format=name) if name in FORMATS else load_trace(name, project_root())
    found = fields(trace, ["job_id", "submit_unix_s", "run_s", "gpus"])
    assert {"submit_s", "gpus"} <= set(found.index) <= set(COLUMNS)
    assert found["raw"].str.len().min() > 0


def test_every_column_of_the_job_table_has_a_meaning():
    table = pd.read_csv(TABLE, index_col="column")
    assert tuple(table.index) == COLUMNS
    assert table["meaning"].notna().all()


OWN = "job_name,owner,boss,account,submit,run,gpus,end,folder\nann-1,ann,,ann,1,2,3,CANCELLED by ann,/home/ann\n"
COLUMNS_OF_OWN = {"job_id": "job_name", "user": {"column": "owner", "fallback": "boss"}, "submit_s": "submit"}
COLUMNS_OF_OWN |= {"run_s": {"column": "run", "fallback": "boss"}, "gpus": "gpus", "status": "end"}


@pytest.mark.parametrize(
    ("format", "text", "shown"),
    [
        ("csv", OWN, "submit run gpus end"),
        ("sacct", BASES["sacct"].replace("COMPLETED", "CANCELLED by ann"), "Partition Submit Start End ElapsedRaw"),
        ("swf", BASES["swf"], "submit_time wait_time run_time allocated_processors"),
        ("philly", BASES["philly"], "attempts vc submitted_time"),
        ("helios", BASES["helios"], "vc gpu_num cpu_num state submit_time start_time"),
    ],
)
def test_records_of_a_log_of_ones_own_are_shown_without_people(format, text, shown, tmp_path):
    (path := tmp_path / Path(FILES[format]).name).write_text(text)
    trace = trace_config(format, columns=COLUMNS_OF_OWN if format == "csv" else None)
    found = without_people(trace, first_records(path))
    assert " ".join(found).startswith(shown) and len(found) > 0
    assert not {"user", "User", "user_id", "group_id", "executable"} & set(found)
    assert "ann" not in found.to_string() and "ü" not in found.to_string()
