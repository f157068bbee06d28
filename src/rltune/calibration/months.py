"""Which months of the real rows the generator is fitted on, which it is checked on, and how rows are compared.

Both lie inside the first 90 % of each trace (its last tenth is for results). What is generated is made to look like
the rows it is compared with: run times cut off where theirs are, and thinned where they are a sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.traces.synthetic.parameters import CLAMP_S, LEVELS


@dataclass(frozen=True)
class Months:
    """The real counterpart of one synthetic trace."""

    trace: str
    """config/traces/<trace>.yaml reads the real rows."""
    cluster: str | None
    """The one-pool cluster on which waits are compared; None for a CPU trace."""
    paper: str
    """Its name in the paper's Table 2."""
    fit: tuple[str, str]
    """First day, first day after the last, in the trace's own time zone."""
    held: tuple[str, str]
    """The same of the months that no parameter has seen."""
    sample: int = 1
    """One job in this many is in the rows, and their clock runs as much faster."""
    clamp_s: float | None = None
    """Where run times are cut off in the rows."""


MONTHS = {
    "philly": Months("philly-csv", "philly-192", "Philly", ("2017-10-01", "2017-11-13"), ("2017-11-13", "2017-12-04")),
    "helios": Months(
        "venus-csv", "venus-160", "Helios", ("2020-04-01", "2020-08-01"), ("2020-08-01", "2020-09-01"), clamp_s=CLAMP_S
    ),
    # PAI's dates mean nothing; days are counted from its first row.
    "alibaba2020": Months(
        "pai-csv", "pai-140", "Alibaba", ("day 0", "day 42"), ("day 42", "day 58"), sample=12, clamp_s=CLAMP_S
    ),
    "hpc2n": Months("hpc2n-swf", None, "HPC2N", ("2002-07-28", "2004-07-01"), ("2004-07-01", "2005-01-01")),
}


def between(jobs: pd.DataFrame, t0: pd.Timestamp, days: tuple[str, str], sample: int = 1) -> pd.DataFrame:
    """The jobs submitted from the first of ``days`` until before the second."""
    first_s, after_s = (_seconds(day, t0, sample) for day in days)
    submit_s = jobs["submit_s"]
    return jobs[(submit_s >= first_s) & (submit_s < after_s)].reset_index(drop=True)


def _seconds(day: str, t0: pd.Timestamp, sample: int) -> float:
    if day.startswith("day "):
        return int(day[4:]) * 86_400 / sample
    return (pd.Timestamp(day, tz=t0.tz) - t0).total_seconds()


def as_rows(drawn: pd.DataFrame, months: Months) -> pd.DataFrame:
    """Generated jobs (``engine.draw_jobs``) as the job table that cleaning would make of such rows as ours."""
    if months.sample > 1:
        # A generator of its own: which jobs a sample holds has nothing to do with what they are.
        chosen = np.random.Generator(np.random.PCG64(months.sample)).uniform(size=len(drawn)) < 1 / months.sample
        drawn = drawn[chosen].reset_index(drop=True)
    submit_s = (drawn["submit_unix_s"] - drawn["submit_unix_s"].iloc[0]) / months.sample
    run_s = drawn["run_s"].astype(np.float64).clip(upper=months.clamp_s)
    return drawn.assign(
        job_id=[f"j{i}" for i in range(len(drawn))],
        submit_s=submit_s.astype(np.float64),
        run_s=run_s,
        user=drawn["user"].astype(str),
        vc=drawn["vc"].where(drawn["vc"] != "", None),
        resource="gpu",
        cpus=np.nan,
        mem_gb=np.nan,
        gpu_type=None,
        sla=False,
    )


def levels_of(seconds: np.ndarray) -> tuple[int, ...]:
    """Quantiles at LEVELS, three significant digits, never falling."""
    values = np.quantile(seconds, LEVELS)
    return tuple(int(max(1, float(f"{v:.3g}"))) for v in values)
