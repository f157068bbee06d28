"""Readers: one file per raw format, each giving the same raw columns; :func:`read` picks the one a trace names.

Raw columns are those of the job table (``rltune.traces.table``) except that ``submit_unix_s`` (seconds since 1970 UTC)
stands for ``submit_s``, values may be missing or impossible (cleaning counts and leaves them out), and ``unusable``
says why a row cannot be a job (null for rows that can).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from rltune.config.trace import TraceConfig
from rltune.errors import ConfigError
from rltune.traces.audit import Audit
from rltune.traces.readers import alibaba2020, alibaba2023, authors, column_map, helios, philly, sacct, swf

READERS = {
    "philly": philly.read,
    "helios": helios.read,
    "alibaba2020": alibaba2020.read,
    "alibaba2023": alibaba2023.read,
    "authors": authors.read,
    "swf": swf.read,
    "sacct": sacct.read,
    "csv": column_map.read,
}


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Read a trace's raw files into raw columns, one row a job (or what the format has in its place).

    Args:
        trace: the trace's configuration.
        folder: folder of raw files, or the one file, as given by ``rltune.traces.fetch.obtain``.
        audit: gets the rows read, and remarks; rows left out are counted later, in cleaning.

    Raises:
        DataError: a file is missing, truncated or not in the trace's format.
        ConfigError: no reader for the format.
    """
    reader = READERS.get(trace.format)
    if reader is None:
        raise ConfigError(f"format: found {trace.format!r}, expected one of {', '.join(READERS)}.")
    return reader(trace, Path(folder), audit)
