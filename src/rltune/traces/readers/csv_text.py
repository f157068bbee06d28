"""CSV as text, in blocks: every line below the header is a row handed on or a row counted.

Most files have neither quotes nor rows of odd lengths, so whole blocks of lines go to pyarrow. A block it cannot be
trusted with goes line by line: rows with too many fields and stray quotes are counted there, and pandas reads what is
left. Both ways give the same rows (tested), so which one a block takes shows in nothing but time.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from typing import IO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv

from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.readers.encoding import as_utf8, latin_1_lines

BLOCK = 1 << 22
"""Bytes read at a time."""
LONGEST_LINE = 1 << 24
"""Bytes; no row of a trace comes near it, and a file without line ends must not fill the memory."""
NULLS = [
    "",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "-1.#IND",
    "-1.#QNAN",
    "-NaN",
    "-nan",
    "1.#IND",
    "1.#QNAN",
    "<NA>",
    "N/A",
    "NA",
    "NULL",
    "NaN",
    "None",
    "n/a",
    "nan",
    "null",
]
"""Fields that are read as null: pandas' own list."""


def read_csv_text(
    stream: IO[bytes],
    where: str,
    audit: Audit,
    names: list[str] | None = None,
    keep: Collection[str] | None = None,
    once: Collection[str] = (),
) -> pd.DataFrame:
    """Read a CSV as text (dtype str, empty fields null); a file with a header may use ``|``, ``;`` or tabs.

    Rows read are the lines below the header. Left out and counted are rows with too many fields, and lines inside a
    quoted field that spans lines: those after its first, and the first too where together they have the delimiters of
    two rows, as the quote is a stray one then. Empty lines are noted, as are a last line without an end of line and
    lines that are not UTF-8 (taken as Latin-1; UTF-16 is read where the file begins with its mark).

    Args:
        stream: binary stream, at its beginning.
        where: how messages name the file.
        names: column names of a file without a header row.
        keep: the only columns wanted (those of them that the file has).
        once: columns that the header may not name twice (of others of one name, the later ones get ``.1``, ``.2``, …).

    Raises:
        DataError: empty file, not a CSV, a column named twice, a quote never closed, or a last row cut off.
    """
    table = pa.concat_tables(csv_blocks(stream, where, audit, names, keep, once)).combine_chunks()
    return table.to_pandas(split_blocks=True, self_destruct=True).astype("str")


def csv_blocks(
    stream: IO[bytes],
    where: str,
    audit: Audit,
    names: list[str] | None = None,
    keep: Collection[str] | None = None,
    once: Collection[str] = (),
) -> Iterator[pa.Table]:
    """The same in tables of some ten thousand rows each, for files that do not fit the memory; at least one table.

    The audit has the counts when the last table is out.
    """
    lines = _Lines(stream, where, names)
    twice = sorted({c for c in once if lines.named.count(c) > 1})
    if twice:
        raise DataError(
            f"{where}: column {', '.join(map(repr, twice))} is in the header more than once (line {lines.line}); "
            "expected each column that is read once. Rename the others in the file."
        )
    columns = [c for c in lines.columns if keep is None or c in keep]
    yield _empty(columns)
    for block in lines.blocks():
        table = _plain_table(block, lines, columns)
        if table is None:
            table = _careful_table(block, lines).select(columns)
        if table.num_rows:
            yield table
    audit.read(lines.read_rows)
    audit.leave_out("row with too many fields", lines.too_long)
    audit.leave_out("line inside a quoted field that spans lines", lines.in_quotes)
    audit.note("empty line", lines.empty)
    audit.note("last line without an end of line: its last field may be cut short", lines.open_end)
    audit.note("line not UTF-8, read as Latin-1", lines.latin_1)


def delimiter_of(head: bytes) -> str:
    """The separator a file's first line has most of: comma, pipe, semicolon or tab."""
    line = head.split(b"\n", 1)[0].decode("utf-8", "replace")
    return max(",|;\t", key=line.count)


