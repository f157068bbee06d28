"""Rows as they ship with the package: a parquet file of raw columns (rltune.traces.raw.frame), one row a job.

``job_id`` (may be a number), ``submit_unix_s``, ``run_s`` (s) and ``gpus`` are needed; the others may be absent.
"""

from pathlib import Path

import pandas as pd
import pyarrow

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.raw.archive import one_file
from rltune.traces.raw.csv_text import missing_column
from rltune.traces.raw.frame import RAW, raw_frame

NEEDED = ("job_id", "submit_unix_s", "run_s", "gpus")


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Raw columns. Raises DataError for a file that is no parquet, lacks a column, or has one of another name."""
    path = one_file(folder, ("*.parquet",), "a parquet file of raw columns")
    try:
        table = pd.read_parquet(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: not readable as parquet ({error}); obtain the file again.") from None
    for column in NEEDED:
        if column not in table:
            raise missing_column(str(path), column, "needed", list(table))
    if unknown := sorted(set(table) - set(RAW)):
        raise DataError(f"{path}: found column {', '.join(unknown)}; expected {', '.join(RAW)}.")
    audit.read(len(table))
    texts = {name: values.astype("str") for name, values in table.items() if name in ("job_id", "user", "vc", "status")}
    try:
        return raw_frame({**table, **texts}, len(table))
    except (TypeError, ValueError) as error:
        raise DataError(f"{path}: a column is of the wrong type ({error}).") from None
