"""Alibaba PAI (2020): ``pai_job_table`` and ``pai_task_table``, CSV without header rows, each in its tar.gz.

A row of the task table becomes a job, named ``job/task``: its instances start together and hold their GPUs together, and
the paper's 1.2 million jobs are the tasks.

- ``plan_gpu`` and ``plan_cpu`` are percentages of one GPU or core, and ``plan_mem`` GB, per instance. Tasks without
  ``plan_gpu`` are CPU tasks: left out.
- Submission is the job's ``start_time`` (when it was submitted), the wait is task start − job start, the run time the
  task's end − start.
- Only Terminated tasks with both times are jobs; others are left out by status.
- The clock is shifted: read as seconds since 1970 in Asia/Shanghai, hours and weekdays are right, dates are not.

Two more tables are used where they are present; differences are noted:

- ``pai_instance_table``: a task starts with its first instance and ends with its last, of those with both times in
  order; tasks without such instances keep their own times. The number of instances is the task table's.
- ``pai_group_tag_table``: ``gpu_type_spec``, the type a job required, goes before the task's ``gpu_type``, the type it
  was given.
"""

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.raw.archive import holds, open_member
from rltune.traces.raw.csv_text import csv_blocks, read_csv_text
from rltune.traces.raw.frame import numbers, raw_frame, reasons

JOB_COLUMNS = ["job_name", "inst_id", "user", "status", "start_time", "end_time"]
TASK_COLUMNS = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type".split(",")
INSTANCE_COLUMNS = "job_name,task_name,inst_name,worker_name,inst_id,status,start_time,end_time,machine".split(",")
TAG_COLUMNS = ["inst_id", "user", "gpu_type_spec", "group", "workload"]
STATUS = {"Terminated": "passed", "Failed": "failed", "Running": "running"}


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Raw columns of the PAI task table, joined with the job table and those of the others that are there.

    Raises:
        DataError: a table is missing, truncated, or has not the expected number of columns.
    """
    folder = folder.resolve().parent if folder.is_file() else folder
    kept = ("job_name", "inst_id", "user", "start_time")
    jobs, jobs_where = _side_table(folder, "pai_job_table", JOB_COLUMNS, kept, audit)
    jobs["submit"] = numbers(jobs.pop("start_time"), "job start_time", audit, jobs_where)
    tasks, where = _table(folder, "pai_task_table", TASK_COLUMNS, audit)
    jobs = jobs.dropna(subset="job_name")
    audit.note("job named again in the job table: its first row counts", jobs["job_name"].duplicated().sum())
    tasks = tasks.merge(jobs.drop_duplicates("job_name"), on="job_name", how="left", indicator="job")
    amount = {
        name: numbers(tasks[name], f"task {name}" if name.endswith("time") else name, audit, where)
        for name in ("start_time", "end_time", "inst_num", "plan_cpu", "plan_mem", "plan_gpu")
    }
    start, end, instances = amount["start_time"], amount["end_time"], amount["inst_num"]
    if holds(folder, "pai_instance_table.csv", ("pai_instance_table.tar.gz",)):
        start, end = _actual_times(folder, tasks, start, end, instances, audit)
    gpu_type = tasks["gpu_type"]
    if holds(folder, "pai_group_tag_table.csv", ("pai_group_tag_table.tar.gz",)):
        gpu_type = _required_type(folder, tasks["inst_id"], gpu_type, audit)
    gpus = instances * amount["plan_gpu"] / 100
    status = tasks["status"].fillna("without status")
    named = "task " + status.where(status.isin([*STATUS, "Waiting"]), "of unknown status")
    unusable = reasons(
        len(tasks),
        ("task's job is not in the job table", tasks["job"] != "both"),
        ("no start or end time", np.isnan(end - start)),
        ("CPU task (no plan_gpu)", np.isnan(gpus) | (gpus == 0)),
    )
    columns = {
        "job_id": tasks["job_name"] + "/" + tasks["task_name"].fillna(""),
        "user": tasks["user"],
        "submit_unix_s": tasks["submit"],
        "run_s": end - start,
        "gpus": gpus,
        "cpus": instances * amount["plan_cpu"] / 100,
        "mem_gb": instances * amount["plan_mem"],
        "gpu_type": gpu_type,
        "wait_s": start - tasks["submit"],
        "status": status.map(STATUS),
        "unusable": np.where(status != "Terminated", named, unusable),
    }
    return raw_frame(columns, len(tasks))


def _actual_times(
    folder: Path, tasks: pd.DataFrame, start: np.ndarray, end: np.ndarray, instances: np.ndarray, audit: Audit
) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of the tasks as their instances have them (those with both times in order)."""
    name, side, parts, by = "pai_instance_table", Audit(), [], ["job_name", "task_name"]
    with open_member(folder, f"{name}.csv", (f"{name}.tar.gz",)) as (stream, where):
        for block in csv_blocks(stream, where, side, INSTANCE_COLUMNS, (*by, "start_time", "end_time")):
            rows = block.to_pandas()
            times = {c: numbers(rows[f"{c}_time"], f"{c}_time", side, where) for c in ("start", "end")}
            bad = ~(times["end"] >= times["start"])
            side.note("instance without start and end in order", bad.sum())
            rows = rows[by].assign(**{c: np.where(bad, np.nan, times[c]) for c in times}, count=1)
            parts.append(rows.groupby(by, as_index=False).agg(_OF_TASK))
    _pass_on(side, name, audit)
    found = tasks[by].merge(pd.concat(parts).groupby(by, as_index=False).agg(_OF_TASK), on=by, how="left")
    first, last, count = (found[c].to_numpy("float64") for c in ("start", "end", "count"))
    timed = ~np.isnan(first)
    apart = timed & ((np.abs(first - start) > 1) | (np.abs(last - end) > 1))
    audit.note("task without instances that have both times: its own times count", (~timed).sum())
    audit.note("task's times differ from its instances' by more than a second: theirs count", apart.sum())
    audit.note(
        "inst_num differs from the rows of the instance table: inst_num counts",
        (~np.isnan(count) & ~np.isnan(instances) & (count != instances)).sum(),
    )
    return np.where(timed, first, start), np.where(timed, last, end)


_OF_TASK = {"start": "min", "end": "max", "count": "sum"}


def _required_type(folder: Path, inst_id: pd.Series, allocated: pd.Series, audit: Audit) -> pd.Series:
    """GPU types that the jobs require; of those that require none, the allocated ones."""
    tags, _ = _side_table(folder, "pai_group_tag_table", TAG_COLUMNS, ("inst_id", "gpu_type_spec"), audit)
    spec = inst_id.map(tags.dropna().drop_duplicates("inst_id").set_index("inst_id")["gpu_type_spec"]).astype("str")
    audit.note("GPU type as required by gpu_type_spec", spec.notna().sum())
    audit.note(
        "GPU type given (gpu_type) is not the one required (gpu_type_spec): the required one counts",
        (spec.notna() & allocated.notna() & (spec != allocated)).sum(),
    )
    return spec.fillna(allocated)


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
    """One headerless table, and how messages name it. A header row is refused, and another number of columns."""
    with open_member(folder, f"{name}.csv", (f"{name}.tar.gz",)) as (stream, where):
        table = read_csv_text(stream, where, audit, names=columns, keep=keep)
    if table.empty:
        raise DataError(f"{where}: no rows with {len(columns)} columns; expected {','.join(columns)} without header.")
    if table.iloc[0, 0] == table.columns[0]:
        raise DataError(f"{where}: has a header row; the PAI tables have none. Delete the first line.")
    return table, where
