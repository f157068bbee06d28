"""The real rows a synthetic trace is fitted to and checked against."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd

from rltune.calibration.months import MONTHS, between
from rltune.config.load import load_trace
from rltune.traces.clean import clean_trace
from rltune.traces.fetch import obtain


def real_rows(name: str, root: Path) -> tuple[pd.DataFrame, pd.Timestamp]:
    """Cleaned rows, with processors as ``gpus`` for the CPU trace, and the local time of ``submit_s`` 0.

    Raises ConfigError or DataError where RLTUNE_REAL_TRACES or the files under it are missing.
    """
    trace = load_trace(MONTHS[name].trace, root)
    with tempfile.TemporaryDirectory() as cache:
        clean = clean_trace(MONTHS[name].trace, trace, obtain(MONTHS[name].trace, trace, Path(cache), root))
    jobs = clean.jobs
    if MONTHS[name].cluster is None:
        jobs = jobs.assign(gpus=jobs["cpus"].astype("int64"), vc=None)  # one partition for all
    return jobs, pd.Timestamp(clean.meta.t0).tz_convert(trace.time_zone)


def months_of(name: str, root: Path) -> dict[str, tuple[pd.DataFrame, pd.Timestamp]]:
    """``fit`` and ``held`` → rows, with ``submit_s`` from 0, and the local time of that 0."""
    months = MONTHS[name]
    jobs, t0 = real_rows(name, root)
    found = {}
    for which, days in (("fit", months.fit), ("held", months.held)):
        rows = between(jobs, t0, days, months.sample)
        first_s = float(rows["submit_s"].iloc[0])
        begin = t0 + pd.Timedelta(seconds=first_s * months.sample)
        found[which] = rows.assign(submit_s=rows["submit_s"] - first_s), begin
    return found
