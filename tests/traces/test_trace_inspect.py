"""Inspecting files: the format found, the columns shown, the guessed map usable, mistakes and texts that are no log named."""

import bz2
import csv
import lzma
from pathlib import Path

import pytest
import yaml
from hypothesis import given, strategies as st
from raw_cases import BASES, FILES, PAI_JOBS, trace_config, write_zip

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces.clean import CleanTrace, clean_trace
from rltune.traces.guess import guess_columns
from rltune.traces.inspect import inspect_file, suggested
from rltune.traces.readers.sacct import FORMAT
from rltune.traces.synthetic.archives import write_gz, write_tar_gz
from rltune.traces.table import write_table

CSV = (
    "JobID,User,Partition,Submit Time,start_time,end_time,num_gpus,memory_mib,state,o\add\n"
    "7,ann,p1,2021-01-01 00:00:00,2021-01-01 00:01:00,2021-01-01 01:01:00,4,2048,COMPLETED,\n"
    "8,bob,p1,2021-01-01 00:00:10,2021-01-01 00:01:00,2021-01-01 00:02:00,1,1024,CANCELLED,x\n"
)


OTHERS = {
    "i.csv": ("j1,worker,x0,w0,i1,Terminated,100,200,m1\n", "Alibaba PAI instance table (no header): not needed"),
    "m.csv": ("7399a758eb02bae1a3621236,CPU,96,512,0\n", "Alibaba PAI machine table (no header): a cluster, not jobs"),
    "g.csv": ("7399a758eb02bae1a3621236,u1,V100,75c536d5ba60528b3ef3ae40,bert\n", "Alibaba PAI group table"),
    "l": ("machineId, number of GPUs, single GPU mem\nm0,2, 12GB\n", "Philly cluster_machine_list: a cluster"),
    "n.csv": ("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n", "Alibaba 2023 node list (openb)"),
    "cluster_gpu_number.csv": ("date,vcA,total\n2020-04-01,8,8\n", "Helios cluster_gpu_number.csv: a cluster"),
}


def use(text: str, path: Path) -> CleanTrace:
    """Clean a file with the configuration that inspecting it gave, as it is."""
    return clean_trace("mine", TraceConfig(**yaml.safe_load(text[text.index("title:") :])), path)


def test_guessed_map_works_as_it_is(tmp_path):
    path = tmp_path / "my jobs.csv.gz"
    write_gz(path, CSV.encode())
    text = inspect_file(path)
    for part in ("format: CSV with a header", "rows: 2", "50.0%", '# not used: "o\\u0007dd"'):
        assert part in text
    assert "rows read: 2\n  kept: 2 (2 gpu jobs)" in text
    result = use(text, path)
    assert result.jobs["run_s"].tolist() == [3600, 60]
    assert result.jobs["status"].tolist() == ["passed", "killed"]
    assert result.jobs["mem_gb"].round(3).tolist() == [2.147, 1.074]
    write_table(result.jobs, result.meta, tmp_path / "jobs.parquet")
    assert "format: canonical job table" in inspect_file(tmp_path / "jobs.parquet")


