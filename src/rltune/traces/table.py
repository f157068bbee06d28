"""Check, sort, write (parquet) and read the canonical job table (columns: rltune.traces.columns)."""

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
_GPUS_RULE = "gpus ≥ 1 for gpu jobs and 0 for cpu jobs"
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
    checks=[pa.Check(lambda t: (t["gpus"] > 0) == (t["resource"] == "gpu"), error=_GPUS_RULE)],
    strict=True,
    ordered=True,
)


def validate(jobs: pd.DataFrame, what: str = "the job table") -> pd.DataFrame:
    """Return ``jobs`` if it is a canonical job table.

    Raises:
        DataError: naming every column at fault, the check it fails and the first rows that do, and the first row that
            is out of order.
    """
    clauses, checked = [], jobs
    try:
        checked = SCHEMA.validate(jobs, lazy=True)
    except pa.errors.SchemaErrors as error:
        clauses = _faults(error.failure_cases)
    clauses += _disorder(jobs)
    if clauses:
        raise DataError(f"{what} is not a canonical job table: {'; '.join(clauses)}.")
    return checked


def recorded_run_s(jobs: pd.DataFrame) -> pd.Series:
    """Run times as the log has them, s. In a table fitted to a cluster whose GPU types differ in speed ``run_s`` is that on
    a job's fastest type, and these are in ``recorded_run_s`` (rltune.cluster.fit)."""
    return jobs["recorded_run_s"] if "recorded_run_s" in jobs else jobs["run_s"]


def sort_jobs(jobs: pd.DataFrame, time: str = "submit_s") -> pd.DataFrame:
    """Sorted by a column of times (null last), then by ``job_id`` (null last), ties as they came; a new index."""
    names = pyarrow.array(jobs["job_id"], pyarrow.large_string(), from_pandas=True)  # ten times as fast as pandas
    keys = pyarrow.table({"time": pyarrow.array(jobs[time], from_pandas=True), "id": names})
    order = pc.sort_indices(keys, sort_keys=[("time", "ascending"), ("id", "ascending")])
    return jobs.take(order.to_numpy()).reset_index(drop=True)


def _disorder(jobs: pd.DataFrame) -> list[str]:
    """A clause naming the first row that comes before the one above it; missing times and ids are other faults."""
    keys = ["submit_s", "job_id"]
    if any(list(jobs.columns).count(c) != 1 or str(jobs[c].dtype) != DTYPES[c] for c in keys):
        return []
    known = jobs[keys].dropna()
    time, name = known["submit_s"], known["job_id"]
    early = ((time < time.shift()) | ((time == time.shift()) & (name < name.shift()))).to_numpy()
    if not early.any():
        return []
    at = int(early.argmax())
    row, before = (f"{time.iloc[i]:.15g}, {name.iloc[i]!r}" for i in (at, at - 1))
    return [f"rows are not sorted by submit_s, then job_id (first: row {known.index[at]} is {row} after {before})"]


def _faults(cases: pd.DataFrame) -> list[str]:
    """One clause per column and check, e.g. ``run_s: greater_than(0) fails on 2 rows (first: row 4 is -1.0)``.

    A rule over several columns fails in all of them for pandera; it is reported once, of ``gpus``.
    """
    several = cases["check"].eq(_GPUS_RULE)
    cases = cases[~several | cases["column"].eq("gpus")]
    clauses = []
    for (column, check), group in cases.groupby(["column", "check"], sort=False, dropna=False):
        if pd.isna(column) or check in ("column_in_dataframe", "column_in_schema"):
            clauses.append(f"{check} ({', '.join(map(str, group['failure_case'].head(5)))})")
            continue
        rows = group.dropna(subset=["index"])
        if rows.empty:
            clauses.append(f"{column}: {check}, found {group['failure_case'].iloc[0]}")
            continue
        first = ", ".join(f"row {i} is {v!r}" for i, v in zip(rows["index"].head(3), rows["failure_case"].head(3)))
        clauses.append(f"{column}: {check} fails on {rows['index'].nunique()} rows (first: {first})")
    return clauses


def write_table(jobs: pd.DataFrame, meta: TraceMeta, path: Path | str) -> None:
    """Validate and write a job table with its metadata, atomically."""
    write_parquet(validate(jobs, f"the table for {path}"), meta, path)


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
