"""Helios (SenseTime, 2020): ``data/<part>/cluster_log.csv``, one row a job, from a Slurm cluster.

Columns: job_id, user, vc, gpu_num, cpu_num, node_num, state, submit_time, start_time, end_time, duration, queue (s).

Rules: ``run_s`` is ``duration``, else end − start; ``wait_s`` is start − submission, else ``queue``; jobs with
``gpu_num`` 0 are CPU jobs, which the paper's GPU experiments do not use: left out and counted.

``part: all`` reads the four clusters one after the other. Job ids and virtual clusters get the cluster's name before
them (``Venus/1``), as both are numbered or named by cluster; users keep theirs, as one may work on several.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.raw.archive import is_archive, open_member
from rltune.traces.raw.frame import map_values, missing_column, numbers, raw_frame, read_csv_text, reasons
from rltune.traces.raw.times import wall_clock_to_unix

ARCHIVES = ("data.zip",)
CLUSTERS = ("Earth", "Saturn", "Uranus", "Venus")
NEEDED = ("job_id", "user", "vc", "gpu_num", "state", "submit_time")
OPTIONAL = ("cpu_num", "start_time", "end_time", "duration", "queue")
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
    """Raw columns of one Helios cluster's log, or of all four.

    Raises:
        DataError: a log or one of its columns is missing, the archive is truncated, or `all` is to be read from one.
    """
    if trace.part != "all":
        return _cluster(str(trace.part), trace.time_zone, folder, audit)
    if folder.is_file() and not is_archive(folder):
        raise DataError(
            f"{folder}: one file, which `part: all` would read as each of {', '.join(CLUSTERS)}; expected the folder "
            f"or the archive ({ARCHIVES[0]}) that holds the four logs. Give that as `path`, or name the log's "
            "cluster as `part`."
        )
    parts = []
    for part in CLUSTERS:
        rows = _cluster(part, trace.time_zone, folder, audit)
        for name in ("job_id", "vc"):
            rows[name] = (f"{part}/" + rows[name]).where(rows[name].fillna("") != "")
        parts.append(rows)
    return pd.concat(parts, ignore_index=True)


def _cluster(part: str, time_zone: str, folder: Path, audit: Audit) -> pd.DataFrame:
    with open_member(folder, f"{part}/cluster_log.csv", ARCHIVES) as (stream, where):
        log = read_csv_text(stream, where, audit, once=(*NEEDED, *OPTIONAL))
    for column in NEEDED:
        if column not in log.columns:
            raise missing_column(where, column, "of the Helios layout", list(log.columns))
    rows = len(log)
    log = log.reindex(columns=[*NEEDED, *OPTIONAL])
    submit = wall_clock_to_unix(log.pop("submit_time"), time_zone, "submit_time", audit, where=where)
    start = wall_clock_to_unix(log.pop("start_time"), time_zone, "start_time", audit, submit, where)
    end = wall_clock_to_unix(log.pop("end_time"), time_zone, "end_time", audit, start, where)
    run = numbers(log.pop("duration"), "duration", audit, where)
    audit.note("run time from end − start, as duration is empty", (np.isnan(run) & np.isfinite(end - start)).sum())
    wait = np.where(np.isfinite(start - submit), start - submit, numbers(log.pop("queue"), "queue", audit, where))
    audit.note("started before submission, wait unknown", (wait < 0).sum())
    gpus = numbers(log.pop("gpu_num"), "gpu_num", audit, where)
    cpus = numbers(log.pop("cpu_num"), "cpu_num", audit, where)
    status = map_values(log["state"], lambda state: STATUS.get(_first_word(state), ""))
    unknown = status.isna() | (status == "")
    audit.note("status unknown", unknown.sum())
    columns = {
        "job_id": log["job_id"],
        "user": log["user"],
        "vc": log["vc"],
        "submit_unix_s": submit,
        "run_s": np.where(np.isnan(run), end - start, run),
        "gpus": gpus,
        "cpus": np.where(cpus > 0, cpus, np.nan),
        "wait_s": np.where(wait < 0, np.nan, wait),
        "status": status.mask(unknown, "unknown"),
        "unusable": reasons(rows, ("CPU job (gpu_num 0)", gpus == 0)),
    }
    return raw_frame(columns, rows)


def _first_word(state: str) -> str:
    """``CANCELLED by 1034`` → ``CANCELLED``."""
    return state.strip().split(" ")[0].upper()


def daily_gpus(folder: Path, part: str) -> pd.DataFrame:
    """GPUs of each virtual cluster on each day, from ``<part>/cluster_gpu_number.csv``: the size of the system.

    Returns:
        Index ``day`` (dates, ascending), one float column a virtual cluster in the file's order, null where the file
        has none that day, and ``total``.

    Raises:
        DataError: the file is missing or not in its layout (``date,<vc…>,total``), a field is not a number of GPUs, a
            day is named twice, or a total is not the sum of its day.
    """
    with open_member(folder, f"{part}/cluster_gpu_number.csv", ARCHIVES) as (stream, where):
        text = read_csv_text(stream, where, Audit())
    for column in ("date", "total"):
        if column not in text.columns:
            raise missing_column(where, column, "of the Helios layout", list(text.columns))
    days = pd.to_datetime(text["date"], errors="coerce", format="ISO8601").dt.date
    if len(text) == 0 or days.isna().any() or days.duplicated().any():
        odd = text["date"][days.isna() | days.duplicated()]
        raise DataError(f"{where}: column 'date': expected each day once, as YYYY-MM-DD; found {odd.head(3).tolist()}.")
    audit = Audit()
    gpus = pd.DataFrame({c: numbers(text[c], c, audit, where) for c in text.columns if c != "date"})
    gpus.index = pd.Index(days, name="day")
    gpus = gpus[[c for c in gpus.columns if c != "total"] + ["total"]].sort_index()
    wrong = ~np.isclose(gpus.drop(columns="total").sum(axis=1), gpus["total"])
    if audit.noted or (gpus < 0).any(axis=None) or wrong.any():
        days = ", ".join(str(day) for day in gpus.index[wrong][:3])
        what = "; ".join(audit.noted) or f"total is not the sum of the virtual clusters, or one is negative ({days})"
        raise DataError(f"{where}: {what}; expected numbers of GPUs, and their sum as total. Obtain the file again.")
    return gpus
