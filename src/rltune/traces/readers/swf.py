"""Standard Workload Format (Parallel Workloads Archive, version 2.2): one line a job, 18 fields, −1 for unknown. Plain or .gz.

Comment lines begin with ``;``; those at the top are the header (``; Key: value``).

- Submission is the header's ``UnixStartTime`` + field 2. Without that line (models have none) distances are right and
  dates mean nothing; noted. A comment may follow a number (``893466664 (Fri Apr 24)``, ``128 processors``).
- ``TimeZoneString`` is the zone of the cluster's clock. A ``time_zone`` that differs is used and noted. ``TimeZone``, an
  offset in seconds, is deprecated by the format as faulty, and ignored.
- CPUs: processors allocated, else requested. Memory: kilobytes (1,024 bytes) per processor, requested, else used, times
  the processors.
- ``vc`` is the partition (the part of the machine that a job is confined to) if any job has one, else the queue.
- Status 1 passed, 0 failed, 5 killed. 2, 3 and 4 are parts of a swapped-out job that also has a line for the whole: left
  out. Status 5 without run time was cancelled before it started: left out.
- Jobs with more processors than ``MaxProcs``, and a ``MaxProcs`` that is not a number, are noted.
"""

import io
import re
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pandas as pd

from rltune.config.trace import TraceConfig
from rltune.errors import ConfigError, DataError
from rltune.traces.audit import Audit
from rltune.traces.raw.archive import one_file, open_member
from rltune.traces.raw.csv_text import read_csv_text
from rltune.traces.raw.encoding import NOT_UTF_8, Utf8
from rltune.traces.raw.frame import numbers, raw_frame, reasons

COLUMNS = (
    "job_number,submit_time,wait_time,run_time,allocated_processors,average_cpu_time,used_memory,"
    "requested_processors,requested_time,requested_memory,status,user_id,group_id,executable,queue,"
    "partition,preceding_job,think_time"
).split(",")
PATTERNS = ("*.swf", "*.swf.gz")
STATUS = {0.0: "failed", 1.0: "passed", 5.0: "killed"}
PARTIAL = (2.0, 3.0, 4.0)
CANCELLED = 5.0
GB_PER_KB = 1024e-9
_HEADER = re.compile(r";\s*(\w+):\s*(.*?)\s*$")
_NUMBER = re.compile(r"([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?=$|[\s;(]|,(?!\d))")
"""A number at a header value's beginning, which a remark may follow: ``893466664 (Fri Apr 24)``, ``128 processors``."""
_HALF_YEAR_S = 182 * 86_400


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Raw columns of an SWF log.

    Raises:
        ConfigError: the header names a time zone and the trace's configuration none.
        DataError: no or several SWF files, not SWF, truncated or damaged.
    """
    path = one_file(folder, PATTERNS, "an SWF log")
    with open_member(path, path.name) as (stream, where):
        text = Utf8(stream, where)
        lines = io.BufferedReader(text).read().decode().split("\n")
    audit.note(NOT_UTF_8, text.latin_1)
    head = header(lines)
    fields = (" ".join(line.split()) for line in lines if not line.lstrip().startswith(";"))
    rows = "\n".join(filter(None, fields)) + "\n" * (not text.open_end)
    log = read_csv_text(io.BytesIO(rows.encode()), where, audit, names=COLUMNS, delimiter=" ", quoted=False)
    if log.empty:
        raise DataError(f"{where}: no line of {len(COLUMNS)} fields; expected SWF (Standard Workload Format).")
    read = {name: numbers(log[name], name, audit, where) for name in COLUMNS[1:]}
    known = {name: np.where(values == -1, np.nan, values) for name, values in read.items()}
    status, run = known["status"], known["run_time"]
    cpus = _processors(known, head, audit)
    partial = np.isin(status, PARTIAL)
    summed = partial.copy()
    if partial.any():  # looking up numbers of all jobs takes seconds
        summed[partial] = log["job_number"][partial].isin(log["job_number"][~partial])
    columns = {
        "job_id": log["job_number"],
        "user": _labels(known["user_id"]),
        "vc": _labels(known["queue"] if np.isnan(known["partition"]).all() else known["partition"]),
        "submit_unix_s": _start(head, trace, where, len(log), audit) + known["submit_time"],
        "run_s": run,
        "requested_s": known["requested_time"],
        "resource": "cpu",
        "gpus": 0.0,
        "cpus": cpus,
        "mem_gb": _memory(known, audit) * cpus * GB_PER_KB,
        "wait_s": known["wait_time"],
        "status": pd.Series(status).map(STATUS),
        "unusable": reasons(
            len(log),
            ("part of a job that was swapped out (status 2, 3 or 4); the job has its own line", summed),
            ("part of a job that was swapped out (status 2, 3 or 4), without the job's own line", partial & ~summed),
            ("cancelled before it started", (status == CANCELLED) & ~(run > 0)),
            ("submission time negative", known["submit_time"] < 0),
        ),
    }
    return raw_frame(columns, len(log))


def header(lines: list[str]) -> dict[str, str]:
    """The header's ``Key: value`` comments above the first job; of a key that comes again the first value."""
    found: dict[str, str] = {}
    for line in lines:
        if line.strip() and not line.lstrip().startswith(";"):
            break
        match = _HEADER.match(line.strip())
        if match:
            found.setdefault(match[1], match[2])
    return found