@pytest.mark.parametrize("queue", ["gold", "30"])
def test_a_queue_may_be_a_name_or_a_wait_so_it_is_not_guessed(queue, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(f"id,submit_time,duration,gpus,queue\n1,1600000000,60,1,{queue}\n")
    text = inspect_file(path)
    assert "# not used: queue\n" in text
    assert use(text, path).jobs[["vc", "wait_s"]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("columns", "job_id"),
    [
        ("name,job_id,submit,duration,gpus", "job_id"),
        ("job_name,id,submit,duration,gpus", "id"),
        ("job,JobIDRaw,id,submit,duration,gpus", "JobIDRaw"),
        ("Job Name,name,submit,duration,gpus", None),
    ],
)
def test_a_name_is_no_job_id(columns, job_id):
    assert guess_columns(columns.split(",")).get("job_id") == job_id


@pytest.mark.parametrize("given", [True, False])
def test_a_duration_is_read_only_where_its_times_are_not_there(given, tmp_path):
    """Its unit is not known; here it is minutes."""
    path = tmp_path / "own.csv"
    row = "1600000000,1600000060,1600000660" if given else "1600000000,,"
    columns = "submit_time,start_time,end_time" if given else "submit_time,a,b"
    path.write_text(f"id,{columns},duration,wait,gpus\n7,{row},10,1,1\n")
    text = inspect_file(path)
    assert ("# not used: duration, wait" in text) == given
    assert use(text, path).jobs[["run_s", "wait_s"]].to_numpy().tolist() == [[600, 60] if given else [10, 1]]


def test_states_of_jobs_that_have_not_ended_are_known(tmp_path):
    path = tmp_path / "own.csv"
    states = ["Succeeded", "Running", "Pending", "PENDING", "Queued"]
    path.write_text(
        "submit,duration,gpus,phase,state\n" + "".join(f"160000000{i},9,1,,{s}\n" for i, s in enumerate(states))
    )
    text = inspect_file(path)
    assert "not known" not in text and "1 still running when" in text and "3 still pending when" in text
    assert use(text, path).jobs["status"].tolist() == ["passed"]


def test_known_states_are_mapped_behind_any_number_of_others(tmp_path):
    path = tmp_path / "own.csv"
    states = [*(f"exit {k}" for k in range(1, 30)), "COMPLETED", "RUNNING", "Stopped"]
    path.write_text("submit,duration,gpus,state\n" + "".join(f"16000000{i:02},9,1,{s}\n" for i, s in enumerate(states)))
    text = inspect_file(path)
    assert "COMPLETED: passed" in text and "RUNNING: running" in text and text.count("# not known") == 20
    assert "1 still running when" in text and use(text, path).jobs["status"].value_counts()["passed"] == 1


def test_a_table_without_a_known_column_needs_them(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("foo,bar\n1,2\n")
    assert "not complete (format `csv` needs `columns`: of the job table" in inspect_file(path)


@pytest.mark.parametrize(("zeros", "how"), [("000", "unit: ms"), ("000000", "factor: 0.000001")])
def test_times_in_a_finer_unit_are_mapped_with_it(zeros, how, tmp_path):
    rows = [f"{i},160000000{i}{zeros},160000006{i}{zeros},160000066{i}{zeros},1\n" for i in range(3)]
    rows.append(f"3,1600000003{zeros},,,1\n")
    (tmp_path / "own.csv").write_text("id,submit_time,start_time,end_time,gpus\n" + "".join(rows))
    text = inspect_file(tmp_path / "own.csv")
    assert text.count(how) == 3
    jobs = use(text, tmp_path / "own.csv").jobs
    assert jobs["run_s"].round(3).tolist() == [600] * 3 and jobs["wait_s"].round(3).tolist() == [60] * 3


def test_the_first_look_reads_blanks_states_and_long_rows_as_cleaning_does(tmp_path):
    path = tmp_path / "own.csv"
    rows = ["a, 0, 100, 10, 1", "b, 1, 101, 10, 1", "c,, 102, 10, 1"]
    path.write_text("\n".join(["job_id, status, submit_time, duration, gpus", *rows]) + "\n")
    found, text = suggested(path)
    assert list(found.table) == ["job_id", "status", "submit_time", "duration", "gpus"]
    assert yaml.safe_load(text)["columns"]["status"]["map"].keys() == {"0", "1"}
    assert not [remark for remark in use(text, path).audit.noted if "not in the map" in remark]
    path.write_text(
        "\n".join(["job_id,status,submit_time,duration,gpus", *(row + ",7" for row in rows), rows[0]]) + "\n"
    )
    assert suggested(path)[0].table["job_id"].tolist() == ["a", "b", "c", "a"]
    assert len(use(suggested(path)[1], path).jobs) == 1


def test_what_is_missing_is_said(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    text = inspect_file(tmp_path / "a.csv")
    assert "cleaning: not tried, as the lines below are not complete" in text
    for column in ("submit_s", "gpus", "run_s"):
        assert f"# {column}: COLUMN   # needed, and not found" in text


@pytest.mark.parametrize(
    ("format", "found", "line"),
    [
        ("philly", "Philly cluster_job_log (JSON)", "rows read: 8\n  kept: 5 (5 gpu jobs)"),
        ("helios", "Helios cluster_log.csv", "left out: 3 CPU job (gpu_num 0)"),
        ("alibaba2020", "Alibaba PAI task table (no header)", "kept: 12"),
        ("alibaba2023", "Alibaba 2023 pod list (openb)", "noted (of all rows read): 12 share of a GPU rounded up"),
        ("authors", "the authors' formatted CSV (no header), readme variant", "read in the readme variant"),
        ("swf", "SWF (Standard Workload Format)", "time_zone: Europe/Stockholm  # as the log's header says"),
        ("sacct", "Slurm sacct --parsable2", "span: submissions from 2024-03-01 10:10 to 2024-03-01 10:21 (UTC)"),
    ],
)
def test_the_lines_shown_read_the_file(format, found, line, tmp_path):
    path = tmp_path / FILES[format]
    write_gz(path, BASES[format].encode())
    (tmp_path / "pai_job_table.csv").write_text(PAI_JOBS)
    text = inspect_file(path)
    assert f"format: {found}\n" in text and line in text
    assert len(use(text, tmp_path if format == "alibaba2020" else path).jobs) > 0


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_job_log_is_named(name, tmp_path):
    content, found = OTHERS[name]
    (tmp_path / name).write_text(content)
    text = inspect_file(tmp_path / name)
    assert f"format: {found}" in text and "title:" not in text and "cleaning" not in text


def test_archives_are_looked_into(tmp_path):
    write_tar_gz(tmp_path / "t.tar.gz", {"trace-data/README": "x", "trace-data/cluster_job_log": BASES["philly"]})
    text = inspect_file(tmp_path / "t.tar.gz")
    assert "format: Philly archive\nfiles in it: 2\n  trace-data/README" in text and "kept: 5" in text
    assert len(use(text, tmp_path / "t.tar.gz").jobs) == 5
    write_zip(tmp_path / "data.zip", {f"data/{c}/cluster_log.csv": BASES["helios"] for c in ("Earth", "Venus")})
    text = inspect_file(tmp_path / "data.zip")
    assert "format: Helios archive (Earth, Venus)" in text and "part: Venus" in text
    assert len(use(text, tmp_path / "data.zip").jobs) == 9
    write_zip(tmp_path / "other.zip", {"holiday.jpg": "x"})
    text = inspect_file(tmp_path / "other.zip")
    assert "archive of no known trace" in text and "holiday.jpg" in text and "title:" not in text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "empty"),
        ("header.csv", b"a,b\n", "no rows"),
        ("noise.bin", bytes(range(128, 256)) * 40, "no rows in it"),
        ("bad.parquet", b"PAR1 nothing", "cannot be read"),
        (".", None, "a folder"),
        ("none", None, "no such file"),
        ("bad.gz", b"\x1f\x8b\x08\x00nothing", "bad.gz"),
        ("bad.json", b'[{"a": 1}, {', "cannot be read"),
        ("deep.json", b'[{"a": ' + 5000 * b"[" + 5000 * b"]" + b"}]", "cannot be read"),
        ("a.zip", b"PK\x03\x04", "truncated or damaged"),
        (
            "a.csv",
            bz2.compress(CSV.encode()),
            "a.csv: cannot be read .it is packed by bzip2; unpack it, or pack it by gzip",
        ),
        ("a.csv", lzma.compress(CSV.encode()), "packed by xz; unpack it"),
        ("a.csv", b"\x28\xb5\x2f\xfd" + CSV.encode(), "packed by zstd; unpack it"),
        ("a.csv", CSV.encode("utf-16-le"), "a.csv: cannot be read .it is not text, its first line holds zero bytes"),
        ("a.tar.gz", b"no archive", "truncated or damaged"),
    ],
)
def test_unreadable(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        inspect_file(tmp_path / name)


def test_what_is_no_object_in_a_list_of_jobs_is_counted(tmp_path):
    (tmp_path / "mixed.json").write_text('[{"job": 1}, 3, {"job": 2}]')
    text = inspect_file(tmp_path / "mixed.json")
    assert "format: JSON list; 1 entries left out, no objects\n" in text and "rows: 2" in text


def test_pai_tables_are_read_together(tmp_path):
    tables = {"task": "j1,w,1,Terminated,100,200,600,29.3,50,V100\n", "job": "j1,i1,u1,Terminated,100,200\n"}
    paths = {name: tmp_path / f"pai_{name}_table.tar.gz" for name in tables}
    write_tar_gz(paths["task"], {"pai_task_table.csv": tables["task"]})
    text = inspect_file(paths["task"])
    assert "fails: " in text and "expected pai_job_table.csv or pai_job_table.tar.gz" in text
    write_tar_gz(paths["job"], {"pai_job_table.csv": tables["job"]})
    for path in paths.values():
        text = inspect_file(path)
        assert "kept: 1 (1 gpu jobs)" in text and len(use(text, tmp_path).jobs) == 1


@given(
    st.sampled_from([CSV, *BASES.values(), "", "[{", "a|b\n", "PAR1", "PK\x03\x04", "\x1f\x8b", "\xff\xfe"]),
    st.integers(0, 400),
    st.binary(max_size=80),
    st.sampled_from(["a.csv", "a.txt", "a.swf", "a.tar.gz", "a.zip", "a.json"]),
)
def test_any_bytes_are_described_or_refused(tmp_path, start, cut, rest, name):
    (tmp_path / name).write_bytes(start[:cut].encode("latin-1") + rest)
    try:
        assert "format: " in inspect_file(tmp_path / name)
    except DataError as error:
        assert name in str(error)


HEADER = FORMAT.replace(",", "|")
ROWS = [
    f"{i}|ann|gpu|2024-01-03T00:0{i}:00|2024-01-03T00:0{i}:10|2024-01-03T01:0{i}:10|3600|120|{state}|1|8|8|64G|"
    f"cpu=8,gres/gpu=2,mem=64G,node=1|cpu=8,gres/gpu=2,mem=64G,node=1"
    for i, state in enumerate(["COMPLETED", "CANCELLED by 1007", "OUT_OF_MEMORY"], 1)
]
SACCT = "\n".join([HEADER, *ROWS]) + "\n"


@pytest.mark.parametrize(("sign", "name"), [(";", "JobID"), ("\t", "JobID"), (",", "JobID"), ("|", "JobIDRaw")])
def test_another_sign_between_the_fields_or_name_makes_no_difference(sign, name, tmp_path):
    """Quoted where a field holds it."""
    plain, other = tmp_path / "plain.txt", tmp_path / "jobs.txt"
    plain.write_text(SACCT)
    text = SACCT.replace("JobID", name)
    with open(other, "w", newline="") as file:
        csv.writer(file, delimiter=sign, lineterminator="\n").writerows(x.split("|") for x in text.splitlines())
    for path in (plain, other):
        found, _ = suggested(path)
        assert found.format == "sacct" and len(found.table) == 3
    theirs, ours = (clean_trace("x", trace_config("sacct"), path).jobs for path in (plain, other))
    assert ours.equals(theirs) and list(theirs["status"]) == ["passed", "killed", "failed"]


def test_bare_commas_inside_and_between_fields_cannot_be_distinguished(tmp_path):
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT.replace("|", ","))
    with pytest.raises(DataError, match="has commas itself; give --parsable2"):
        clean_trace("x", trace_config("sacct"), path)


def test_a_table_of_ones_own_with_the_same_names_stays_a_csv(tmp_path):
    row = "1,COMPLETED,2024-01-03 00:00:00,2024-01-03 00:01:00,2024-01-03 00:09:00,2"
    (tmp_path / "own.csv").write_text(f"JobID,State,Submit,Start,End,gpus\n{row}\n")
    assert suggested(tmp_path / "own.csv")[0].format == "csv"
