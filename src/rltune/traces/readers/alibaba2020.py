"""Alibaba PAI (2020): ``pai_job_table`` and ``pai_task_table``, CSV without header rows, each in its tar.gz.

A row of the task table becomes a job: its instances start together and hold their GPUs together, and the paper's
1.2 million jobs are the tasks. Rules:
- ``gpus`` = ceil(inst_num × plan_gpu / 100): plan_gpu is percent of a GPU per instance; shares of one GPU are rounded
  up over the task, as a whole GPU is the unit scheduled here.
- ``cpus`` = inst_num × plan_cpu / 100 (plan_cpu is percent of a core), ``mem_gb`` = inst_num × plan_mem.
- submission is the job's ``start_time`` (when it was submitted), wait is task start − job start, run is the task's
  end − start; ``user`` is the job's.
- Only tasks that are Terminated (finished) with both times are jobs; the others are counted by status.
- Times are seconds of a shifted clock; read as seconds since 1970 in Asia/Shanghai they keep the hour of day and the
  day of week of the original.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.readers.archive import open_member
from rltune.traces.readers.raw import numbers, raw_frame, read_csv_text, reasons

JOB_COLUMNS = ["job_name", "inst_id", "user", "status", "start_time", "end_time"]
TASK_COLUMNS = ["job_name", "task_name", "inst_num", "status", "start_time", "end_time",
                "plan_cpu", "plan_mem", "plan_gpu", "gpu_type"]
STATUS = {"Terminated": "passed", "Failed": "failed", "Running": "running"}


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Raw columns of the PAI task table, joined with the job table.

    Raises:
        DataError: a table is missing, truncated, or has not the expected number of columns.
    """
    folder = folder.parent if folder.is_file() else folder
    # The job table's rows are not jobs in our sense: they are read under an audit of their own.
    jobs = _table(folder, "pai_job_table", JOB_COLUMNS, Audit())
    tasks = _table(folder, "pai_task_table", TASK_COLUMNS, audit)
    rows = len(tasks)
    jobs = jobs.drop_duplicates("job_name").set_index("job_name")
    at = jobs.index.get_indexer(tasks["job_name"])
    known = at >= 0
    submit = np.where(known, numbers(jobs["start_time"], "job start_time", audit)[at], np.nan)
    user = np.where(known, jobs["user"].to_numpy(object)[at], None)
    start = numbers(tasks["start_time"], "task start_time", audit)
    end = numbers(tasks["end_time"], "task end_time", audit)
    instances = numbers(tasks["inst_num"], "inst_num", audit)
    cpus = instances * numbers(tasks["plan_cpu"], "plan_cpu", audit) / 100
    mem_gb = instances * numbers(tasks["plan_mem"], "plan_mem", audit)
    percent = instances * numbers(tasks["plan_gpu"], "plan_gpu", audit)
    wait = start - submit
    audit.note("started before submission, wait unknown", (wait < 0).sum())
    audit.note("share of a GPU rounded up to whole GPUs", (percent % 100 > 0).sum())
    status = tasks["status"].fillna("without status")
    other = status != "Terminated"
    unusable = np.where(other, "task " + status.where(status.isin([*STATUS, "Waiting"]), "of unknown status"), None)
    rest = reasons(
        rows,
        ("task's job is not in the job table", ~known),
        ("no start or end time", np.isnan(end - start)),
        ("CPU task (no plan_gpu)", np.isnan(percent) | (percent == 0)),
    )
    columns = {
        "job_id": tasks["job_name"].fillna("") + "/" + tasks["task_name"].fillna(""),
        "user": user,
        "submit_unix_s": submit,
        "run_s": end - start,
        "gpus": np.ceil(percent / 100),
        "cpus": np.where(cpus > 0, cpus, np.nan),
        "mem_gb": np.where(mem_gb > 0, mem_gb, np.nan),
        "gpu_type": tasks["gpu_type"],
        "wait_s": np.where(wait < 0, np.nan, wait),
        "status": status.map(STATUS).fillna("unknown"),
        "unusable": np.where(other, unusable, rest),
    }
    return raw_frame(columns, rows)


def _table(folder: Path, name: str, columns: list[str], audit: Audit) -> pd.DataFrame:
    """One headerless table, from ``<name>.csv`` lying there or inside ``<name>.tar.gz``; a header row is refused."""
    with open_member(folder, f"{name}.csv", (f"{name}.tar.gz",)) as (stream, where):
        table = read_csv_text(stream, where, audit, names=columns)
    first = table.iloc[0] if len(table) else None
    if first is None or table[columns[4]].isna().all():
        raise DataError(f"{where}: no rows with {len(columns)} columns; expected {','.join(columns)} without header.")
    if first["job_name"] == "job_name":
        raise DataError(f"{where}: has a header row; the PAI tables have none. Delete the first line.")
    return table