def _plain_table(block: bytes, lines: _Lines, columns: list[str]) -> pa.Table | None:
    """A block read by pyarrow; None where a line may need more care than it takes.

    Plain lines all have the header's number of fields, no quotes, and no blanks at the beginning of a field.
    """
    delimiter = lines.delimiter.encode()
    rows = block.count(b"\n")
    if (
        lines.fields < 2
        or b'"' in block
        or b"\x00" in block
        or not block.endswith(b"\n")
        or block.count(delimiter) != rows * (lines.fields - 1)
        or _leading_blank(block, delimiter, b" ")
        or (delimiter != b"\t" and _leading_blank(block, delimiter, b"\t"))
    ):
        return None
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(block),
            pyarrow.csv.ReadOptions(column_names=lines.columns, block_size=len(block) + 1),
            pyarrow.csv.ParseOptions(delimiter=lines.delimiter, quote_char=False, ignore_empty_lines=False),
            pyarrow.csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(lines.columns, pa.large_string()),
                include_columns=columns,
                null_values=NULLS,
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid:  # rows of different lengths
        return None
    lines.line += rows
    lines.read_rows += rows
    return table


def _leading_blank(block: bytes, delimiter: bytes, blank: bytes) -> bool:
    """Whether a field begins with this byte; numpy finds it faster than a search for both bytes together."""
    if blank not in block:
        return False
    if block.startswith(blank):
        return True
    text = np.frombuffer(block, dtype=np.uint8)
    before = text[np.flatnonzero(text == blank[0]) - 1]
    return bool(((before == delimiter[0]) | (before == ord("\n"))).any())


def _careful_table(block: bytes, lines: _Lines) -> pa.Table:
    """A block read line by line, and the lines after it that a quoted field in it reaches into."""
    text = "".join(lines.readable(block))
    if not text:
        return _empty(lines.columns)
    frame = _read_csv(text, lines.where, sep=lines.delimiter, names=lines.columns, header=None)
    return pa.table({c: pa.array(frame[c], pa.large_string(), from_pandas=True) for c in lines.columns})


def _read_csv(text: str, where: str, **how: object) -> pd.DataFrame:
    try:
        return pd.read_csv(
            io.StringIO(text), dtype="str", index_col=False, skipinitialspace=True, skip_blank_lines=False, **how
        )
    except (pd.errors.ParserError, ValueError) as error:
        raise DataError(f"{where}: not readable as CSV ({error}); expected comma-separated text.") from None


def _empty(columns: list[str]) -> pa.Table:
    return pa.table({c: pa.array([], pa.large_string()) for c in columns})


