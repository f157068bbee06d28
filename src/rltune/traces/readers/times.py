"""Wall-clock text to seconds since 1970 UTC, right across changes to and from daylight-saving time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.traces.audit import Audit

_EPOCH = pd.Timestamp("1970-01-01")
# An offset written out after a time of day: "…T10:00:00Z", "… 10:00:00+08:00".
_OFFSET = r":\d\d(?:\.\d+)?\s*(?:Z|[+-]\d\d:?\d\d)$"


def wall_clock_to_unix(
    text: pd.Series, time_zone: str, what: str, audit: Audit, not_before: np.ndarray | None = None
) -> np.ndarray:
    """Seconds since 1970 UTC (float64, null where the text is empty, ``None`` or no time).

    Args:
        text: times such as ``2017-11-05 01:30:00``; a written offset (``Z``, ``+08:00``) goes before the zone.
        time_zone: IANA zone of times without an offset.
        what: name of the column, for remarks in the audit.
        not_before: an earlier time of the same row (s since 1970 UTC). In autumn one hour occurs twice; it is read as
            the first, except where that lies before this time, then as the second.

    Times within the hour that spring skips do not exist; they are moved to its end, and counted.
    """
    text = pd.Series(text, dtype="str").reset_index(drop=True).str.strip()
    text = text.where(~text.isin(["", "None", "null", "NULL", "NaT", "nan", "Unknown"]))
    seconds = np.full(len(text), np.nan)
    with_offset = text.str.contains(_OFFSET, regex=True, na=False).to_numpy()
    if with_offset.any():
        parsed = pd.to_datetime(text[with_offset], errors="coerce", format="ISO8601", utc=True)
        seconds[with_offset] = _since_epoch(_plausible(parsed.dt.tz_localize(None)))
    naive = ~with_offset & text.notna().to_numpy()
    if naive.any():
        earlier = None if not_before is None else not_before[naive]
        seconds[naive] = _localise(text[naive], time_zone, what, audit, earlier)
    audit.note(f"{what} not a time", (np.isnan(seconds) & text.notna().to_numpy()).sum())
    return seconds


def _localise(
    text: pd.Series, time_zone: str, what: str, audit: Audit, not_before: np.ndarray | None
) -> np.ndarray:
    wall = pd.to_datetime(text, errors="coerce", format="ISO8601").reset_index(drop=True)
    wall = _plausible(wall)
    first, moved = _to_utc(wall, time_zone, daylight=True)
    second, _ = _to_utc(wall, time_zone, daylight=False)
    audit.note(f"{what} within the hour skipped in spring: moved to its end", moved)
    twice = first != second
    late = twice & (first < not_before) if not_before is not None else np.zeros(len(wall), dtype=bool)
    audit.note(f"{what} within the hour repeated in autumn", (twice & ~np.isnan(first)).sum())
    return np.where(late, second, first)


def _to_utc(wall: pd.Series, time_zone: str, daylight: bool) -> tuple[np.ndarray, int]:
    """Seconds since 1970 UTC, and how many times did not exist and were moved."""
    flags = np.full(len(wall), daylight)
    local = wall.dt.tz_localize(time_zone, ambiguous=flags, nonexistent="shift_forward")
    moved = (local.dt.tz_localize(None) != wall) & wall.notna()
    return _since_epoch(local.dt.tz_convert("UTC").dt.tz_localize(None)), int(moved.sum())


def _plausible(stamps: pd.Series) -> pd.Series:
    """Times from 1900 to 2200; others (0001-01-01, 9999-12-31: ways to say 'none') become null."""
    return stamps.where(stamps.between(pd.Timestamp("1900-01-01"), pd.Timestamp("2200-01-01")))


def _since_epoch(stamps: pd.Series) -> np.ndarray:
    return (stamps - _EPOCH).dt.total_seconds().to_numpy("float64")