def _start(head: dict[str, str], trace: TraceConfig, where: str, rows: int, audit: Audit) -> float:
    """Seconds since 1970 UTC at which the log's clock is 0; after comparing the log's time zone with the trace's."""
    start_s = _leading_number(head.get("UnixStartTime", ""))
    if start_s is None:
        audit.note("without a date, as the header has no number as UnixStartTime: dates and hours mean nothing", rows)
        return 0.0
    zone = head.get("TimeZoneString", "")
    if not zone or _same_clock(zone, trace.time_zone, start_s):
        return start_s
    if "time_zone" not in trace.model_fields_set:
        raise ConfigError(f"time_zone: not given; write `time_zone: {zone}`, as the header of {where} says.")
    audit.note(f"hours of the day counted in {trace.time_zone}; the log's header says {zone}", rows)
    return start_s


def _same_clock(zone: str, other: str, start_s: float) -> bool:
    """Whether two time zones have the same clock around a time (s since 1970), summer and winter: US/Pacific and
    America/Los_Angeles. A name that no time zone has is no reason to object."""
    try:
        times = [datetime.fromtimestamp(start_s + s, UTC) for s in (0, _HALF_YEAR_S)]
        return all(t.astimezone(ZoneInfo(zone)).utcoffset() == t.astimezone(ZoneInfo(other)).utcoffset() for t in times)
    except (ZoneInfoNotFoundError, ValueError, OSError, OverflowError):
        return True


def _processors(known: dict[str, np.ndarray], head: dict[str, str], audit: Audit) -> np.ndarray:
    """Processors allocated, else requested; null where neither is known."""
    allocated, requested = known["allocated_processors"], known["requested_processors"]
    cpus = np.where(allocated > 0, allocated, np.where(requested > 0, requested, np.nan))
    audit.note("processors requested taken, as none are known to be allocated", (~(allocated > 0) & (cpus > 0)).sum())
    audit.note("processors unknown", np.isnan(cpus).sum())
    most = _leading_number(head.get("MaxProcs", ""))
    if most is not None and most > 0:
        audit.note("more processors than the machine has (MaxProcs)", (cpus > most).sum())
    elif most is None and head.get("MaxProcs"):
        audit.note("the header's MaxProcs is not a number: processors not compared with it", len(cpus))
    return cpus


def _leading_number(value: str) -> float | None:
    """The number a header value begins with; None where there is none."""
    match = _NUMBER.match(value)
    number = float(match[1]) if match else np.inf
    return number if np.isfinite(number) else None


def _memory(known: dict[str, np.ndarray], audit: Audit) -> np.ndarray:
    """Memory a processor, kilobytes: requested, else used."""
    requested, used = known["requested_memory"], known["used_memory"]
    audit.note("memory used taken, as none is known to be requested", (~(requested > 0) & (used > 0)).sum())
    return np.where(requested > 0, requested, used)


def _labels(numbers: np.ndarray) -> pd.Series:
    """Numbers that are names, as text: 3.0 → "3"."""
    return pd.Series(numbers).map({v: f"{v:.15g}" for v in pd.unique(numbers) if not np.isnan(v)})
