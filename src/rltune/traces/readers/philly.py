"""Philly (Microsoft, 2017): one JSON list of jobs, ``trace-data/cluster_job_log`` (in ``trace-data.tar.gz``, or unpacked).

A job: ``{status, vc, jobid, submitted_time, user, attempts: [{start_time, end_time, detail: [{ip, gpus: […]}]}]}``;
``attempts`` and ``detail`` may be empty. Times are wall clock, US Pacific, and may be missing or ``None``. The log has no
limits, CPUs, memory or GPU types.

- The run time is the sum of end − start over the attempts that have both times, in order: a retried job held its GPUs
  that long. Attempts without times, pauses and overlaps are noted.
- The wait is first start − submission.
- GPUs are those of the first attempt that lists any; later differences are noted.
- Jobs without GPUs, or without an attempt that has both times, are left out.
"""

from pathlib import Path
from typing import Any

import ijson
import numpy as np
import pandas as pd

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.raw.archive import open_member
from rltune.traces.raw.encoding import NOT_UTF_8, Utf8
from rltune.traces.raw.frame import raw_frame, reasons
from rltune.traces.raw.times import wall_clock_to_unix

MEMBER = "cluster_job_log"
ARCHIVES = ("trace-data.tar.gz",)
STATUS = {"Pass": "passed", "Failed": "failed", "Killed": "killed"}


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Raw columns of a Philly log; memory grows by a few numbers per job, not with the JSON.

    Raises:
        DataError: the log is missing, truncated, not JSON, or not a list of jobs.
    """
    with open_member(folder, MEMBER, ARCHIVES) as (stream, where):
        text = Utf8(stream, where)
        jobs, attempts = _stream(text, where)
    audit.note(NOT_UTF_8, text.latin_1)
    rows, owner = len(jobs), attempts["job"].to_numpy(np.int64)
    audit.read(rows)
    submit = wall_clock_to_unix(_text(jobs["submitted"]), trace.time_zone, "submitted_time", audit, where=where)
    start, end = _attempt_times(attempts, submit, owner, trace.time_zone, where, audit)
    whole = end >= start
    audit.note("attempt ends before it starts: not counted in the run time", (end < start).sum())
    tried, complete = np.bincount(owner, minlength=rows), np.bincount(owner[whole], minlength=rows)
    run = np.bincount(owner[whole], weights=(end - start)[whole], minlength=rows)
    span = _extreme(np.fmax, end[whole], owner[whole], rows) - _extreme(np.fmin, start[whole], owner[whole], rows)
    gpus = jobs["gpus"].to_numpy(np.float64)
    for remark, holds in (
        ("job with an attempt without times, run time from its other attempts", (complete > 0) & (complete < tried)),
        ("job with more than one attempt, run time is their sum", complete > 1),
        ("job whose attempts have pauses between them: their span is longer than their sum", span > run),
        ("job whose attempts overlap: their sum is longer than their span", run > span),
        ("job whose attempts list different numbers of GPUs: the first counts", jobs["varies"]),
    ):
        audit.note(remark, holds.sum())
    columns = {
        "job_id": jobs["job_id"],
        "user": jobs["user"],
        "vc": jobs["vc"],
        "submit_unix_s": submit,
        "run_s": run,
        "gpus": gpus,
        "wait_s": _extreme(np.fmin, start, owner, rows) - submit,
        "status": _text(jobs["status"]).map(STATUS),
        "unusable": reasons(
            rows,
            ("no attempt to run", tried == 0),
            ("no attempt with start and end time", complete == 0),
            ("no GPUs listed in any attempt", gpus == 0),
        ),
    }
    return raw_frame(columns, rows)


def _extreme(of: np.ufunc, times: np.ndarray, owner: np.ndarray, rows: int) -> np.ndarray:
    """The first (np.fmin) or last (np.fmax) of each job's times; null where it has none."""
    found = np.full(rows, np.nan)
    of.at(found, owner, times)
    return found


def _attempt_times(
    attempts: pd.DataFrame, submit: np.ndarray, owner: np.ndarray, time_zone: str, where: str, audit: Audit
) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of the attempts, s since 1970; ``owner`` is the row of each one's job, ascending.

    A time in the hour repeated in autumn is the first of its two readings that is not before the job's latest time so
    far: its submission, then the starts and ends of its earlier attempts.
    """
    early, late = [], []
    for name in ("start", "end"):
        text = _text(attempts[name])
        early.append(wall_clock_to_unix(text, time_zone, f"{name}_time", audit, where=where))
        never = np.full(len(text), np.inf)  # after any time, so that the second reading is taken
        late.append(wall_clock_to_unix(text, time_zone, f"{name}_time", Audit(), never, where))
    number = np.arange(len(owner)) - np.searchsorted(owner, owner)  # of an attempt within its job, from 0
    latest = submit.copy()
    for these in np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(number))[:-1]):
        job = owner[these]
        for first, second in zip(early, late):
            first[these] = np.where(first[these] < latest[job], second[these], first[these])
            latest[job] = np.fmax(latest[job], first[these])
    return early[0], early[1]


def _stream(stream: Any, where: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The jobs, and their attempts, whose ``job`` is the row of the job they belong to."""
    jobs: list[tuple[Any, ...]] = []
    attempts: list[tuple[Any, ...]] = []
    try:
        for row, job in enumerate(stream.entries()):
            if not isinstance(job, dict):
                found = "a list" if isinstance(job, list) else repr(job)[:60]
                raise DataError(f"{where}: entry {row} is {found}; expected a job, i.e. a JSON object.")
            tried = _dicts(job.get("attempts"))
            attempts += [(row, attempt.get("start_time"), attempt.get("end_time")) for attempt in tried]
            listed = [*filter(None, map(_gpus, tried))]
            names = [_name(job.get(key)) for key in ("jobid", "user", "vc", "status")]
            jobs.append((*names, job.get("submitted_time"), listed[0] if listed else 0, len(set(listed)) > 1))
    except (ijson.JSONError, UnicodeDecodeError) as error:
        kind = "truncated" if "premature EOF" in str(error) or "incomplete" in str(error).lower() else "not valid"
        reason = str(error).splitlines()[0]
        raise DataError(f"{where}: {kind} JSON after {len(jobs)} jobs ({reason}).") from None
    if not jobs:
        raise DataError(f'{where}: no jobs in it; expected one JSON list of jobs ([{{"jobid": …}}, …]).')
    columns = ["job_id", "user", "vc", "status", "submitted", "gpus", "varies"]
    return pd.DataFrame(jobs, columns=columns), pd.DataFrame(attempts, columns=["job", "start", "end"])


def _gpus(attempt: dict[str, Any]) -> int:
    """GPUs listed over the nodes of an attempt."""
    listed = (node.get("gpus") for node in _dicts(attempt.get("detail")))
    return sum(len(gpus) for gpus in listed if isinstance(gpus, list))


def _name(value: Any) -> str | None:
    """Text of a name, null for a list or object."""
    return None if value is None or isinstance(value, (list, dict)) else str(value)


def _dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a JSON list; anything else counts as absent."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _text(values: pd.Series) -> pd.Series:
    return pd.Series([v if isinstance(v, str) else None for v in values], dtype="str")
