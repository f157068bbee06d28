"""Which field of a raw record each column of the job table comes from: fields.csv."""

import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from rltune.config.trace import TraceConfig
from rltune.traces.raw import slurm_fields as slurm

TABLE = Path(__file__).with_name("fields.csv")
"""A row per column of the job table: unit, meaning, and for each format the field or rule; empty: the format does not have it."""


def fields(trace: TraceConfig, names: Iterable[str]) -> pd.DataFrame:
    """Columns of the job table that a trace's format fills, by name: raw (field or rule), unit, meaning.

    Of a format that TABLE does not have, all columns, with an empty ``raw``. ``names``: fields of a raw record, which shipped rows have
    under the columns' own names.
    """
    table = pd.read_csv(TABLE, dtype="str", index_col="column")
    if trace.format == "rows":
        raw = {name.replace("unix_", ""): name for name in names}
    elif trace.format == "csv":
        raw = {n: c.column if c.column else f"always {c.constant}" for n, c in dict(trace.columns).items() if c}
    else:
        raw = table[trace.format].dropna().to_dict() if trace.format in table else dict.fromkeys(table.index, "")
    found = table.assign(raw=pd.Series(raw, dtype="str"))
    return found.dropna(subset="raw")[["raw", "unit", "meaning"]].fillna("")


def without_people(trace: TraceConfig, records: pd.DataFrame) -> pd.DataFrame:
    """The fields of raw records that the job table is made of, but for those of users and job ids (which may be names).

    States are without who cancelled a job.
    """
    if trace.columns:
        used = {n: {c.column, c.fallback} for n, c in dict(trace.columns).items() if c}
    else:  # the words of TABLE; some formats have numbers there
        numbered = {str(n): name for n, name in enumerate(records, start=1 if trace.format == "swf" else 0)}
        table = fields(trace, records.columns)["raw"]
        used = {n: {numbered.get(w, w) for w in re.findall(r"\w+", raw)} for n, raw in table.items()}
    people = used.pop("user", set()) | used.pop("job_id", set())
    shown = records[[name for name in records if name in set().union(*used.values()) - people]]
    states = [name for name in shown if name in used.get("status", ())]
    return shown.assign(**{name: slurm.state(shown[name].astype("str")) for name in states})
