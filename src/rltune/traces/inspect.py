"""Look at a file before configuring it: its format, its columns, and a column map to start from."""

from __future__ import annotations

import gzip
import io
import itertools
import zlib
from pathlib import Path

import ijson
import pandas as pd
import pyarrow
import pyarrow.parquet

from rltune.errors import DataError
from rltune.traces.guess import guess_map
from rltune.traces.readers.alibaba2020 import JOB_COLUMNS, TASK_COLUMNS
from rltune.traces.readers.raw import delimiter_of

MAX_ROWS = 200_000
"""Rows looked at; enough for quantiles, and a 7 GB file answers in seconds."""
SWF_COLUMNS = ["job_number", "submit_time", "wait_time", "run_time", "allocated_processors", "average_cpu_time",
               "used_memory", "requested_processors", "requested_time", "requested_memory", "status", "user_id",
               "group_id", "executable", "queue", "partition", "preceding_job", "think_time"]
HELIOS_MARK = {"job_id", "gpu_num", "state", "submit_time", "duration", "queue"}
_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile)


def inspect_file(path: Path | str) -> str:
    """Describe a raw file, a CSV of your own, or a job table, in text.

    Raises:
        DataError: no such file, a folder, or a file none of the known formats can be read from.
    """
    path = Path(path)
    if not path.is_file():
        kind = "a folder; name one file in it" if path.is_dir() else "no such file"
        raise DataError(f"{path}: {kind}. Expected a trace file: CSV, JSON, SWF (each also .gz) or parquet.")
    try:
        format_name, table, more = _load(path)
    except _BROKEN as error:
        raise DataError(f"{path}: truncated or damaged gzip ({error}); obtain the file again.") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, ijson.JSONError) as error:
        raise DataError(
            f"{path}: cannot be read ({' '.join(str(error).split())[:200]}); expected CSV, JSON, SWF or parquet."
        ) from None
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from None
    if table.empty:
        raise DataError(f"{path}: no rows in it; expected one row a job.")
    rows = f"first {len(table):,}" if more else f"{len(table):,}"
    parts = [f"{path}", f"format: {format_name}", f"rows: {rows}", "", _columns(table).to_string(index=False)]
    if format_name == "CSV with a header":
        parts += ["", "A start for config/traces/NAME.yaml (check every line):", "", guess_map(table, path)]
    return "\n".join(parts) + "\n"


def _load(path: Path) -> tuple[str, pd.DataFrame, bool]:
    """(format, rows as a table, whether there are more rows)."""
    with open(path, "rb") as file:
        magic = file.read(6)
    if magic[:4] == b"PAR1":
        file = pyarrow.parquet.ParquetFile(path)
        batch = next(file.iter_batches(batch_size=MAX_ROWS), None)
        table = batch.to_pandas() if batch is not None else pd.DataFrame()
        known = b"rltune" in (file.schema_arrow.metadata or {})
        return "canonical job table" if known else "parquet", table, file.metadata.num_rows > len(table)
    if magic[:2] == b"PK" or path.name.endswith((".tar.gz", ".tgz", ".tar", ".zip")):
        raise DataError(f"{path}: an archive; unpack it and inspect a file in it.")
    opener = gzip.open if magic[:2] == b"\x1f\x8b" else open
    with opener(path, "rb") as file:
        head = file.read(1 << 16)
        file.seek(0)
        return _load_text(head, file)


def _load_text(head: bytes, file: io.BufferedIOBase) -> tuple[str, pd.DataFrame, bool]:
    text = head.decode("utf-8-sig", "replace").lstrip()
    if not text:
        raise pd.errors.EmptyDataError("the file is empty")
    if text[0] in "[{":
        jobs = list(itertools.islice(ijson.items(file, "item"), MAX_ROWS))
        table = pd.json_normalize(jobs, max_level=0) if jobs and isinstance(jobs[0], dict) else pd.DataFrame()
        native = {"jobid", "attempts", "submitted_time"} <= set(table.columns)
        if "attempts" in table:
            table["attempts"] = table["attempts"].map(lambda a: len(a) if isinstance(a, list) else None)
        return "Philly cluster_job_log (JSON)" if native else "JSON list", table, len(table) == MAX_ROWS
    line = next((x for x in text.splitlines() if x and x[0] != ";"), "")
    fields = line.split(",")
    if len(fields) == 1 and len(line.split()) == len(SWF_COLUMNS):
        table = pd.read_csv(file, sep=r"\s+", comment=";", names=SWF_COLUMNS, nrows=MAX_ROWS)
        return "SWF", table, len(table) == MAX_ROWS
    for name, columns in (("PAI task table", TASK_COLUMNS), ("PAI job table", JOB_COLUMNS)):
        if len(fields) == len(columns) and fields[0] != columns[0] and fields[3] in _PAI_STATUS:
            table = pd.read_csv(file, names=columns, nrows=MAX_ROWS)
            return f"Alibaba {name} (no header)", table, len(table) == MAX_ROWS
    table = pd.read_csv(file, nrows=MAX_ROWS, sep=delimiter_of(head), low_memory=False)
    native = HELIOS_MARK <= set(table.columns)
    return "Helios cluster_log.csv" if native else "CSV with a header", table, len(table) == MAX_ROWS


_PAI_STATUS = ("Terminated", "Failed", "Running", "Waiting")


def _columns(table: pd.DataFrame) -> pd.DataFrame:
    """One row a column: type, share missing, least, median and greatest (numbers and times), an example."""
    rows = []
    for name in table.columns:
        column = table[name]
        present = column.dropna()
        numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        low = middle = high = ""
        if numeric and len(present):
            low, middle, high = (f"{v:.10g}" for v in (present.min(), present.median(), present.max()))
        elif len(present) and isinstance(present.iloc[0], str) and len(present.iloc[0]) >= 10:
            stamps = pd.to_datetime(present.iloc[:1000], errors="coerce", format="ISO8601", utc=True)
            if stamps.notna().mean() > 0.9:
                low, high = present.astype("str").min(), present.astype("str").max()
        example = str(present.iloc[0])[:40] if len(present) else ""
        kind = "number" if numeric else "time" if low else "flag" if column.dtype == bool else "text"
        rows.append((name, kind, f"{column.isna().mean():.1%}", low, middle, high, example))
    return pd.DataFrame(rows, columns=["column", "type", "missing", "min", "median", "max", "example"])
