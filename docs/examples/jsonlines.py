"""JSON lines: one object a line, ``{"id": …, "at": seconds since 1970, "ran": s, "gpus": n, "by": …}``."""

from pathlib import Path

import pandas as pd

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.raw.archive import one_file
from rltune.traces.raw.frame import raw_frame, reasons

NEEDED = ("id", "at", "ran", "gpus")


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Raw columns, a row a line. Raises DataError for a file that is no JSON lines or lacks a field."""
    path = one_file(folder, ("*.jsonl",), "a file of JSON lines")
    try:
        table = pd.read_json(path, lines=True, dtype={"id": str, "by": str})
    except ValueError as error:
        raise DataError(f"{path}: expected a JSON object on every line; {error}") from None
    if missing := [name for name in NEEDED if name not in table]:
        raise DataError(f"{path}: found no field {', '.join(missing)}; found {', '.join(table)}")
    audit.read(len(table))
    return raw_frame(
        {
            "job_id": table["id"],
            "submit_unix_s": table["at"],
            "run_s": table["ran"],
            "gpus": table["gpus"],
            "user": table.get("by"),
            "unusable": reasons(len(table), ("cancelled before it ran", table["ran"].isna())),
        },
        len(table),
    )
