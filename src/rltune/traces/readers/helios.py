"""Helios (SenseTime, 2020): ``data/<part>/cluster_log.csv``, one row a job, from a Slurm cluster.

Columns: job_id, user, vc, gpu_num, cpu_num, node_num, state, submit_time, start_time, end_time, duration, queue (s).

Rules: ``run_s`` is ``duration``, else end − start; ``wait_s`` is start − submission, else ``queue``; jobs with
``gpu_num`` 0 are CPU jobs, which the paper's GPU experiments do not use: left out and counted.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from rltune.config.trace import TraceConfig
from rltune.traces.audit import Audit
from rltune.traces.readers.archive import open_member
from rltune.traces.readers.raw import missing_column, numbers, raw_frame, read_csv_text, reasons
from rltune.traces.readers.times import wall_clock_to_unix

ARCHIVES = ("data.zip",)
NEEDED = ("job_id", "user", "vc", "gpu_num", "state", "submit_time")
STATUS = {
    "COMPLETED": "passed",
    "CANCELLED": "killed",
    "CANCELED": "killed",
    "FAILED": "failed",
    "TIMEOUT": "failed",
    "NODE_FAIL": "failed",
    "OUT_OF_MEMORY": "failed",
    "RUNNING": "running",
}


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Raw columns of one Helios cluster's log.

    Raises:
        DataError: the log or one of its columns is missing, or the archive is truncated.
    """
    with open_member(folder, f"{trace.part}/cluster_log.csv", ARCHIVES) as (stream, where):
        log = read_csv_text(stream, where, audit)
    for column in NEEDED:
        if column not in log.columns:
            raise missing_column(where, column, "of the Helios layout", list(log.columns))
    rows = len(log)
    log = log.reindex(columns=[*NEEDED, "cpu_num", "start_time", "end_time", "duration", "queue"])
    submit = wall_clock_to_unix(log["submit_time"], trace.time_zone, "submit_time", audit)
    start = wall_clock_to_unix(log["start_time"], trace.time_zone, "start_time", audit, submit)
    end = wall_clock_to_unix(log["end_time"], trace.time_zone, "end_time", audit, start)
    run = numbers(log["duration"], "duration", audit)
    audit.note("run time from end − start, as duration is empty", (np.isnan(run) & np.isfinite(end - start)).sum())
    wait = np.where(np.isfinite(start - submit), start - submit, numbers(log["queue"], "queue", audit))
    audit.note("started before submission, wait unknown", (wait < 0).sum())
    gpus = numbers(log["gpu_num"], "gpu_num", audit)
    cpus = numbers(log["cpu_num"], "cpu_num", audit)
    state = log["state"].str.strip().str.split(" ").str[0].str.upper()  # "CANCELLED by 1034" → "CANCELLED"
    audit.note("status unknown", (~state.isin(list(STATUS))).sum())
    columns = {
        "job_id": log["job_id"],
        "user": log["user"],
        "vc": log["vc"],
        "submit_unix_s": submit,
        "run_s": np.where(np.isnan(run), end - start, run),
        "gpus": gpus,
        "cpus": np.where(cpus > 0, cpus, np.nan),
        "wait_s": np.where(wait < 0, np.nan, wait),
        "status": state.map(STATUS).fillna("unknown"),
        "unusable": reasons(rows, ("CPU job (gpu_num 0)", gpus == 0)),
    }
    return raw_frame(columns, rows)
