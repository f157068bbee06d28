"""Any CSV (plain or .gz) through ``columns`` in the trace's configuration: table column → file column.

Each may have a unit, factor, time zone, value map, fallback or a constant. Without ``run_s`` the run time is ``end_s`` −
``start_s``; without ``wait_s`` the wait is ``start_s`` − submission. Without ``job_id``, jobs are numbered by row, from 1. ``filter`` keeps rows by a condition and counts the others.

- Times are local times (``2017-10-01 12:00:00``, with an offset or in the time zone given), or numbers: seconds since 1970
  after unit and factor. A column without unit and factor that holds mostly dates from 1990 to 2100 written ``YYYYMMDD``,
  ``YYYYMMDDhhmm`` or ``YYYYMMDDhhmmss`` is read as local time; noted.
- If most times of a column lie after the year 2200 but are dates in milliseconds, microseconds or nanoseconds, an error
  names the fix. Numeric submissions before 1990 are noted: the file may have its own clock.
- Durations are numbers, or ``d-hh:mm:ss``, ``hh:mm:ss`` or ``mm:ss`` if most of the column is written so. Two parts alone are
  noted: with ``factor: 60`` they are ``hh:mm``.
- A map of the status may lack Slurm's states and common words: their meaning is known.
- Jobs whose status is running, or not started, are left out: their run time is not known.
- A column named by the map or a filter may occur only once in the header. A negative wait is unknown, noted.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rltune.config.trace import SECONDS, TIMES, UNITS, Column, Filter, TraceConfig
from rltune.errors import ConfigError, DataError
from rltune.traces.audit import Audit
from rltune.traces.columns import RESOURCES, STATUSES
from rltune.traces.raw import slurm_fields as slurm
from rltune.traces.raw.archive import open_member
from rltune.traces.raw.csv_text import read_csv_text
from rltune.traces.raw.frame import numbers, parse_numbers, raw_frame, reasons, refuse_mostly_bad
from rltune.traces.raw.times import wall_clock_to_unix, written_as_digits
from rltune.traces.readers import sacct
from rltune.traces.readers.sacct import STILL_PENDING, STILL_RUNNING

_1990_S, _2100_S, _2200_S = 631_152_000.0, 4_102_444_800.0, 7_258_118_400.0
"""Beginnings of these years, s since 1970 UTC."""
_SCALES = (
    ("milliseconds", 1e-3, "unit: ms"),
    ("microseconds", 1e-6, "factor: 0.000001"),
    ("nanoseconds", 1e-9, "factor: 0.000000001"),
)
NOT_STARTED = "not started"
"""Status, in a map, of jobs that have not started."""
STATES = {
    **{state.lower(): status for state, status in sacct.STATUS.items()},
    **dict.fromkeys(map(str.lower, slurm.RUNNING - {"STOPPED"}), "running"),  # elsewhere a stopped job has ended
    **dict.fromkeys((*map(str.lower, slurm.WAITING), "queued", "waiting"), NOT_STARTED),
    **dict.fromkeys(("pass", "passed", "succeeded", "terminated", "success"), "passed"),
    "error": "failed",
    "canceled": "killed",
    "killed": "killed",
}
"""States whose meaning is known, where the map of the column lacks them."""
_NO_VALUE = {word.casefold() for word in slurm.NO_VALUE if word}
FLAGS = ("run_clamped", "sla")
COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
TRUE, FALSE = ("1", "true", "yes", "t", "y"), ("0", "false", "no", "f", "n")


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Raw columns of a CSV file read through ``trace.columns`` and ``trace.filter``.

    Raises:
        ConfigError: a factor or unit for a column of wall-clock times.
        DataError: the file is missing, truncated or not CSV, lacks a mapped column or has it twice, or has times in
            another unit than the map says.
    """
    if not folder.is_file():
        raise DataError(f"{folder}: format csv reads one file; found a folder. Give the file itself as `path`.")
    mapped = {name: column for name, column in dict(trace.columns or ()).items() if column}
    needed = {rule.column: "named in filter" for rule in trace.filter}
    needed |= {c: f"mapped to {name}" for name, m in mapped.items() for c in (m.column, m.fallback) if c}
    with open_member(folder, folder.name) as (stream, where):
        table = read_csv_text(stream, where, audit, needed=needed)
    rows, source = len(table), _Source(table, where, trace, audit)
    values: dict[str, Any] = {}
    earlier = None  # of the times of a row, so that the hour that comes twice is read as the right one
    for name, column in mapped.items():
        text = source.text(name, column)
        if name in TIMES:
            earlier = values[name] = source.time(name, column, text, earlier)
        elif name in UNITS:
            values[name] = source.number(name, column, text)
        elif name in FLAGS:
            values[name] = source.flag(name, text)
        else:
            values[name] = text
    submit, start, end = (values.pop(name, None) for name in TIMES)
    values["submit_unix_s"] = submit
    if "run_s" not in values:
        values["run_s"] = end - start
    if "wait_s" not in values and start is not None:
        values["wait_s"] = start - submit
    if "job_id" not in values:
        values["job_id"] = (np.arange(rows) + 1).astype(str)
        audit.note("without job id: numbered by row", rows)
    out = [(f"filter: not {f.column} {f.op} {f.value}", ~_matches(table, f)) for f in trace.filter]
    if "status" in values:
        out += [(STILL_PENDING, values["status"] == NOT_STARTED), (STILL_RUNNING, values["status"] == "running")]
    values["unusable"] = reasons(rows, *out)
    return raw_frame(values, rows)


