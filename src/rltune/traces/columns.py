"""Columns of the canonical job table: one row a job, sorted by ``submit_s``, then ``job_id``. What each holds: fields.csv.

The table is a property of the trace alone; what a cluster cannot hold is decided elsewhere.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.util import hash_array

STATUSES = ("passed", "failed", "killed", "running", "unknown")
RESOURCES = ("gpu", "cpu")

DTYPES: dict[str, str] = {
    "job_id": "str",
    "user": "str",
    "vc": "str",
    "submit_s": "float64",
    "run_s": "float64",
    "run_clamped": "bool",
    "requested_s": "float64",
    "resource": "str",
    "gpus": "int64",
    "cpus": "float64",
    "mem_gb": "float64",
    "gpu_type": "str",
    "model": "str",
    "wait_s": "float64",
    "status": "str",
    "sla": "bool",
}
COLUMNS = tuple(DTYPES)
NULLABLE = ("user", "vc", "requested_s", "cpus", "mem_gb", "gpu_type", "model", "wait_s")


@dataclass(frozen=True)
class TraceMeta:
    """What a job table does not say itself; stored in the parquet file's metadata."""

    name: str
    """Stem of the trace's configuration file."""
    title: str
    """Name in tables and figures."""
    data: str
    """synthetic, sample, full or own: shown wherever the rows are."""
    format: str
    """Layout of the raw files."""
    t0: str
    """ISO date and time with offset (to the ms) of the first kept submission, at which ``submit_s`` is 0."""
    time_zone: str
    """IANA zone of the cluster, for hours of day and days of week."""
    source: str
    """Where the raw files came from."""
    licence: str | None = None
    citation: str | None = None


def empty_columns(rows: int) -> pd.DataFrame:
    """A frame of ``rows`` rows with all canonical columns at their 'not known' value, to fill in."""
    index = pd.RangeIndex(rows)
    plain = {"run_clamped": False, "sla": False, "gpus": 0, "resource": "gpu", "status": "unknown"}
    return pd.DataFrame({c: pd.Series(plain.get(c), index=index, dtype=t) for c, t in DTYPES.items()})


def job_uniform(job_id: pd.Series | np.ndarray, key: str) -> np.ndarray:
    """A number in (0, 1) for each job (float64), a function of its id and ``key`` alone."""
    # hash_array is SipHash under a 16-character key.
    digest = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
    bits = hash_array(np.asarray(job_id, dtype=object), hash_key=digest, categorize=False)
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
