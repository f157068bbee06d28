"""Cleaning: from the raw columns of a reader to the canonical job table, every row left out counted by reason."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pandas as pd

from rltune.config.trace import TraceConfig
from rltune.errors import ConfigError, DataError
from rltune.traces.audit import Audit
from rltune.traces.columns import COLUMNS, DTYPES, TraceMeta
from rltune.traces.raw.frame import reasons
from rltune.traces.raw.times import END, FIRST
from rltune.traces.readers import read
from rltune.traces.table import sort_jobs, validate

_MAX_GPUS = 1_000_000
_MOST_RUN_S = 10 * 365.25 * 86_400
"""No machine runs one job for ten years: a number in another unit, or a time that was taken for a duration."""


@dataclass(frozen=True)
class CleanTrace:
    """One trace, cleaned."""

    jobs: pd.DataFrame
    """Canonical job table (``rltune.traces.columns``)."""
    meta: TraceMeta
    audit: Audit
    rows: pd.DataFrame
    """``run_s`` and ``gpus`` of every row read, kept or not."""

    @property
    def span(self) -> str:
        """First to last submission in words: 2024-01-03 00:01 to 2024-01-09 12:00 (UTC), 6.5 days."""
        first, last_s = pd.Timestamp(self.meta.t0), float(self.jobs["submit_s"].iloc[-1])
        last = first + pd.Timedelta(seconds=last_s)
        return f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} ({self.meta.time_zone}), {last_s / 86_400:,.1f} days"


def clean_trace(name: str, trace: TraceConfig, raw: Path) -> CleanTrace:
    """Read a trace's raw files and keep the rows that are jobs.

    A row is left out for the first of these that holds: submitted before ``start`` or from ``end`` on; the reader's
    reason; no or an impossible submission time; no, zero, negative or impossible run time; no job id; no, not positive
    or impossible GPUs (of a gpu job); a job id met before (the earliest submission stays).

    Args:
        name: the trace's name (stem of its configuration file).
        trace: its configuration.
        raw: folder or file of raw files, from ``rltune.traces.fetch.obtain``.

    Raises:
        DataError: raw files missing or damaged, or no job left; the audit is in the text.
    """
    audit = Audit()
    try:
        rows = read(trace, Path(raw), audit)
    except ConfigError as error:
        raise ConfigError(f"config/traces/{name}.yaml: {error}") from None
    rows = _without_impossible(sort_jobs(rows, "submit_unix_s"), audit)
    audit.note("run time clamped by the source", rows["run_clamped"].sum())
    audit.note("status unknown", (rows["unusable"].isna() & (rows["status"] == "unknown")).sum())
    rows["status"] = rows["status"].fillna("unknown")  # a source without any, which has none to know
    read_rows = rows[["run_s", "gpus"]]
    rows = _keep_usable(rows, trace, audit)
    audit.keep(len(rows))
    if rows.empty:
        raise DataError(f"trace {name}: no job left after cleaning {raw} ({audit}).")
    t0_unix_s = float(rows["submit_unix_s"].iloc[0])
    rows["submit_s"] = rows["submit_unix_s"] - t0_unix_s
    # Subtraction may make different submissions equal, so ties are sorted after it.
    jobs = sort_jobs(rows[list(COLUMNS)].astype(DTYPES))
    t0 = pd.Timestamp(t0_unix_s, unit="s", tz=trace.time_zone).isoformat(timespec="milliseconds")
    as_configured = trace.model_dump(include={"title", "data", "format", "time_zone", "licence", "citation"})
    meta = TraceMeta(name=name, t0=t0, source=_source(trace), **as_configured)
    return CleanTrace(validate(jobs, f"trace {name} after cleaning"), meta, audit, read_rows)


def without_names(jobs: pd.DataFrame) -> pd.DataFrame:
    """The jobs with users by the order in which they first appear, user-1, user-2, …: names of people belong in no result."""
    codes = pd.Series(pd.factorize(jobs["user"])[0] + 1, jobs.index)
    return jobs.assign(user=("user-" + codes.astype("str")).where(codes > 0).astype(DTYPES["user"]))


def _without_impossible(rows: pd.DataFrame, audit: Audit) -> pd.DataFrame:
    """The rows with impossible optional numbers set to unknown: waits below 0, the others at or below 0, time limits and
    waits over 10 years."""
    for name in ("requested_s", "cpus", "mem_gb", "wait_s"):
        bad = (rows[name] < 0) if name == "wait_s" else (rows[name] <= 0)
        audit.note(f"{name} {'negative' if name == 'wait_s' else 'not positive'}, taken as unknown", bad.sum())
        rows[name] = rows[name].mask(bad | rows[name].abs().eq(float("inf")))
    for name in ("requested_s", "wait_s"):
        long = rows[name] > _MOST_RUN_S
        audit.note(f"{name} over 10 years, taken as unknown", long.sum())
        rows[name] = rows[name].mask(long)
    return rows


def _keep_usable(rows: pd.DataFrame, trace: TraceConfig, audit: Audit) -> pd.DataFrame:
    """The rows to keep; each of the others is counted under the first reason that holds for it."""
    submit = rows["submit_unix_s"]
    gpu = rows["resource"] == "gpu"
    cases = []
    if trace.start:
        cases.append((f"submitted before {trace.start}", submit < _midnight(trace.start, trace.time_zone)))
    if trace.end:
        cases.append((f"submitted on or after {trace.end}", submit >= _midnight(trace.end, trace.time_zone)))
    cases += [(reason, rows["unusable"] == reason) for reason in rows["unusable"].dropna().unique()]
    cases += [
        ("no submission time", submit.isna()),
        (
            "submission time impossible (not within the years 1900–2189)",
            ~submit.between(FIRST.astype(float), END.astype(float), inclusive="left"),
        ),
        ("no run time", rows["run_s"].isna()),
        ("run time zero", rows["run_s"] == 0),
        ("run time negative", rows["run_s"] < 0),
        ("run time impossible (over 10 years)", rows["run_s"] > _MOST_RUN_S),
        ("no job id", rows["job_id"].isna() | (rows["job_id"] == "")),
        ("no GPU count", gpu & rows["gpus"].isna()),
        ("GPU count not positive", gpu & (rows["gpus"] <= 0)),
        (f"GPU count impossible (over {_MAX_GPUS:,})", gpu & (rows["gpus"] > _MAX_GPUS)),
    ]
    found = reasons(len(rows), *cases)
    for reason in dict(cases):
        audit.leave_out(reason, (found == reason).sum())
    rows = rows[pd.isna(found)]
    again = rows["job_id"].duplicated()
    audit.leave_out("job id met before", again.sum())
    rows = rows[~again]
    return rows.assign(gpus=rows["gpus"].mask(rows["resource"] == "cpu", 0))


def _midnight(day: date, time_zone: str) -> float:
    return pd.Timestamp(day).tz_localize(time_zone, nonexistent="shift_forward", ambiguous=True).timestamp()


def _source(trace: TraceConfig) -> str:
    if trace.synthetic:
        return f"generated by RLTune, seed {trace.synthetic.seed}, {trace.synthetic.jobs} GPU jobs"
    if trace.downloads:
        return ", ".join(d.url for d in trace.downloads)
    return str(trace.path)