class _Lines:
    """The lines of a CSV: its header, then blocks of whole lines; lines that cannot be read are counted."""

    def __init__(self, stream: IO[bytes], where: str, names: list[str] | None) -> None:
        self.where, self.line = where, 0
        self.read_rows = self.too_long = self.in_quotes = self.empty = self.open_end = self.latin_1 = 0
        """Lines: below the header (empty ones aside); with too many fields; inside quotes; empty; without an end; not
        UTF-8."""
        self._source = self._whole_lines(as_utf8(stream, where))
        self._more: Iterator[str] = iter(())
        self.delimiter, self._blank, self._rest = ",", " \t\n", b""
        self.named: list[str] = list(names or ())
        """Columns as the header names them; in ``columns`` those of one name are told apart."""
        self.columns = list(names) if names else self._header()
        self.fields = len(self.columns)

    def _header(self) -> list[str]:
        """Column names of the first line that is not empty; the rest of its block is kept for :meth:`blocks`."""
        head = b""
        while not head.strip():
            if not self._rest and not (block := next(self._source, b"")):
                raise DataError(f"{self.where}: the file is empty; expected CSV rows. Obtain the file again.")
            head, end, self._rest = (self._rest or block).partition(b"\n")
            self.line += 1
        if b"\x00" in head:
            raise DataError(
                f"{self.where}: not text (line {self.line} holds zero bytes); expected CSV as UTF-8 text. Save it as "
                "CSV, or unpack it if it is compressed (gzip need not be)."
            )
        self.delimiter = delimiter_of(head)
        self._blank = self._blank.replace(self.delimiter, "")
        text = (head + end).decode("utf-8")
        fields, unclosed = self._split(text)
        if unclosed:
            raise DataError(f"{self.where}: line {self.line}: a quote is not closed; expected the header in one line.")
        if '"' in text:
            text = _quoted(fields, self.delimiter)
        self.named = [field.rstrip("\n") for field in fields]
        return list(_read_csv(text, self.where, sep=self.delimiter, header=0).columns)

    def blocks(self) -> Iterator[bytes]:
        """Whole lines below the header, some megabytes at a time; only the file's last line may lack its end."""
        if self._rest:
            yield self._rest
        yield from self._source

    def _whole_lines(self, stream: IO[bytes]) -> Iterator[bytes]:
        """The stream's bytes as valid UTF-8, cut after an end of line, every end of line being a newline."""
        held = carriage = b""
        while chunk := stream.read(BLOCK):
            chunk = carriage + chunk
            carriage = b"\r" if chunk.endswith(b"\r") else b""
            if b"\r" in chunk:
                chunk = chunk[: len(chunk) - len(carriage)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            block, end, rest = (held + chunk).rpartition(b"\n")
            if len(rest) > LONGEST_LINE:
                raise DataError(
                    f"{self.where}: a line is longer than {LONGEST_LINE >> 20} MiB; expected CSV, one row a line."
                )
            held = rest
            if end:
                yield self._utf8(block + end)
        if carriage:
            held += b"\n"
        if held:
            yield self._utf8(held)

    def _utf8(self, block: bytes) -> bytes:
        block, lines = latin_1_lines(block)
        self.latin_1 += lines
        return block

    def _next(self) -> str:
        """The next line, from the block in hand or the one after it; empty at the end."""
        while not (line := next(self._more, "")):
            block = next(self._source, b"")
            if not block:
                return ""
            self._more = _split_lines(block)
        self.line += 1
        return line

    def readable(self, block: bytes) -> Iterator[str]:
        """The rows of a block (and of those a quote joins to it) that pandas can read, each ending in a newline."""
        self._more = _split_lines(block)
        commas, delimiter, blank = self.fields - 1, self.delimiter, self._blank
        for line in iter(lambda: next(self._more, ""), ""):
            self.line += 1
            if not line.strip(blank):
                self.empty += 1
                continue
            self.read_rows += 1
            row, found = line, line.count(delimiter)
            if '"' in line:
                fields, unclosed = self._split(line)
                if unclosed:
                    fields, line = self._join(fields, line)
                    if not fields:
                        self.open_end = int(not line.endswith("\n"))
                        continue
                row, found = _quoted(fields, delimiter), len(fields) - 1
            if not line.endswith("\n"):
                self.open_end = 1
                if found < commas:
                    raise DataError(
                        f"{self.where}: truncated: the last row has {found + 1} of {commas + 1} fields and no end of "
                        f"line ({line[:60]!r}). Obtain the file again."
                    )
            if found > commas:
                self.too_long += 1
            else:
                yield row

    def _join(self, fields: list[str], line: str) -> tuple[list[str], str]:
        """The fields of a row whose quoted field spans lines, or none if two rows are in it, and its last line."""
        first, unclosed, found = self.line, True, line.count(self.delimiter)
        while unclosed:
            line = self._next()
            if not line:
                raise DataError(
                    f"{self.where}: line {first}: a quote opens a field there and is never closed; expected a second "
                    "quote at the field's end. Correct the line, or obtain the file again."
                )
            self.read_rows += 1
            self.in_quotes += 1
            found += line.count(self.delimiter)
            more, unclosed = self._split('"' + line)
            stray = found >= 2 * (self.fields - 1)
            fields = [] if stray else [*fields[:-1], fields[-1] + more[0], *more[1:]]
        self.in_quotes += not fields
        return fields, line

    def _split(self, line: str) -> tuple[list[str], bool]:
        """The fields of one line, and whether the last is a quoted one that goes on in the next line."""
        lines = iter((line, ""))  # the csv module asks for a second line only inside quotes
        try:
            fields = next(csv.reader(lines, delimiter=self.delimiter, skipinitialspace=True))
        except csv.Error as error:
            raise DataError(f"{self.where}: line {self.line}: not readable as CSV ({error}).") from None
        return fields, next(lines, None) is None


def _split_lines(block: bytes) -> Iterator[str]:
    return io.StringIO(block.decode("utf-8"), newline="\n")


def _quoted(fields: list[str], delimiter: str) -> str:
    """One row of CSV text, every field in quotes."""
    return delimiter.join('"' + field.replace('"', '""') + '"' for field in fields) + "\n"
