"""Alibaba PAI (2020): ``pai_job_table`` and ``pai_task_table``, CSV without header rows, each in its tar.gz.

A row of the task table becomes a job: its instances start together and hold their GPUs together, and the paper's
1.2 million jobs are the tasks. Rules:
- ``gpus`` = inst_num × plan_gpu / 100, in whole GPUs by ``gpu_share`` (``shares.py``): plan_gpu is percent of a GPU per
  instance, and a whole GPU is the unit scheduled here.
- ``cpus`` = inst_num × plan_cpu / 100 (plan_cpu is percent of a core), ``mem_gb`` = inst_num × plan_mem.
- submission is the job's ``start_time`` (when it was submitted), wait is task start − job start, run is the task's
  end − start; ``user`` is the job's.
- Only tasks that are Terminated (finished) with both times are jobs; the others are counted by status.
- Times are seconds of a shifted clock; read as seconds since 1970 in Asia/Shanghai they keep the hour of day and the
  day of week of the original.

Two more tables are used where they lie in the folder:
- ``pai_instance_table``: a task starts with its first instance and ends with its last, of those with both times in
  order; tasks without such instances keep their own times. Where the two tables disagree by more than a second, or on
  the number of instances, it is counted; the number is the task table's.
- ``pai_group_tag_table``: ``gpu_type_spec`` is the type a job required, and goes before the task's ``gpu_type``, the
  type it was given; where they differ it is counted.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.raw.archive import holds, open_member
from rltune.traces.raw.csv_text import column_names, csv_blocks
from rltune.traces.raw.frame import numbers, raw_frame, read_csv_text, reasons
from rltune.traces.raw.shares import LEFT_OUT, whole_gpus

JOB_COLUMNS = ["job_name", "inst_id", "user", "status", "start_time", "end_time"]
TASK_COLUMNS = column_names(
    "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type"
)
INSTANCE_COLUMNS = column_names("job_name,task_name,inst_name,worker_name,inst_id,status,start_time,end_time,machine")
TAG_COLUMNS = ["inst_id", "user", "gpu_type_spec", "group", "workload"]
STATUS = {"Terminated": "passed", "Failed": "failed", "Running": "running"}


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Raw columns of the PAI task table, joined with the job table and those of the others that are there.

    Raises:
        DataError: a table is missing, truncated, or has not the expected number of columns.
    """
    folder = folder.parent if folder.is_file() else folder
    kept = ("job_name", "inst_id", "user", "start_time")
    jobs, jobs_where = _side_table(folder, "pai_job_table", JOB_COLUMNS, kept, audit)
    tasks, where = _table(folder, "pai_task_table", TASK_COLUMNS, audit)
    rows = len(tasks)
    audit.note("job named again in the job table: its first row counts", jobs["job_name"].duplicated().sum())
    jobs = jobs.drop_duplicates("job_name").reset_index(drop=True)
    at = pd.Index(jobs["job_name"]).get_indexer(tasks["job_name"])
    known = (at >= 0) & tasks["job_name"].notna().to_numpy()
    submit = np.where(known, numbers(jobs["start_time"], "job start_time", audit, jobs_where)[at], np.nan)
    start = numbers(tasks["start_time"], "task start_time", audit, where)
    end = numbers(tasks["end_time"], "task end_time", audit, where)
    instances = numbers(tasks["inst_num"], "inst_num", audit, where)
    cpus = instances * numbers(tasks["plan_cpu"], "plan_cpu", audit, where) / 100
    mem_gb = instances * numbers(tasks["plan_mem"], "plan_mem", audit, where)
    each = numbers(tasks["plan_gpu"], "plan_gpu", audit, where) / 100
    if holds(folder, "pai_instance_table.csv", ("pai_instance_table.tar.gz",)):
        start, end = _actual_times(folder, tasks, start, end, instances, audit)
    gpu_type = tasks["gpu_type"]
    if holds(folder, "pai_group_tag_table.csv", ("pai_group_tag_table.tar.gz",)):
        gpu_type = _required_type(folder, jobs["inst_id"].take(at).where(known), gpu_type, audit)
    wait = start - submit
    audit.note("started before submission, wait unknown", (wait < 0).sum())
    gpus, shared = whole_gpus(each, instances, trace.gpu_share, audit)
    status = tasks["status"].fillna("without status")
    other = (status != "Terminated").to_numpy()
    unusable = np.where(other, "task " + status.where(status.isin([*STATUS, "Waiting"]), "of unknown status"), None)
    rest = reasons(
        rows,
        ("task's job is not in the job table", ~known),
        ("no start or end time", np.isnan(end - start)),
        ("CPU task (no plan_gpu)", np.isnan(instances * each) | (instances * each == 0)),
        (LEFT_OUT, shared),
    )
    columns = {
        "job_id": tasks["job_name"] + "/" + tasks["task_name"].fillna(""),
        "user": jobs["user"].take(at).where(known) if len(jobs) else None,
        "submit_unix_s": submit,
        "run_s": end - start,
        "gpus": gpus,
        "cpus": np.where(cpus > 0, cpus, np.nan),
        "mem_gb": np.where(mem_gb > 0, mem_gb, np.nan),
        "gpu_type": gpu_type,
        "wait_s": np.where(wait < 0, np.nan, wait),
        "status": status.map(STATUS).fillna("unknown"),
        "unusable": np.where(other, unusable, rest),
    }
    return raw_frame(columns, rows)


