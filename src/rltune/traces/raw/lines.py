"""One raw file of a folder, and its lines: what the readers of line-based formats (SWF, sacct) share.

Their fields are never quoted, so a line is its fields; each line is read or counted.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import IO

import pandas as pd

from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.raw.csv_text import LONG, OPEN_END, SHORT
from rltune.traces.raw.encoding import NOT_UTF_8, Utf8

__all__ = ["LONG", "SHORT", "closed", "one_file", "text_lines", "to_frame"]


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


def closed(lines: list[str], fields: int, found: int, where: str, audit: Audit) -> None:
    """Note a last line that has no end, or refuse it where it lacks fields: the file is cut off then.

    Raises:
        DataError: the last line is cut off.
    """
    last = lines[-1]
    if not last.strip():
        return
    if found < fields:
        raise DataError(
            f"{where}: truncated: the last row has {found} of {fields} fields and no end of line ({last[:60]!r}). "
            "Obtain the file again."
        )
    audit.note(OPEN_END, 1)


def to_frame(lines: list[str], delimiter: str, names: list[str], text: list[str] | None = None) -> pd.DataFrame:
    """Lines of exactly ``len(names)`` fields as a frame.

    Args:
        lines: the lines, none of them empty.
        delimiter: what stands between two fields; quotes mean nothing.
        names: names of the columns, each once.
        text: columns kept as text (empty fields null); the others become float64. Default: all are text.

    Raises:
        ValueError: a field of a numeric column is no number.
    """
    dtypes = {n: "str" if text is None or n in text else "float64" for n in names}
    return pd.read_csv(
        io.StringIO("\n".join(lines) + "\n"),
        sep=delimiter,
        header=None,
        names=names,
        dtype=dtypes,
        quoting=csv.QUOTE_NONE,
        index_col=False,
        skip_blank_lines=False,
        na_values=[""],
        keep_default_na=False,
        low_memory=False,
    )
