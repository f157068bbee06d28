"""Readers: a raw format is one file here, and its name; each gives the same raw columns.

:func:`read` picks the one that a trace names. A new format is a new file with a function ``read``, and nothing else.

Raw columns are those of the job table (``rltune.traces.table``) except that ``submit_unix_s`` (seconds since 1970 UTC)
stands for ``submit_s``, values may be missing or impossible (cleaning counts and leaves them out), and ``unusable``
says why a row cannot be a job (null for rows that can).
"""

from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.config.trace import FORMATS, TraceConfig
from rltune.traces.audit import Audit
from rltune.traces.raw.frame import LEFT_OUT, whole_gpus

READERS = {name: import_module(f"rltune.traces.readers.{name}").read for name in FORMATS}
"""Format → ``read(trace, folder, audit)`` of the file of that name."""


def read(trace: TraceConfig, folder: Path, audit: Audit) -> pd.DataFrame:
    """Read a trace's raw files into raw columns, one row a job (or what the format has in its place).

    Args:
        trace: the trace's configuration.
        folder: folder of raw files, or the one file, as given by ``rltune.traces.fetch.obtain``.
        audit: gets the rows read, and remarks; rows left out are counted later, in cleaning.

    Raises:
        DataError: a file is missing, truncated or not in the trace's format.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite amount is an impossible one, and counted as such
        rows = READERS[trace.format](trace, Path(folder), audit)
        rows["gpus"], shared = whole_gpus(rows["gpus"].to_numpy(), trace.gpu_share, audit)
    rows["unusable"] = rows["unusable"].mask(rows["unusable"].isna() & shared, LEFT_OUT)
    return rows
