"""Check, sort, write (parquet) and read the canonical job table (columns: rltune.traces.columns)."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pandera.pandas as pa
import pyarrow
import pyarrow.compute as pc
import pyarrow.parquet

from rltune.errors import DataError
from rltune.files import atomic_write
from rltune.traces.columns import DTYPES, NULLABLE, RESOURCES, STATUSES, TraceMeta

_METADATA_KEY = b"rltune"
_ORDER = ["submit_s", "job_id"]
_FINITE = pa.Check(lambda s: s.abs() < float("inf"), error="a finite number")
_CHECKS = {
    "job_id": [pa.Check.str_length(min_value=1)],
    **{name: [pa.Check.ge(0), _FINITE] for name in ("submit_s", "wait_s")},
    **{name: [pa.Check.gt(0), _FINITE] for name in ("run_s", "requested_s", "cpus", "mem_gb")},
    "resource": [pa.Check.isin(RESOURCES)],
    "gpus": [pa.Check.ge(0)],
    "status": [pa.Check.isin(STATUSES)],
}
SCHEMA = pa.DataFrameSchema(
    {
        name: pa.Column(dtype, _CHECKS.get(name), nullable=name in NULLABLE, unique=name == "job_id")
        for name, dtype in DTYPES.items()
    },
    checks=[
        pa.Check(
            lambda t: bool(((t["gpus"] > 0) == (t["resource"] == "gpu")).all()),
            error="gpus ≥ 1 for gpu jobs and 0 for cpu jobs",
        ),
        pa.Check(lambda t: sort_jobs(t[_ORDER]).equals(t[_ORDER]), error=f"sorted by {', then '.join(_ORDER)}"),
    ],
    strict=True,
    ordered=True,
)


def validate(jobs: pd.DataFrame, what: str = "the job table") -> pd.DataFrame:
    """Return ``jobs`` if it is a canonical job table.

    Raises:
        DataError: naming every column at fault, the check it fails and the first rows that do.
    """
    try:
        return SCHEMA.validate(jobs, lazy=True)
    except pa.errors.SchemaErrors as error:
        raise DataError(f"{what} is not a canonical job table: {_faults(error.failure_cases)}.") from None


def sort_jobs(jobs: pd.DataFrame, time: str = "submit_s") -> pd.DataFrame:
    """Sorted by a column of times (null last), then by ``job_id`` (null last), ties as they came; a new index."""
    names = pyarrow.array(jobs["job_id"], pyarrow.large_string(), from_pandas=True)  # ten times as fast as pandas
    keys = pyarrow.table({"time": pyarrow.array(jobs[time], from_pandas=True), "id": names})
    order = pc.sort_indices(keys, sort_keys=[("time", "ascending"), ("id", "ascending")])
    return jobs.take(order.to_numpy()).reset_index(drop=True)


def _faults(cases: pd.DataFrame) -> str:
    """A clause per column and check, e.g. ``run_s: greater_than(0) fails (first: -1.0 in row 4)``."""
    clauses = []
    for (column, check), group in cases.groupby(["column", "check"], sort=False, dropna=False):
        rows = zip(group["index"].head(3), group["failure_case"].head(3))
        first = ", ".join(f"{value!r}" if pd.isna(row) else f"{value!r} in row {row}" for row, value in rows)
        clauses.append(f"{'' if pd.isna(column) else f'{column}: '}{check} fails (first: {first})")
    return "; ".join(clauses)


def read_table(path: Path | str) -> tuple[pd.DataFrame, TraceMeta]:
    """Read a job table and its metadata, with the dtypes of :data:`DTYPES`.

    Raises:
        DataError: the file is missing, is not parquet, or does not hold a canonical job table.
    """
    jobs, meta = read_parquet(path, "clean")
    if meta is None:
        raise DataError(f"{path}: parquet, but without the trace's metadata; it was not written by RLTune's cleaning.")
    return validate(jobs, str(path)), meta


def write_parquet(frame: pd.DataFrame, meta: TraceMeta, path: Path | str) -> None:
    """Write a frame of jobs with their trace's metadata (parquet, zstd), atomically."""
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    text = json.dumps(asdict(meta), ensure_ascii=False).encode()
    with atomic_write(path) as temporary:
        kept = table.replace_schema_metadata({**(table.schema.metadata or {}), _METADATA_KEY: text})
        pyarrow.parquet.write_table(kept, temporary, compression="zstd")


def read_parquet(path: Path | str, stage: str) -> tuple[pd.DataFrame, TraceMeta | None]:
    """A frame that a stage wrote, and the trace's metadata where it has them. Raises DataError where it is missing or not
    readable."""
    try:
        table = pyarrow.parquet.read_table(path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; the stage {stage} makes it (make report ARGS={path})") from None
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: not readable as parquet ({error}); delete it and run the stage {stage}") from None
    text = (table.schema.metadata or {}).get(_METADATA_KEY)
    return table.to_pandas(), TraceMeta(**json.loads(text)) if text else None