class _Source:
    """The columns of one file, read through the map."""

    def __init__(self, table: pd.DataFrame, where: str, trace: TraceConfig, audit: Audit) -> None:
        self.table, self.where, self.trace, self.audit = table, where, trace, audit

    def text(self, name: str, column: Column) -> pd.Series:
        """The column's text after constant, fallback and value map; of status and resource, words of ours."""
        if column.constant is not None:
            text = pd.Series([str(column.constant)] * len(self.table), dtype="str")
        else:
            text = self.table[column.column]
        if column.fallback:
            used = text.isna() & self.table[column.fallback].notna()
            text = text.mask(used, self.table[column.fallback])
            self.audit.note(f"{name} from {column.fallback}, as {column.column} is empty", used.sum())
        if column.map is not None:
            mapped = text.map(column.map)
            if name == "status":
                state = slurm.state(text)
                mapped = mapped.fillna(state.map(column.map)).fillna(state.str.lower().map(STATES))
            mapped = mapped.astype("str")
            self.audit.note(f"{name}: value not in the map", (mapped.isna() & text.notna()).sum())
            text = mapped
        if name not in ("status", "resource"):
            return text
        text = text.str.strip().str.casefold()
        if name == "status":
            return text.where(text.isin((*STATUSES, NOT_STARTED)))
        known = text.isin(RESOURCES)
        self.audit.note(f"{name} not given: taken as gpu", text.isna().sum())
        self.audit.note(f"{name} not one of {', '.join(RESOURCES)}: taken as gpu", (~known & text.notna()).sum())
        return text.where(known, "gpu")

    def number(self, name: str, column: Column, text: pd.Series) -> np.ndarray:
        factor, where = UNITS[name].get(column.unit or "", 1.0) * column.factor, self.where
        where += f": column {column.column!r}" if column.column else ""
        clock = np.zeros(1)
        if UNITS[name] is SECONDS:
            words = text.str.strip().str.casefold().isin(_NO_VALUE)
            self.audit.note(f"{name}: a word for no value, such as UNLIMITED", words.sum())
            text = text.mask(words)
            clock = text.str.contains(":", regex=False, na=False)
        if clock.sum() * 2 <= text.notna().sum():
            return numbers(text, name, self.audit, where) * factor
        if column.unit not in (None, "s"):
            found = f"columns.{name}.unit: found {column.unit!r}, which goes with numbers"
            raise ConfigError(f"{found}; {self.where} has durations as [d-]hh:mm:ss there. Leave the unit out.")
        found = slurm.seconds(text)
        bad = np.isnan(found) & text.notna().to_numpy()
        refuse_mostly_bad(text, bad, f"{where}: {name}", "a duration as [d-]hh:mm:ss")
        self.audit.note(f"{name} not a duration", bad.sum())
        short = text.str.fullmatch(r"\s*\d+:\d+(\.\d+)?\s*").sum()
        if short == clock.sum() and column.factor == 1:
            self.audit.note(f"{name} taken as mm:ss (if it is hh:mm: factor: 60)", short)
        return found * factor

    def flag(self, name: str, text: pd.Series) -> np.ndarray:
        text = text.str.strip().str.lower()
        yes = text.isin(TRUE).to_numpy()
        self.audit.note(f"{name} neither true nor false: taken as false", (~yes & ~text.isin(FALSE).to_numpy()).sum())
        return yes

    def time(self, name: str, column: Column, text: pd.Series, not_before: np.ndarray | None) -> np.ndarray:
        if (~np.isnan(parse_numbers(text))).sum() * 2 >= max(text.notna().sum(), 1):
            dates = written_as_digits(text.str.strip()) if column.unit is None and column.factor == 1 else None
            if dates is None:
                factor = SECONDS.get(column.unit or "", 1.0) * column.factor
                since = numbers(text, name, self.audit, self.where) * factor
                self._check_unit(name, text, since, column)
                return since
            self.audit.note(
                f"{name} read as dates written YYYYMMDD, YYYYMMDDhhmm or YYYYMMDDhhmmss", (dates != text).sum()
            )
            text = dates
        for field, numeric in (("factor", column.factor != 1), ("unit", column.unit not in (None, "s"))):
            if numeric:
                raise ConfigError(
                    f"columns.{name}.{field}: goes with numbers; {self.where} has wall-clock times there."
                )
        zone = column.time_zone or self.trace.time_zone
        return wall_clock_to_unix(text, zone, name, self.audit, not_before, self.where)

    def _check_unit(self, name: str, text: pd.Series, since: np.ndarray, column: Column) -> None:
        """Refuse times (s since 1970) that are dates in a finer unit than the map says; note submissions before 1990.

        Submissions on a clock of the trace's own, which are no dates at all, are right in their distances.
        """
        if name == "submit_s":
            self.audit.note("submission before 1990 if read as seconds since 1970", (since < _1990_S).sum())
        if column.column is None or (finer := finer_unit(since)) is None:
            return
        late, (what, write) = since >= _2200_S, finer
        raise DataError(
            f"{self.where}: {name}: {late.sum()} of {len(since)} values are after the year 2200 if read as "
            f"seconds since 1970 (first: {text[late].iloc[0]!r}); they look like {what}. Write "
            f"`{name}: {{column: {column.column}, {write}}}` in the trace's configuration."
        )


