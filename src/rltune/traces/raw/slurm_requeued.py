"""Requeued jobs of a Slurm cluster's log: the rows of one job's runs put together into one."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.traces.audit import Audit

RETRIED = ("REQUEUED", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL")
"""States after which Slurm may run a job again."""
STILL_PENDING, STILL_RUNNING = "still pending when the log was written", "still running when the log was written"
CANCELLED_EARLY, ENDED_EARLY = "cancelled before it started", "ended before it started (not cancelled)"
UNFINISHED = "requeued, and not finished when the log was written"


def one_row_per_job(rows: pd.DataFrame, state: pd.Series, audit: Audit) -> pd.DataFrame:
    """Runs of a requeued job put together: the last row, with the earliest submission and the summed run time.

    Rows are of one job where all but the last ended in one of :data:`RETRIED`. Where the last row never started, the
    last that ran stands for it, with the last one's status; where it is pending or running, the job is left out.

    Args:
        rows: raw columns, one row a line of the log.
        state: each row's state, in capitals, without a remark.
        audit: gets the rows put together with others.
    """
    ids = rows["job_id"]
    again = ids.duplicated(keep=False) & (ids != "")
    if not again.any():
        return rows
    part = rows[again].assign(retried=state[again].isin(RETRIED), owner=rows["user"].fillna(""))
    # In the order of their runs; sacct writes them in it, so equal submissions keep the file's order.
    part = part.sort_values("submit_unix_s", kind="stable")
    job = part.groupby(["job_id", "owner"], sort=False).ngroup()
    last = ~job.duplicated(keep="last")
    whole = (part["retried"] | last).groupby(job).transform("all") & job.duplicated(keep=False)
    keep = whole & _kept_row(part, job, last)
    first_submit = part["submit_unix_s"].groupby(job).transform("min")
    start = part["submit_unix_s"] + part["wait_s"].where(part["wait_s"] >= 0)
    first_start = start.groupby(job).transform("min")
    total = part["run_s"].groupby(job).transform("sum")
    chosen = part.index[keep]
    rows.loc[chosen, "status"] = part["status"].groupby(job).transform("last")[chosen]
    rows.loc[chosen, "run_s"] = total[chosen].where(rows.loc[chosen, "run_s"].notna() & np.isfinite(total[chosen]))
    rows.loc[chosen, "wait_s"] = (first_start - first_submit)[chosen].clip(lower=0)
    rows.loc[chosen, "submit_unix_s"] = first_submit[chosen]
    unfinished = chosen[rows.loc[chosen, "unusable"].isin([STILL_PENDING, STILL_RUNNING])]
    rows.loc[unfinished, "unusable"] = UNFINISHED
    audit.leave_out("earlier run of a requeued job: put together with its last", (whole & ~last & ~keep).sum())
    audit.leave_out(
        "requeued job ended before it ran again: put together with its last run", (whole & last & ~keep).sum()
    )
    audit.note("requeued job, run time is the sum of its runs", len(chosen) - len(unfinished))
    return rows.drop(index=part.index[whole & ~keep]).reset_index(drop=True)


def _kept_row(part: pd.DataFrame, job: pd.Series, last: pd.Series) -> pd.Series:
    """Which row of each requeued job stays: its last, or the last that ran where the last never started."""
    never = (last & part["unusable"].isin([CANCELLED_EARLY, ENDED_EARLY])).groupby(job).transform("any")
    ran = part["unusable"].isna() & (part["run_s"] > 0) & never
    last_ran = ran & ~job[ran].duplicated(keep="last").reindex(part.index, fill_value=True)
    return last_ran | (last & ~ran.groupby(job).transform("any"))
