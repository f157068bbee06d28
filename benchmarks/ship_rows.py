#!/usr/bin/env python3
"""Makes the rows that ship with the package, src/rltune/data/*.parquet, from CSV files of the published traces.

    RLTUNE_REAL_TRACES=/folder python benchmarks/ship_rows.py

The folder holds philly/philly_jobs.csv.gz and helios/venus_gpu_jobs.csv.gz. Rows are those of the CSV files, in order
of submission, with times as seconds since 1970 UTC; nothing is left out or repaired.
"""

import hashlib

import pyarrow as pa
import pyarrow.parquet as pq

from rltune.config import load_trace, project_root
from rltune.config.trace_files import local_file
from rltune.traces.audit import Audit
from rltune.traces.fetch.download import DATA
from rltune.traces.readers import read

TYPES = {
    "job_id": pa.int32(),
    "user": pa.dictionary(pa.int16(), pa.string()),
    "vc": pa.dictionary(pa.int16(), pa.string()),
    "submit_unix_s": pa.int64(),
    "run_s": pa.int32(),
    "run_clamped": pa.bool_(),
    "gpus": pa.int16(),
    "status": pa.dictionary(pa.int16(), pa.string()),
}
COLUMNS = {
    "philly": ("job_id", "vc", "submit_unix_s", "run_s", "gpus"),
    "venus": ("job_id", "user", "vc", "submit_unix_s", "run_s", "run_clamped", "gpus", "status"),
}


def main() -> None:
    """Write the files and print their checksums."""
    root = project_root()
    for name, columns in COLUMNS.items():
        trace = load_trace(f"{name}-csv", root).model_copy(update={"start": None})
        assert trace.path is not None
        rows = read(trace, local_file(name, trace.path, root), Audit())
        assert not rows["unusable"].notna().any()
        rows["job_id"] = rows["job_id"].astype("int64")
        rows = rows.sort_values(["submit_unix_s", "job_id"], kind="stable", ignore_index=True)
        schema = pa.schema([(column, TYPES[column]) for column in columns])
        table = pa.Table.from_pandas(rows[list(columns)], preserve_index=False).cast(schema).replace_schema_metadata()
        path = DATA / f"{name}.parquet"
        numbers = [column for column in columns if pa.types.is_integer(TYPES[column])]
        words = [column for column in columns if pa.types.is_dictionary(TYPES[column])]
        encoding = dict.fromkeys(numbers, "DELTA_BINARY_PACKED")
        pq.write_table(
            table, path, compression="zstd", compression_level=19, use_dictionary=words, column_encoding=encoding
        )
        print(
            f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}  {len(table):,} rows, {path.stat().st_size:,} bytes"
        )


if __name__ == "__main__":
    main()