def _actual_times(
    folder: Path, tasks: pd.DataFrame, start: np.ndarray, end: np.ndarray, instances: np.ndarray, audit: Audit
) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of the tasks as their instances have them."""
    actual = _instances(folder, audit)
    at = actual.index.get_indexer(pd.MultiIndex.from_arrays([tasks["job_name"], tasks["task_name"]]))
    found = at >= 0
    first, last, count = (np.where(found, actual[c].to_numpy("float64")[at], np.nan) for c in ("start", "end", "count"))
    timed = found & ~np.isnan(first)
    apart = timed & ((np.abs(first - start) > 1) | (np.abs(last - end) > 1))
    audit.note("task without instances that have both times: its own times count", (~timed).sum())
    audit.note("task's times differ from its instances' by more than a second: theirs count", apart.sum())
    audit.note(
        "inst_num differs from the rows of the instance table: inst_num counts",
        (found & ~np.isnan(instances) & (count != instances)).sum(),
    )
    return np.where(timed, first, start), np.where(timed, last, end)


def _instances(folder: Path, audit: Audit) -> pd.DataFrame:
    """``start``, ``end`` (s, of instances with both in order) and ``count`` by job and task; read block by block."""
    name, side, parts = "pai_instance_table", Audit(), []
    by = ["job_name", "task_name"]
    with open_member(folder, f"{name}.csv", (f"{name}.tar.gz",)) as (stream, where):
        for block in csv_blocks(stream, where, side, INSTANCE_COLUMNS, (*by, "start_time", "end_time")):
            frame = block.select(["start_time", "end_time"]).to_pandas().astype("str")
            start = numbers(frame["start_time"], "start_time", side, where)
            end = numbers(frame["end_time"], "end_time", side, where)
            bad = ~(end >= start)
            side.note("instance without start and end in order", bad.sum())
            timed = pa.table(
                {
                    "job_name": block["job_name"],
                    "task_name": block["task_name"],
                    "start": pa.array(start, mask=bad),
                    "end": pa.array(end, mask=bad),
                    "count": np.ones(len(bad)),
                }
            )
            parts.append(_by_task(timed))
    _pass_on(side, name, audit)
    return _by_task(pa.concat_tables(parts)).to_pandas().set_index(by)


def _by_task(instances: pa.Table) -> pa.Table:
    grouped = instances.group_by(["job_name", "task_name"])
    table = grouped.aggregate([("start", "min"), ("end", "max"), ("count", "sum")])
    return table.select(["job_name", "task_name", "start_min", "end_max", "count_sum"]).rename_columns(
        ["job_name", "task_name", "start", "end", "count"]
    )


def _required_type(folder: Path, inst_id: pd.Series, given: pd.Series, audit: Audit) -> pd.Series:
    """GPU types required by the jobs, those given where none was."""
    tags, _ = _side_table(folder, "pai_group_tag_table", TAG_COLUMNS, ("inst_id", "gpu_type_spec"), audit)
    tags = tags.dropna().drop_duplicates("inst_id")
    at = pd.Index(tags["inst_id"]).get_indexer(inst_id)
    asked = np.where(at >= 0, tags["gpu_type_spec"].to_numpy(object)[at], None) if len(tags) else None
    spec = pd.Series(asked, index=given.index, dtype="str")
    audit.note("GPU type as required by gpu_type_spec", spec.notna().sum())
    audit.note(
        "GPU type given (gpu_type) is not the one required (gpu_type_spec): the required one counts",
        (spec.notna() & given.notna() & (spec != given)).sum(),
    )
    return spec.where(spec.notna(), given)


def _side_table(
    folder: Path, name: str, columns: list[str], keep: Collection[str], audit: Audit
) -> tuple[pd.DataFrame, str]:
    """A table whose rows are not jobs in our sense: its faults are remarks, under its name. Returns as _table does."""
    side = Audit()
    table, where = _table(folder, name, columns, side, keep)
    _pass_on(side, name, audit)
    return table, where


def _pass_on(side: Audit, name: str, audit: Audit) -> None:
    for reason, rows in [*side.left_out.items(), *side.noted.items()]:
        audit.note(f"{name}: {reason}", rows)


def _table(
    folder: Path, name: str, columns: list[str], audit: Audit, keep: Collection[str] | None = None
) -> tuple[pd.DataFrame, str]:
    """One headerless table, from ``<name>.csv`` lying there or inside ``<name>.tar.gz``, and how messages name it.

    A header row is refused, and a table of fewer or more columns.
    """
    with open_member(folder, f"{name}.csv", (f"{name}.tar.gz",)) as (stream, where):
        table = read_csv_text(stream, where, audit, columns, keep)
    first = table.iloc[0] if len(table) else None
    expected = f"expected {','.join(columns)} without header. Obtain the file again."
    if first is None:
        raise DataError(f"{where}: no rows with {len(columns)} columns; {expected}")
    if first[columns[0]] == columns[0] if columns[0] in table else False:
        raise DataError(f"{where}: has a header row; the PAI tables have none. Delete the first line.")
    return table, where
