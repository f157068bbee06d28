"""What all readers share: the raw frame, CSV text read with its faults counted, numbers, and reasons."""

from __future__ import annotations

import difflib
import io
import warnings
from typing import IO, Any

import numpy as np
import pandas as pd

from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.table import DTYPES

_TAIL_BYTES = 65_536


def raw_frame(columns: dict[str, Any], rows: int) -> pd.DataFrame:
    """A frame of raw columns: those given, the rest at 'not known'.

    ``gpus`` stays float here (null where the source has none); ``unusable`` is a str column of reasons.
    """
    index = pd.RangeIndex(rows)
    plain: dict[str, Any] = {"run_clamped": False, "sla": False, "resource": "gpu", "status": "unknown"}
    dtypes = {**DTYPES, "gpus": "float64", "unusable": "str", "submit_unix_s": "float64"}
    del dtypes["submit_s"]
    unknown = set(columns) - set(dtypes)
    if unknown:
        raise AssertionError(f"not raw columns: {sorted(unknown)}")
    frame = {}
    for name, dtype in dtypes.items():
        value = columns.get(name, plain.get(name))
        if isinstance(value, (pd.Series, pd.Categorical)):
            value = np.asarray(value)
        series = pd.Series(value, index=index) if value is not None else pd.Series(np.nan, index=index, dtype=object)
        frame[name] = series.astype(dtype)
    return pd.DataFrame(frame)


def reasons(rows: int, *cases: tuple[str, Any]) -> np.ndarray:
    """First reason that holds for each row, or None. Each case is (reason, boolean mask)."""
    result = np.full(rows, None, dtype=object)
    for reason, mask in reversed(cases):
        result[np.asarray(mask, dtype=bool)] = reason
    return result


def numbers(values: pd.Series, what: str, audit: Audit) -> np.ndarray:
    """Text to float64; text that is not a finite number becomes null and is counted."""
    parsed = pd.to_numeric(values, errors="coerce").to_numpy("float64", na_value=np.nan)
    parsed = np.where(np.isfinite(parsed), parsed, np.nan)
    bad = np.isnan(parsed) & values.notna().to_numpy() & (values.astype("str").str.strip() != "").to_numpy()
    audit.note(f"{what} not a number", bad.sum())
    return parsed


def read_csv_text(stream: IO[bytes], where: str, audit: Audit, names: list[str] | None = None) -> pd.DataFrame:
    """Read a CSV as text (dtype str, empty fields null); rows with too many fields are counted and left out.

    A file with a header may use ``|``, ``;`` or tabs in place of commas.

    Args:
        stream: binary stream, at its beginning.
        where: how messages name the file.
        names: column names of a file without a header row.

    Raises:
        DataError: empty file, not a CSV, or a last row cut off.
    """
    tail = _Tail(stream)
    buffered = io.BufferedReader(tail, _TAIL_BYTES)
    delimiter = "," if names else delimiter_of(buffered.peek(1))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            frame = pd.read_csv(
                buffered,
                sep=delimiter,
                dtype="str",
                names=names,
                header=None if names else 0,
                index_col=False,
                skipinitialspace=True,
                on_bad_lines="warn",
                encoding_errors="replace",
                low_memory=True,
            )
    except pd.errors.EmptyDataError:
        raise DataError(f"{where}: the file is empty; expected CSV rows. Obtain the file again.") from None
    except (pd.errors.ParserError, ValueError) as error:
        raise DataError(f"{where}: not readable as CSV ({error}); expected comma-separated text.") from None
    skipped = sum(str(w.message).count("Skipping line") for w in caught)
    tail.check_last_row(where, len(frame.columns), delimiter)
    audit.read(len(frame) + skipped)
    audit.leave_out("row with too many fields", skipped)
    return frame


def delimiter_of(head: bytes) -> str:
    """The separator a file's first line has most of: comma, pipe, semicolon or tab."""
    line = head.split(b"\n", 1)[0].decode("utf-8", "replace")
    return max(",|;\t", key=line.count)


class _Tail(io.RawIOBase):
    """A stream that remembers its last bytes, to see whether the last row is whole."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._last = stream, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer))
        if block:
            self._last = block[-_TAIL_BYTES:] if len(block) >= _TAIL_BYTES else (self._last + block)[-_TAIL_BYTES:]
        buffer[: len(block)] = block
        return len(block)

    def check_last_row(self, where: str, fields: int, delimiter: str) -> None:
        """A last row that neither ends in a newline nor has all its fields was cut off in a copy or download."""
        last = self._last.rsplit(b"\n", 1)[-1]
        found = last.count(delimiter.encode()) + 1
        if last and found < fields and b'"' not in last:
            raise DataError(
                f"{where}: truncated: the last row has {found} of {fields} fields and no end of line "
                f"({last[:60].decode('utf-8', 'replace')!r}). Obtain the file again."
            )


def missing_column(where: str, column: str, purpose: str, available: list[str]) -> DataError:
    """The error for a column a file does not have, naming the nearest it has."""
    lower = {c.lower(): c for c in available}
    near = [lower[c] for c in difflib.get_close_matches(column.lower(), list(lower), n=3, cutoff=0.4)]
    hint = f"nearest: {', '.join(near)}; " if near else ""
    listed = ", ".join(available[:30]) + (", …" if len(available) > 30 else "")
    return DataError(
        f"{where}: column {column!r} ({purpose}) is not in the file; {hint}its columns are: {listed}. "
        "Correct the column's name in the trace's configuration, or the file."
    )
