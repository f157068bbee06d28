"""Slurm's accounting log: fixtures written after the manual pages of several versions, every quirk with its answer."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from raw_cases import cleaned, rows

from rltune.errors import DataError
from rltune.traces.clean import CleanTrace
from rltune.traces.raw import slurm_fields as slurm
from rltune.traces.readers.sacct import COMMAND, FORMAT

DAY = "2024-03-01T"
ASKED = "billing=8,cpu=8,gres/gpu=4,mem=64G,node=2"
HELD = A100 = "billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=2"
CPU = "billing=4,cpu=4,mem=4000M,node=1"


def row(JobID: str = "1", State: str = "COMPLETED", **given: str) -> dict[str, str]:
    """A job of 4 GPUs, an hour long, with any field replaced; "T" before a time of day stands for the day."""
    times = {"Submit": "T10:00:00", "Start": "T10:05:00", "End": "T11:05:00", "ElapsedRaw": "3600"}
    sizes = {"NNodes": "2", "ReqCPUS": "8", "AllocCPUS": "8", "ReqMem": "64G", "ReqTRES": ASKED, "AllocTRES": HELD}
    plain = {"JobID": JobID, "State": State, "User": "ann", "Partition": "gpu", "TimelimitRaw": "120"}
    values = {**plain, **times, **sizes, **given}
    return {k: DAY + v[1:] if v.startswith("T") and v[1:2].isdigit() else v for k, v in values.items()}


NEVER = {"Start": "Unknown", "End": "T14:00:00", "ElapsedRaw": "0", "AllocTRES": ""}
"""Of a job that did not start."""


def text(*rows: dict[str, str], columns: str = FORMAT, end: str = "") -> str:
    names = columns.split(",")
    lines = ["|".join(names) + end, *("|".join(r.get(n, "") for n in names) + end for r in rows)]
    return "\n".join(lines) + "\n"


def clean(path: Path, *log: dict[str, str], **how: str) -> CleanTrace:
    return cleaned(path, text(*log, **how), "sacct")


def test_known_answers(tmp_path):
    log = text(
        row("101", ReqTRES=A100),
        row("101.batch", User="", Partition="", ReqTRES=""),
        row("101.extern", User=""),
        row("101.0", User=""),
        row("102_7", "TIMEOUT", Submit="T10:00:10", TimelimitRaw="UNLIMITED"),
        row("102_[8-20%4]", "PENDING", Start="Unknown", End="Unknown", ElapsedRaw="0", AllocTRES=""),
        row("103+0", "FAILED", Submit="T10:00:20"),
        row("103+1", "FAILED", Submit="T10:00:20", ReqTRES=CPU, AllocTRES=CPU, TimelimitRaw="Partition_Limit"),
        row("103+0.0"),
        row("104", "CANCELLED by 1000", Start="None", End="T10:12:00", ElapsedRaw="0", AllocTRES=""),
        row("105", "CANCELLED", Start="T10:12:00", End="T10:12:00", ElapsedRaw="0", AllocTRES=""),
        row("106", "CANCELLED by 1000", Submit="T10:00:30", ElapsedRaw="30", User=""),
        row("107", "RUNNING", End="Unknown"),
        row("108", "PENDING", Start="Unknown", End="Unknown", ElapsedRaw="0"),
        row("109", "OUT_OF_MEMORY", Submit="T10:00:40"),
        row("110", "NODE_FAIL", Submit="T10:00:50"),
        row("111", "PREEMPTED", Submit="T10:01:00"),
        row("112", "BOOT_FAIL", Submit="T10:01:10"),
        row("113", "DEADLINE", Start="Unknown", End="T10:30:00", ElapsedRaw="0", AllocTRES=""),
        row("114", "DEADLINE", Submit="T10:01:20"),
        row("115", "REQUEUED", Submit="T10:01:30"),
        row("116", "SOMETHING_NEW", Submit="T10:01:40"),
        row("117", ElapsedRaw="0"),
        row("118", ReqTRES="cpu=1,gres/shard=2,mem=1G,node=1", AllocTRES="cpu=1,gres/shard=2,mem=1G,node=1"),
    )
    result = cleaned(tmp_path / "jobs.txt.gz", gzip.compress(log.encode()), "sacct")
    jobs = result.jobs.set_index("job_id")
    assert " ".join(jobs.index) == "101 102_7 103+0 103+1 106 109 110 111 112 114 115 116"
    ends = "passed failed failed failed killed failed failed killed failed failed killed unknown"
    assert " ".join(jobs["status"]) == ends
    assert result.meta.t0 == "2024-03-01T10:00:00.000+01:00"
    found = rows(result, "user resource submit_s run_s wait_s requested_s gpus cpus gpu_type mem_gb")
    assert found[:4] == [
        ["101", "ann", "gpu", 0, 3600, 300, 7200, 4, 8, "a100", 68.719477],
        ["102_7", "ann", "gpu", 10, 3600, 290, None, 4, 8, None, 68.719477],  # any type was asked for
        ["103+0", "ann", "gpu", 20, 3600, 280, 7200, 4, 8, None, 68.719477],
        ["103+1", "ann", "cpu", 20, 3600, 280, None, 0, 4, None, 4.194304],
    ]
    assert found[4][1] is None and set(jobs["vc"]) == {"gpu"}
    assert result.audit.rows_read == 24
    assert result.audit.left_out == {
        "step of a job (123.batch, 123.0, …): part of its job": 4,
        "range of array tasks that have not started": 1,
        "cancelled before it started": 2,
        "still running when the log was written": 1,
        "still pending when the log was written": 1,
        "ended before it started (not cancelled)": 1,
        "asks for shards of a GPU (gres/shard), whose size the log does not say": 1,
        "run time zero": 1,
    }
    noted = result.audit.noted
    assert noted["component of a heterogeneous job, taken as a job of its own"] == 2 and noted["status unknown"] == 1


def test_columns_in_any_order_and_a_bar_at_the_end(tmp_path):
    order = ",".join(["JobName", *reversed(FORMAT.split(",")), "Account"])
    one = clean(tmp_path / "a.txt", row())
    other = clean(tmp_path / "b.txt", row(JobName='a "b'), columns=order, end="|")
    assert one.jobs.equals(other.jobs) and other.audit == one.audit
    fields = [line.split("|") for line in text(row()).splitlines()]
    for sign in ",|":  # as R's write.csv and write.table quote
        quoted = "".join(sign.join(f'"{field}"' for field in line) + "\n" for line in fields)
        assert cleaned(tmp_path / "c.csv", quoted, "sacct").jobs.equals(one.jobs)


def test_a_line_of_megabytes(tmp_path):
    long = clean(tmp_path / "a.txt", row("1"), row("2", User="ü" * (1 << 20)), row("3"))
    assert long.jobs["user"].str.len().tolist() == [3, 1 << 20, 3]


def test_an_older_version(tmp_path):
    """No TRES, GRES per node, memory per node or CPU, durations with days, no raw columns."""
    columns = "JobID,User,Submit,Start,End,Elapsed,Timelimit,State,NNodes,NCPUS,ReqMem,ReqGRES,AllocGRES"
    old = {"Elapsed": "1-02:03:04", "Timelimit": "2-00:00:00", "NCPUS": "8"}
    third = old | {"Elapsed": "05:30", "Timelimit": "INVALID"}
    log = [
        row("1", ReqMem="4Gn", ReqGRES="gpu:tesla:2", AllocGRES="gpu:tesla:4", **old),
        row("2", ReqMem="2Gc", ReqGRES="gpu:2", AllocGRES="", **old),
        row("3", ReqMem="0n", ReqGRES="gpu", NNodes="1", **third),
        row("4", ReqMem="4000Mc", **old | {"Elapsed": "", "Timelimit": "Partition_Limit"}),
        row("5", ReqMem="?", ReqGRES="gpu:tesla:1,gpu:k80:1", **old | {"Elapsed": "00:01:00.500"}),
    ]
    result = clean(tmp_path / "a.txt", *log, columns=columns)
    assert rows(result, "gpus gpu_type run_s requested_s mem_gb cpus vc") == [
        ["1", 4, "tesla", 93_784, 172_800, 8.589935, 8, None],
        ["2", 4, None, 93_784, 172_800, 17.179869, 8, None],
        ["3", 1, None, 330, None, None, 8, None],
        ["4", 0, None, 3600, None, 33.554432, 8, None],
        ["5", 4, None, 60.5, 172_800, None, 8, None],
    ]
    assert result.audit.noted["run time from End − Start, as Elapsed is empty"] == 1
    assert result.audit.noted["GPUs of several types: any type"] == 1
    assert result.audit.noted["ReqMem not an amount of memory"] == 1


def test_the_type_allocated_where_the_one_requested_is_not_there(tmp_path):
    columns = FORMAT.replace("ReqTRES,", "")
    mixed = "cpu=8,gres/gpu:a100=2,gres/gpu:v100=1,gres/gpu=3,mem=1T,node=1"
    odd = "cpu=8,gres/gpu=4,gres/gpu:a100:1g.5gb:x=4,mem=64G"
    result = clean(tmp_path / "a.txt", row("1"), row("2", AllocTRES=mixed), row("3", AllocTRES=odd), columns=columns)
    assert rows(result, "resource gpu_type gpus mem_gb") == [
        ["1", "gpu", "a100", 4, 68.719477],
        ["2", "gpu", None, 3, 1099.511628],
        ["3", "gpu", None, 4, 68.719477],
    ]
    assert result.audit.noted["GPU type is the one allocated, as the one requested is not in the log"] == 1
    assert result.audit.noted["GPUs with an entry that cannot be read: gres/gpu alone counts"] == 1


def test_memory_that_slurm_does_not_allocate_is_not_known(tmp_path):
    """With CR_CPU, for example, Slurm reports all the memory of a node as requested by every job."""
    asked, held = "cpu=1,mem=128G,node=1,gres/gpu=1", "cpu=1,node=1,gres/gpu=1"
    log = [row(JobID=str(k), ReqMem="128G", ReqTRES=asked, AllocTRES=held) for k in range(3)]
    result = clean(tmp_path / "a.txt", *log)
    assert result.jobs["mem_gb"].isna().all() and result.audit.noted["memory not known: Slurm hands none out here"] == 3
    last = row("9", ReqMem="128G", ReqTRES=asked, AllocTRES=f"{held},mem=8G")
    some = clean(tmp_path / "b.txt", *log, last)
    assert some.jobs["mem_gb"].notna().all()


def test_requeued_jobs(tmp_path):
    result = clean(
        tmp_path / "a.txt",
        row("1", "NODE_FAIL", ElapsedRaw="100"),
        row("1", "PREEMPTED", Submit="T12:00:00", Start="T12:10:00", End="T12:20:00", ElapsedRaw="600"),
        row("1", "COMPLETED", Submit="T13:00:00", Start="T13:10:00", End="T13:10:07", ElapsedRaw="7"),
        row("2", Submit="T10:01:00"),  # no reason to run again: another job of that number
        row("2", Submit="T14:00:00", Start="T14:10:00", End="T14:20:00"),
        row("3", "REQUEUED", Submit="T10:02:00", ElapsedRaw="50"),
        row("3", Submit="T10:04:00", User="bob"),  # another user's
        row("4", "REQUEUED", Submit="T10:03:00", ElapsedRaw="50"),
        row("4", "RUNNING", Submit="T12:00:00", Start="T12:10:00", End="Unknown", ElapsedRaw="50"),
        # the last row never started:
        row("5", "NODE_FAIL", Submit="T10:04:00", ElapsedRaw="100"),
        row("5", "PREEMPTED", Submit="T12:00:00", Start="T12:10:00", End="T12:20:00", ElapsedRaw="600"),
        row("5", "CANCELLED by 1000", Submit="T13:00:00", **NEVER),
        row("6", "REQUEUED", Submit="T10:04:01", ElapsedRaw="50"),
        row("6", "DEADLINE", Submit="T13:00:00", **NEVER),
        row("7", "REQUEUED", ElapsedRaw="50"),
        row("7", "PENDING", Submit="T13:00:00", **NEVER),
        row("8", "REQUEUED", ElapsedRaw="0"),  # did not run the first time either
        row("8", "CANCELLED", Submit="T13:00:00", **NEVER),
        row("9", "CANCELLED", **NEVER),
        row("10", "REQUEUED", Submit="T10:04:02", ElapsedRaw="70"),
        row("10", "NODE_FAIL", Submit="T11:30:00", ElapsedRaw="0"),
        row("10", "CANCELLED", Submit="T13:00:00", **NEVER),
    )
    assert rows(result, "run_s submit_s wait_s status gpus") == [
        ["1", 707, 0, 300, "passed", 4],
        ["2", 3600, 60, 240, "passed", 4],
        ["3", 50, 120, 180, "killed", 4],
        ["5", 700, 240, 60, "killed", 4],
        ["6", 50, 241, 59, "failed", 4],
        ["10", 70, 242, 58, "killed", 4],
    ]
    assert result.audit.rows_read == 22 and result.audit.left_out == {
        "earlier run of a requeued job: put together with its last": 7,
        "requeued job ended before it ran again: put together with its last run": 3,
        "requeued, and not finished when the log was written": 2,
        "cancelled before it started": 2,
        "job id met before": 2,
    }
    assert result.audit.noted["requeued job, run time is the sum of its runs"] == 5


def test_times_in_epoch_seconds_and_across_the_hour_repeated_in_autumn(tmp_path):
    epoch = clean(tmp_path / "a.txt", row(Submit="1709283600", Start="1709283900", End="1709287500"))
    assert epoch.meta.t0 == "2024-03-01T10:00:00.000+01:00" and epoch.jobs["wait_s"].tolist() == [300]
    night = row(Submit="2024-10-27T02:50:00", Start="2024-10-27T02:10:00", End="2024-10-27T03:10:00")
    assert clean(tmp_path / "b.txt", night).jobs["wait_s"].tolist() == [1200]


def parsed(parse: Any, written: list[str | None], *args: Any) -> Any:
    return parse(pd.Series(written, dtype="str"), *args)


def test_fields():
    """Durations, and requested memory on 2 nodes with 8 CPUs."""
    seconds = {"1-02:03:04": 93_784, "02:03:04": 7_384, "03:04": 184, "00:03.250": 3.25, "7": 7}
    seconds |= {"1-12": 129_600, "1-12:30": 131_400}  # as sbatch --time has it
    seconds |= dict.fromkeys(["UNLIMITED", "1-2-3", "-5", ""], np.nan)
    np.testing.assert_array_equal(parsed(slurm.seconds, list(seconds)), list(seconds.values()))
    mib = {"64G": 65_536, "4Gn": 8_192, "2Gc": 16_384, "4000": 4_000, "1T": 2**20, "512K": 0.5, "1.5G": 1_536}
    mib |= {"?": np.nan, "-1": np.nan}
    nodes, cpus = np.full(len(mib), 2.0), np.full(len(mib), 8.0)
    np.testing.assert_array_equal(parsed(slurm.req_mem_mib, list(mib), nodes, cpus), list(mib.values()))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the first line is ''"),
        ("1|2|3\n", "expected the header of sacct --parsable2"),
        (text(row()).replace("Submit", "Submitted", 1), "'Submit'.*nearest: Submitted"),
        (text(row()).replace("ElapsedRaw", "X", 1).replace("|End|", "|Y|", 1), "no run time"),
        (text(row()).replace("ReqTRES", "X", 1).replace("AllocTRES", "Y", 1), "no GPUs: needs one of AllocTRES"),
        (text(row()).replace("User", "JobID", 1), "'JobID' is in the header more than once"),
        (text(row(), row())[:-80], "truncated: the last row has"),
        (text(), "no jobs in rows of 15 fields"),
    ],
)
def test_what_is_wrong_is_said(content, message, tmp_path):
    with pytest.raises(DataError, match=f"a.txt.*{message}") as error:
        cleaned(tmp_path / "a.txt", content, "sacct")
    assert "truncated" in message or "more than once" in message or COMMAND in str(error.value)
