"""Wall-clock text to seconds since 1970 UTC, right across changes to and from daylight-saving time."""

import numpy as np
import pandas as pd

from rltune.traces.audit import Audit
from rltune.traces.raw.frame import refuse_mostly_bad

NONE = ("", "None", "null", "NULL", "NaT", "nan", "Unknown")
"""Ways to say that there is no time."""
_OFFSET = r"\d[T ].*[Z+-]"
"""An offset written behind a time of day: ``…T10:00:00Z``, ``… 10:00:00+08:00``, ``…T10+08``."""
FIRST, END = np.datetime64("1900-01-01", "s"), np.datetime64("2190-01-01", "s")
"""Times from the one until before the other are possible: they differ by less than 292 years, the most in nanoseconds."""


def wall_clock_to_unix(
    text: pd.Series,
    time_zone: str,
    what: str,
    audit: Audit,
    not_before: np.ndarray | None = None,
    where: str | None = None,
) -> np.ndarray:
    """Seconds since 1970 UTC (float64, null where the text is empty, ``None`` or no time).

    Args:
        text: times such as ``2017-11-05 01:30:00``; a written offset (``Z``, ``+08:00``) goes before the zone.
        time_zone: IANA zone of times without an offset.
        what: name of the column, for remarks in the audit.
        not_before: an earlier time of the same row (s since 1970 UTC). In autumn one hour occurs twice; a time in it is
            read as in the first, except where that lies before this time, then as in the second.
        where: name of the file, for errors.

    Times within the hour that spring skips do not exist; they are moved to its end, and counted. Years outside
    1900–2189 (0001-01-01, 9999-12-31: ways to say 'none') become null and are counted.

    Raises:
        DataError: most values are no times at all (``13/10/2017``); a few are counted.
    """
    named = what if text.name in (None, what) else f"{what} (column {text.name!r})"
    text = text.astype("str").reset_index(drop=True).str.strip()
    text = text.where(~text.isin(NONE))
    offset = text.str.contains(_OFFSET, regex=True, na=False)
    wall = pd.to_datetime(text.where(~offset), errors="coerce", format="ISO8601").to_numpy()
    seconds = _localise(_plausible(wall), time_zone, what, audit, not_before)
    unread = np.isnat(wall) & text.notna().to_numpy()
    if offset.any():
        utc = pd.to_datetime(text[offset], errors="coerce", format="ISO8601", utc=True).dt.tz_localize(None).to_numpy()
        seconds[offset], unread[offset] = _since_epoch(_plausible(utc)), np.isnat(utc)
    expected = "a time as YYYY-MM-DD HH:MM:SS (ISO 8601)"
    refuse_mostly_bad(text, unread, f"{where}: {named}" if where else named, expected)
    audit.note(f"{what} not a time", (np.isnan(seconds) & text.notna()).sum())
    return seconds


def written_as_digits(text: pd.Series) -> pd.Series | None:
    """A column mostly of dates without separators (``20201231``, perhaps with ``2359`` or ``235959``) in ISO form; None for
    any other.

    A date is one from 1990 to 2100. Text that is none is kept as it is.
    """
    stamps = pd.Series(pd.NaT, text.index, dtype="datetime64[s]")
    for digits, form in ((8, "%Y%m%d"), (12, "%Y%m%d%H%M"), (14, "%Y%m%d%H%M%S")):
        stamps = stamps.fillna(pd.to_datetime(text.where(text.str.len() == digits), errors="coerce", format=form))
    dates = stamps.between(pd.Timestamp("1990-01-01"), pd.Timestamp("2101-01-01"), inclusive="left")
    mostly = dates.sum() * 2 > max(text.notna().sum(), 1)
    return stamps.dt.strftime("%Y-%m-%d %H:%M:%S").where(dates, text) if mostly else None


def _localise(wall: np.ndarray, time_zone: str, what: str, audit: Audit, not_before: np.ndarray | None) -> np.ndarray:
    """Seconds since 1970 UTC of wall-clock times (datetime64); null stays null."""
    first = _to_utc(wall, time_zone, "NaT", "NaT")
    odd = np.isnan(first) & ~np.isnat(wall)  # within the hours that come twice or never
    if not odd.any():
        return first
    all_odd = np.ones(odd.sum(), dtype=bool)
    first[odd], second = (_to_utc(wall[odd], time_zone, dst, "shift_forward") for dst in (all_odd, ~all_odd))
    twice = first[odd] != second
    audit.note(f"{what} within the hour skipped in spring: moved to its end", (~twice).sum())
    audit.note(f"{what} within the hour repeated in autumn", twice.sum())
    if not_before is not None:
        first[odd] = np.where(twice & (first[odd] < not_before[odd]), second, first[odd])
    return first


def _to_utc(wall: np.ndarray, time_zone: str, ambiguous: str | np.ndarray, nonexistent: str) -> np.ndarray:
    """Seconds since 1970 UTC; what becomes of times that come twice or never is as pandas' tz_localize has it."""
    local = pd.DatetimeIndex(wall).tz_localize(time_zone, ambiguous=ambiguous, nonexistent=nonexistent)
    return _since_epoch(local.tz_convert("UTC").tz_localize(None).to_numpy())


def _plausible(stamps: np.ndarray) -> np.ndarray:
    return np.where((stamps >= FIRST) & (stamps < END), stamps, np.datetime64("NaT"))


def _since_epoch(stamps: np.ndarray) -> np.ndarray:
    return np.where(np.isnat(stamps), np.nan, stamps.astype("datetime64[us]").astype("int64") / 1e6)