def finer_unit(since: np.ndarray) -> tuple[str, str] | None:
    """The unit, in words and as a map has it, in which numbers are dates that are mostly after the year 2200 as seconds
    since 1970; None for any others."""
    late = since[since >= _2200_S]
    if len(late) * 2 <= np.isfinite(since).sum():
        return None
    middle = float(np.median(late))
    return next(((what, write) for what, scale, write in _SCALES if _1990_S <= middle * scale < _2100_S), None)


def _matches(table: pd.DataFrame, rule: Filter) -> np.ndarray:
    """Which rows meet a filter; numbers compare as numbers, true and false by their words, else as text; an empty field
    meets only ``!=``."""
    text, value = table[rule.column], rule.value
    if isinstance(value, list):
        found = np.zeros(len(text), bool)
        for kind in {type(v) for v in value}:
            found |= _read_as(kind, text).isin([v for v in value if type(v) is kind]).to_numpy()
        return found
    return getattr(_read_as(type(value), text), COMPARISONS[rule.op])(value).fillna(False).to_numpy(dtype=bool)


def _read_as(kind: type, text: pd.Series) -> pd.Series:
    """A column as what a filter's value is: text, true or false, or numbers; null where it is neither."""
    if kind is str:
        return text
    if kind is bool:
        words = text.str.strip().str.lower()
        return words.isin(TRUE).where(words.isin((*TRUE, *FALSE)))
    return pd.to_numeric(text, errors="coerce")
