"""CSV as text, by pyarrow: every line below the header becomes a row or is counted with a reason."""

import csv
import difflib
import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.raw.archive import open_member
from rltune.traces.raw.encoding import NOT_UTF_8, Utf8

BLOCK = 1 << 22
"""Bytes parsed at a time."""
OPEN_END = "last line without an end of line: its last field may be cut short"
SHORT, LONG, EMPTY = "row with too few fields", "row with too many fields", "empty line"
IN_QUOTES = "line inside a quoted field that spans lines"
NULLS = ["", *("#N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "-nan", "-NaN")]
"""Fields that are read as null."""


def read_csv_text(stream: IO[bytes], where: str, audit: Audit, **how: Any) -> pd.DataFrame:
    """Read a CSV as text (dtype str, empty fields null): :func:`csv_blocks`, whose arguments it takes, in one table."""
    table = pa.concat_tables(csv_blocks(stream, where, audit, **how)).combine_chunks()
    return table.to_pandas(split_blocks=True, self_destruct=True).astype("str")


def csv_blocks(
    stream: IO[bytes],
    where: str,
    audit: Audit,
    names: list[str] | None = None,
    keep: Collection[str] | None = None,
    needed: Mapping[str, str | None] | None = None,
    delimiter: str = ",",
    quoted: bool = True,
) -> Iterator[pa.Table]:
    """Read a CSV as text, in tables of some ten thousand rows each, for files that do not fit the memory; at least one.

    A file with a header may use ``|``, ``;`` or tabs. Rows read are the lines below the header that are not empty. Left
    out and counted are rows with too many or too few fields, and lines inside a quoted field that spans lines: those
    after its first, and the first too where the field holds the delimiters of a row, as its quote is a stray one then.
    Noted are a last line without an end of line and bytes that are not UTF-8 (read as Latin-1; UTF-16 is read where the
    file begins with its mark). The audit has the counts when the last table is out.

    Args:
        stream: binary stream, at its beginning.
        where: how messages name the file.
        audit: gets the rows read and left out, and what is noted.
        names: column names of a file without a header row.
        keep: columns to return; default: all.
        needed: columns that the header must name, once, and what each is needed for (None: it may lack); the others are
            left out.
        delimiter: of a file without a header row.
        quoted: whether quotes and words for null mean anything.

    Raises:
        DataError: empty file, not a CSV, a column missing or named twice, or a last row cut off.
    """
    text = Utf8(stream, where)
    lines, has_header = io.BufferedReader(text, BLOCK), names is None
    if names is None:
        delimiter, names, columns = _header(lines, where, needed or {})
        parsed = names
    else:
        parsed = columns = list(keep or names)
    yield pa.table({c: pa.array([], pa.large_string()) for c in columns})
    bad, rows, stray = _BadRows(), 0, 0
    try:
        for batch in _parsed(lines, names, parsed, delimiter, quoted, bad):
            nulls = pa.array(NULLS if quoted else [""], pa.large_string())
            table = _tidied(pa.Table.from_batches([batch]), delimiter, len(names), nulls).select(columns)
            rows, stray = rows + table.num_rows, stray + batch.num_rows - table.num_rows
            if table.num_rows:
                yield table
    except pa.ArrowInvalid as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{where}: not readable as CSV ({reason}). Is there a quote that is never closed?") from None
    too_long, too_short = bad.count[LONG], bad.count[SHORT]
    last = bad.last if bad.last and bad.last.number == rows + stray + bad.count.total() else None
    if text.open_end and last and last.actual_columns < len(names):
        found = f"{last.actual_columns} of {len(names)} fields and no end of line ({last.text[-60:]!r})"
        raise DataError(f"{where}: truncated: the last row has {found}. Obtain the file again.")
    empty = text.empty + bad.count[EMPTY]
    read = max(text.lines + text.open_end - empty - has_header, rows + stray + too_long + too_short)
    audit.read(read)
    audit.leave_out(LONG, too_long)
    audit.leave_out(SHORT, too_short)
    audit.leave_out(IN_QUOTES, read - rows - too_long - too_short)
    audit.note(EMPTY, empty)
    audit.note(OPEN_END, text.open_end)
    audit.note(NOT_UTF_8, text.latin_1)


def delimiter_of(line: str) -> str:
    """The separator that a line has most of: comma, pipe, semicolon or tab."""
    return max(",|;\t", key=line.count)


def first_line(path: Path) -> tuple[str, str]:
    """The first line of a file that is not empty ("" where there is none), and how messages name the file."""
    with open_member(path, path.name) as (stream, where):
        lines = io.BufferedReader(Utf8(stream, where))
        return next(filter(bytes.strip, lines), b"").decode().strip("\n"), where


class _BadRows:
    """Counts rows that do not have the header's number of fields."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.last: pyarrow.csv.InvalidRow | None = None

    def __call__(self, row: pyarrow.csv.InvalidRow) -> str:
        blank = not row.text.strip()
        self.count[EMPTY if blank else LONG if row.actual_columns > row.expected_columns else SHORT] += 1
        self.last = row
        return "skip"


def _header(lines: IO[bytes], where: str, needed: Mapping[str, str | None]) -> tuple[str, list[str], list[str]]:
    """Delimiter, column names and those of them that are needed, from the first line that is not empty."""
    line = next(filter(bytes.strip, lines), b"")
    if not line:
        raise DataError(f"{where}: the file is empty; expected CSV rows. Obtain the file again.")
    if b"\x00" in line:
        raise DataError(
            f"{where}: not text (the header holds zero bytes); expected CSV. Unpack it if it is compressed."
        )
    text = line.decode().rstrip("\n")
    delimiter = delimiter_of(text)
    try:
        named = next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))
    except csv.Error as error:
        raise DataError(f"{where}: the header is not readable as CSV ({error}).") from None
    for column, purpose in needed.items():
        if purpose and column not in named:
            raise missing_column(where, column, purpose, named)
    if twice := sorted({c for c in needed if named.count(c) > 1}):
        raise DataError(
            f"{where}: column {', '.join(map(repr, twice))} is in the header more than once; expected once."
        )
    names = [name if name in needed else f"{i} {name}" for i, name in enumerate(named)]  # so that none comes twice
    return delimiter, names, [name for name in named if name in needed]


def missing_column(where: str, column: str, purpose: str, available: list[str]) -> DataError:
    """The error for a column a file does not have, naming the nearest it has."""
    lower = {c.lower(): c for c in available}
    near = [lower[c] for c in difflib.get_close_matches(column.lower(), list(lower), n=3, cutoff=0.4)]
    hint = f"nearest: {', '.join(near)}; " if near else ""
    listed = ", ".join(available[:30]) + (", …" if len(available) > 30 else "")
    return DataError(f"{where}: column {column!r} ({purpose}) is not in the file; {hint}its columns are: {listed}.")


def _parsed(
    lines: IO[bytes], names: list[str], columns: list[str], delimiter: str, quoted: bool, bad: _BadRows
) -> Iterator[pa.RecordBatch]:
    if not lines.peek(1):
        return
    yield from pyarrow.csv.open_csv(
        pa.PythonFile(lines, "r"),
        pyarrow.csv.ReadOptions(use_threads=False, column_names=names, block_size=BLOCK),
        pyarrow.csv.ParseOptions(
            delimiter=delimiter, quote_char=quoted and '"', newlines_in_values=quoted, invalid_row_handler=bad
        ),
        pyarrow.csv.ConvertOptions(
            check_utf8=False, column_types=dict.fromkeys(names, pa.large_string()), include_columns=columns
        ),
    )


def _tidied(table: pa.Table, delimiter: str, fields: int, nulls: pa.Array) -> pa.Table:
    """A block without blanks around its values, with null in the place of words for it, and without rows that a stray quote has put
    together from several."""
    keep = None
    for i, name in enumerate(table.column_names):
        values = pc.utf8_trim(table[name], " " if delimiter == "\t" else " \t")
        values = pc.if_else(pc.is_in(values, value_set=nulls), pa.scalar(None, pa.large_string()), values)
        table = table.set_column(i, name, values)
        spans = pc.fill_null(pc.match_substring(values, "\n"), False)
        if pc.any(spans).as_py():
            stray = pc.greater_equal(pc.fill_null(pc.count_substring(values, delimiter), 0), max(fields - 1, 1))
            good = pc.invert(pc.and_(spans, stray))
            keep = good if keep is None else pc.and_(keep, good)
    return table if keep is None else table.filter(keep)
