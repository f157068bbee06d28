"""What all readers share: the raw frame, CSV text read with its faults counted, numbers, and reasons."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import pandas as pd

from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.table import DTYPES

_BLOCK = 1 << 18
"""Bytes read, and characters handed to pandas, at a time."""


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
    """Read a CSV as text (dtype str, empty fields null); a file with a header may use ``|``, ``;`` or tabs.

    Rows read are the lines below the header. Left out and counted are rows with too many fields, and lines inside a
    quoted field that spans lines: those after its first, and the first too where together they have the delimiters of
    two rows, as the quote is a stray one then. Empty lines are noted, as is a last line without an end of line.

    Args:
        stream: binary stream, at its beginning.
        where: how messages name the file.
        names: column names of a file without a header row.

    Raises:
        DataError: empty file, not a CSV, a quote never closed, or a last row cut off.
    """
    lines = _Lines(stream, where, names)
    try:
        frame = pd.read_csv(
            lines,
            sep=lines.delimiter,
            dtype="str",
            names=names,
            header=None if names else 0,
            index_col=False,
            skipinitialspace=True,
            skip_blank_lines=False,
            low_memory=True,
        )
    except pd.errors.EmptyDataError:
        raise DataError(f"{where}: the file is empty; expected CSV rows. Obtain the file again.") from None
    except (pd.errors.ParserError, ValueError) as error:
        raise DataError(f"{where}: not readable as CSV ({error}); expected comma-separated text.") from None
    audit.read(lines.read_rows)
    audit.leave_out("row with too many fields", lines.too_long)
    audit.leave_out("line inside a quoted field that spans lines", lines.in_quotes)
    audit.note("empty line", lines.empty)
    audit.note("last line without an end of line: its last field may be cut short", lines.open_end)
    return frame


def delimiter_of(head: bytes) -> str:
    """The separator a file's first line has most of: comma, pipe, semicolon or tab."""
    line = head.split(b"\n", 1)[0].decode("utf-8", "replace")
    return max(",|;\t", key=line.count)


class _Plain(io.RawIOBase):
    """A stream that is read and nothing else: a member of a streamed tar cannot say whether it could seek."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)


class _Lines(io.TextIOBase):
    """The text of a CSV for pandas: its header and the rows that can be read; the other lines are counted.

    A line without quotes, as nearly all are, costs a few string operations. One with quotes goes through the csv
    module and on with every field quoted, so that pandas cannot take it for anything else.
    """

    def __init__(self, stream: IO[bytes], where: str, names: list[str] | None) -> None:
        binary = io.BufferedReader(_Plain(stream), _BLOCK)
        self._text = io.TextIOWrapper(binary, encoding="utf-8-sig", errors="replace")  # any end of line becomes \n
        self._where, self._line = where, 0
        self.read_rows = self.too_long = self.in_quotes = self.empty = self.open_end = 0
        """Lines: below the header (empty ones aside); with too many fields; inside quotes; empty; without an end."""
        self.delimiter, self._blank, head = ",", " \t\n", ""
        if names:
            self._fields = len(names)
        else:
            head = next((line for line in self._next() if line.strip()), "")
            self.delimiter = delimiter_of(head.encode())
            self._blank = self._blank.replace(self.delimiter, "")
            fields, unclosed = self._split(head)
            if unclosed:
                raise DataError(f"{where}: line {self._line}: a quote is not closed; expected the header in one line.")
            self._fields = len(fields)
            head = _quoted(fields, self.delimiter) if '"' in head else head
        self._rows = self._readable(head)

    def read(self, size: int | None = -1) -> str:
        """The next rows, about ``_BLOCK`` characters of them whatever the size asked for; empty at the end."""
        block, length = [], 0
        for row in self._rows:
            block.append(row)
            length += len(row)
            if length >= _BLOCK:
                break
        return "".join(block)

    def _next(self) -> Iterator[str]:
        for line in self._text:
            self._line += 1
            yield line

    def _readable(self, head: str) -> Iterator[str]:
        if head:
            yield head
        commas, delimiter, blank = self._fields - 1, self.delimiter, self._blank
        source = self._next()
        for line in source:
            if not line.strip(blank):
                self.empty += 1
                continue
            self.read_rows += 1
            row, found = line, line.count(delimiter)
            if '"' in line:
                fields, unclosed = self._split(line)
                if unclosed:
                    fields, line = self._join(fields, line, source)
                    if not fields:
                        self.open_end = int(not line.endswith("\n"))
                        continue
                row, found = _quoted(fields, delimiter), len(fields) - 1
            if not line.endswith("\n"):
                self.open_end = 1
                if found < commas:
                    raise DataError(
                        f"{self._where}: truncated: the last row has {found + 1} of {commas + 1} fields and no end of "
                        f"line ({line[:60]!r}). Obtain the file again."
                    )
            if found > commas:
                self.too_long += 1
            else:
                yield row

    def _join(self, fields: list[str], line: str, source: Iterator[str]) -> tuple[list[str], str]:
        """The fields of a row whose quoted field spans lines, or none if two rows are in it, and its last line."""
        first, unclosed, found = self._line, True, line.count(self.delimiter)
        while unclosed:
            line = next(source, "")
            if not line:
                raise DataError(
                    f"{self._where}: line {first}: a quote opens a field there and is never closed; expected a second "
                    "quote at the field's end. Correct the line, or obtain the file again."
                )
            self.read_rows += 1
            self.in_quotes += 1
            found += line.count(self.delimiter)
            more, unclosed = self._split('"' + line)
            stray = found >= 2 * (self._fields - 1)
            fields = [] if stray else [*fields[:-1], fields[-1] + more[0], *more[1:]]
        self.in_quotes += not fields
        return fields, line

    def _split(self, line: str) -> tuple[list[str], bool]:
        """The fields of one line, and whether the last is a quoted one that goes on in the next line."""
        lines = iter((line, ""))  # the csv module asks for a second line only inside quotes
        try:
            fields = next(csv.reader(lines, delimiter=self.delimiter, skipinitialspace=True))
        except csv.Error as error:
            raise DataError(f"{self._where}: line {self._line}: not readable as CSV ({error}).") from None
        return fields, next(lines, None) is None


def _quoted(fields: list[str], delimiter: str) -> str:
    """One row of CSV text, every field in quotes."""
    return delimiter.join('"' + field.replace('"', '""') + '"' for field in fields) + "\n"


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
