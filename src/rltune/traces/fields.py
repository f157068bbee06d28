"""Which field of a raw record each column of the job table comes from, read from the reference of the formats."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from rltune.config.trace import TraceConfig


def fields(trace: TraceConfig, reference: str | Path, names: Iterable[str]) -> pd.DataFrame:
    """Columns of the job table that a trace's format fills, by name: raw (field or rule), unit, meaning.

    ``reference``: the document with the formats' tables, docs/reference/traces.md; ``names``: fields of a raw record, which shipped rows
    have under the columns' own names.
    """
    columns, sources = _tables(Path(reference).read_text(encoding="utf-8"))
    if trace.format == "rows":
        raw = {name.replace("unix_", ""): name for name in names}
    elif trace.format == "csv":
        raw = {n: c.column if c.column else f"always {c.constant}" for n, c in dict(trace.columns).items() if c}
    else:
        raw = sources[trace.format][sources[trace.format] != "–"].to_dict()
    return columns.assign(raw=pd.Series(raw)).dropna(subset="raw")[["raw", "unit", "meaning"]]


def _tables(text: str) -> list[pd.DataFrame]:
    """The tables of a Markdown text whose first column is the job table's, by it; a heading's link is its text."""
    tables = []
    for block in re.findall(r"^\| column \|.*\n(?:\|.*\n)+", text, re.MULTILINE):
        plain = block.replace("`", "")
        lines = [[c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", x)[1:-1]] for x in plain.splitlines()]
        heads = [re.sub(r"\[(\w+)\].*", r"\1", head) for head in lines[0]]
        tables.append(pd.DataFrame(lines[2:], columns=heads).set_index("column"))
    return tables
