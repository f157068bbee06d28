"""One raw file of a folder, and its lines: what the readers of line-based formats (SWF, sacct) share.

Their fields are never quoted, so a line is its fields; each line is read or counted.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO

import pandas as pd
import pyarrow as pa
import pyarrow.csv

from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.raw.csv_text import LONG, OPEN_END, SHORT
from rltune.traces.raw.encoding import NOT_UTF_8, Utf8


def one_file(folder: Path, patterns: tuple[str, ...], what: str) -> Path:
    """The one file: ``folder`` itself if it is a file, else the only one in it whose name fits one of ``patterns``.

    Raises:
        DataError: there is none, or more than one.
    """
    if folder.is_file():
        return folder
    if not folder.exists():
        raise DataError(f"{folder}: no such file or folder; expected {what}.")
    found = sorted({p for pattern in patterns for p in folder.rglob(pattern) if p.is_file()})
    if len(found) == 1:
        return found[0]
    if not found:
        present = ", ".join(sorted(p.name for p in folder.iterdir())[:10]) or "nothing"
        raise DataError(f"{folder}: expected {what} ({' or '.join(patterns)}), found {present}.")
    names = ", ".join(p.name for p in found[:10])
    raise DataError(f"{folder}: found {len(found)} files, {names}; expected one. Give the file itself as `path`.")


def text_lines(stream: IO[bytes], where: str, audit: Audit) -> list[str]:
    """All lines of a text, without their ends; the last is empty unless the text stops without an end of line."""
    text = Utf8(stream, where)
    content = io.BufferedReader(text).read().decode()
    audit.note(NOT_UTF_8, text.latin_1)
    return content.replace("\0", "\ufffd").split("\n")


def line_table(lines: list[str], delimiter: str, names: list[str], where: str, audit: Audit) -> pd.DataFrame:
    """Lines as a table of text (empty fields null); those with another number of fields than ``names`` are counted.

    Args:
        lines: as :func:`text_lines` gives them; empty ones are passed over.
        delimiter: what stands between two fields; quotes mean nothing.
        names: names of the columns, each once.
        where: how messages name the file.
        audit: gets the lines read and left out, and a last line without an end.

    Raises:
        DataError: the last line is cut off.
    """
    given = [(line, line.count(delimiter) + 1) for line in lines if line.strip()]
    if lines and lines[-1].strip():
        if given[-1][1] < len(names):
            raise DataError(
                f"{where}: truncated: the last row has {given[-1][1]} of {len(names)} fields and no end of line "
                f"({lines[-1][:60]!r}). Obtain the file again."
            )
        audit.note(OPEN_END, 1)
    audit.read(len(given))
    audit.leave_out(SHORT, sum(fields < len(names) for _, fields in given))
    audit.leave_out(LONG, sum(fields > len(names) for _, fields in given))
    whole = [f"{line}\n".encode() for line, fields in given if fields == len(names)]
    if not whole:
        return pd.DataFrame(columns=names, dtype="str")
    table = pyarrow.csv.read_csv(
        pa.BufferReader(b"".join(whole)),
        pyarrow.csv.ReadOptions(column_names=names, block_size=max(1 << 20, max(map(len, whole)))),
        pyarrow.csv.ParseOptions(delimiter=delimiter, quote_char=False),
        pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()), null_values=[""], strings_can_be_null=True
        ),
    )
    return table.to_pandas().astype("str")
