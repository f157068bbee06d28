"""Helios (SenseTime, 2020): ``data/<part>/cluster_log.csv`` (in ``data.zip``, or unpacked), one row a job, from a Slurm cluster.

``part`` is Earth, Saturn, Uranus, Venus or all. ``all`` reads the four one after the other, from the folder or the archive;
job ids and virtual clusters, which repeat between clusters, then begin with the cluster's name (``Venus/1``). Users keep theirs,
as one may work on several.

- The run time is ``duration``, else end − start; the wait is start − submission, else ``queue``. Times are Asia/Shanghai.
- ``gpu_num`` 0 is a CPU job: left out.
- COMPLETED is passed; CANCELLED (also ``CANCELLED by 1034``) killed; FAILED, TIMEOUT, NODE_FAIL, OUT_OF_MEMORY failed;
  other states are as in ``sacct``, or unknown and noted.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.raw import slurm_fields as slurm
from rltune.traces.raw.archive import is_archive, open_member
from rltune.traces.raw.csv_text import read_csv_text
from rltune.traces.raw.frame import numbers, raw_frame, reasons
from rltune.traces.raw.times import wall_clock_to_unix
from rltune.traces.readers import sacct

ARCHIVES = ("data.zip",)
CLUSTERS = ("Earth", "Saturn", "Uranus", "Venus")
NEEDED = ("job_id", "user", "vc", "gpu_num", "state", "submit_time")
OPTIONAL = ("cpu_num", "start_time", "end_time", "duration", "queue")
STATUS = {**sacct.STATUS, "CANCELED": "killed", "RUNNING": "running"}


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Raw columns of one Helios cluster's log, or of all four.

    Raises:
        DataError: a log or one of its columns is missing, the archive is truncated, or `all` is to be read from one.
    """
    if trace.part != "all":
        return _cluster(str(trace.part), trace.time_zone, folder, audit)
    if folder.is_file() and not is_archive(folder):
        found = f"{folder}: found one file, which has to be of one cluster"
        raise DataError(f"{found}; expected the folder or the archive ({ARCHIVES[0]}) of all four with `part: all`.")
    parts = []
    for part in CLUSTERS:
        rows = _cluster(part, trace.time_zone, folder, audit)
        for name in ("job_id", "vc"):
            rows[name] = (f"{part}/" + rows[name]).where(rows[name].fillna("") != "")
        parts.append(rows)
    return pd.concat(parts, ignore_index=True)


def _cluster(part: str, time_zone: str, folder: Path, audit: Audit) -> pd.DataFrame:
    with open_member(folder, f"{part}/cluster_log.csv", ARCHIVES) as (stream, where):
        layout = dict.fromkeys(NEEDED, "of the Helios layout") | dict.fromkeys(OPTIONAL)
        log = read_csv_text(stream, where, audit, needed=layout)
    log = log.reindex(columns=list(layout))
    submit = wall_clock_to_unix(log.pop("submit_time"), time_zone, "submit_time", audit, where=where)
    start = wall_clock_to_unix(log.pop("start_time"), time_zone, "start_time", audit, submit, where)
    end = wall_clock_to_unix(log.pop("end_time"), time_zone, "end_time", audit, start, where)
    run = numbers(log.pop("duration"), "duration", audit, where)
    audit.note("run time from end − start, as duration is empty", (np.isnan(run) & np.isfinite(end - start)).sum())
    queue = numbers(log.pop("queue"), "queue", audit, where)
    gpus = numbers(log.pop("gpu_num"), "gpu_num", audit, where)
    columns = {
        "job_id": log["job_id"],
        "user": log["user"],
        "vc": log["vc"],
        "submit_unix_s": submit,
        "run_s": np.where(np.isnan(run), end - start, run),
        "gpus": gpus,
        "cpus": numbers(log.pop("cpu_num"), "cpu_num", audit, where),
        "wait_s": np.where(np.isfinite(start - submit), start - submit, queue),
        "status": slurm.state(log["state"]).str.upper().map(STATUS),
        "unusable": reasons(len(log), ("CPU job (gpu_num 0)", gpus == 0)),
    }
    return raw_frame(columns, len(log))
