"""What Slurm's accounting (sacct, slurmdbd) says became of the experiment's jobs."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pandas as pd

from rltune.errors import SlurmError
from rltune.slurm.emulate import Emulation
from rltune.slurm.experiment.submission import Submission

FIELDS = ("JobIDRaw", "JobName", "Account", "Submit", "Eligible", "Start", "End", "State", "AllocTRES", "NNodes", "NodeList")
COMMAND = ("env", "SLURM_TIME_FORMAT=%s", "sacct", "--allusers", "--allocations", "--noheader", "--parsable2",
           "--starttime=2000-01-01", f"--format={','.join(FIELDS)}")  # fmt: skip
UNFINISHED = ("PENDING", "RUNNING", "COMPLETING", "REQUEUED", "SUSPENDED")
LATE_S = 60.0
"""How long, on the true clock, the database may take to have the last jobs."""


def jobs_of(slurm: Emulation, submissions: Sequence[Submission], began_s: float) -> pd.DataFrame:
    """A row a submission, in their order: job (its name), slurm_id, account, gpus (allocated; 0 where it never ran), nodes,
    node_list, at_s (when it was to be submitted), submit_s, eligible_s, start_s, end_s (by Slurm's accounting; s since the
    experiment began, NaN where it did not happen), run_s (asked for), limit_s, state.

    Raises SlurmError where the accounting does not have all of them, ended, within LATE_S.
    """
    deadline = time.monotonic() + LATE_S
    while True:
        told = slurm.run(*COMMAND)
        try:
            return read(told, submissions, began_s)
        except SlurmError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def read(text: str, submissions: Sequence[Submission], began_s: float) -> pd.DataFrame:
    """The frame of :func:`jobs_of` from what sacct printed. Raises SlurmError where a job is not there or not ended."""
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        values = line.split("|")
        if len(values) != len(FIELDS):
            raise SlurmError(f"sacct: found {len(values)} fields in {line[:80]!r}, expected {len(FIELDS)}")
        row = dict(zip(FIELDS, values, strict=True))
        found[row["JobName"]] = row
    rows = []
    for job in submissions:
        row = found.get(job.name)
        if row is None:
            raise SlurmError(f"sacct: found no job {job.name} among {len(found)}, expected every submission")
        state = row["State"].split(" ")[0]
        if state in UNFINISHED:
            raise SlurmError(f"sacct: job {job.name} (Slurm's {row['JobIDRaw']}) is {state}, expected an end")
        has = {key: value for key, _, value in (part.partition("=") for part in row["AllocTRES"].split(","))}
        times = {name.lower() + "_s": _seconds(row[name], began_s) for name in ("Submit", "Eligible", "Start", "End")}
        ran = times["start_s"] == times["start_s"]
        rows.append({
            "job": job.name, "slurm_id": int(row["JobIDRaw"]), "account": row["Account"],
            "gpus": int(has.get("gres/gpu", 0)), "nodes": int(row["NNodes"]) if ran else 0,
            "node_list": row["NodeList"], "at_s": job.at_s, **times, "run_s": job.run_s, "limit_s": 60.0 * job.limit_min,
            "state": state,
        })  # fmt: skip
    return pd.DataFrame(rows)


def _seconds(text: str, began_s: float) -> float:
    """A time of sacct's as s since the experiment began; NaN for one that is not known."""
    return float(text) - began_s if text.strip().isdigit() and int(text) > 0 else float("nan")
