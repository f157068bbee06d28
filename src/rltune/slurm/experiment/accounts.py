"""The experiment's jobs in Slurm's accounting (sacct, slurmdbd)."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rltune.errors import ClusterDied, SlurmError
from rltune.slurm.emulate import Emulation
from rltune.slurm.experiment.submission import Submission
from rltune.slurm.records import UNFINISHED_STATES
from rltune.slurm.resources import gpus
from rltune.slurm.values import Fault, Row, expand, shown

FIELDS = "JobIDRaw Submit Start End Account Partition QOS NodeList AllocTRES State JobName".split()
"""Columns of sacct; times in s since 1970."""
COMMAND = (
    *("env", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0"),
    *("sacct", "--allusers", "--allocations", "--noheader", "--parsable2", "--starttime=2000-01-01"),
    f"--format={','.join(FIELDS)}",
)
LATE_S = 60.0
"""Real seconds that the database may take to record the last jobs."""
SETTLED_S = 10.0
"""Real seconds that it may take to record their starts. Some never come: on a fast clock slurmdbd sometimes loses one."""


def jobs_of(slurm: Emulation, submissions: Sequence[Submission], began_s: float) -> pd.DataFrame:
    """One row per submission, in their order: job (its name), slurm_id, account, partition, qos, asked_gpus, gpus (allocated;
    0 if it never ran), nodes, node_list, at_s (planned submission), submit_s, start_s, end_s (s since the experiment began;
    NaN if it did not happen or the accounting lost it), run_s and lasts_s (how long it was to run on its fastest GPU type,
    and on the one that it got), limit_s, state.

    Raises ClusterDied if the accounting does not have all of them, ended, within LATE_S.
    """
    asked_s = time.monotonic()
    while True:
        text = slurm.run(*COMMAND)
        waited_s = time.monotonic() - asked_s
        try:
            return read(text, submissions, began_s, timed=waited_s < SETTLED_S)
        except SlurmError as error:
            if waited_s > LATE_S:
                raise ClusterDied(f"{error}; it has not changed for {LATE_S:g} s") from None
            time.sleep(0.5)


def read(text: str, submissions: Sequence[Submission], began_s: float, timed: bool = True) -> pd.DataFrame:
    """The frame of :func:`jobs_of` from sacct's output.

    Raises SlurmError if a job is missing, cannot be read, has not ended or, if ``timed``, is completed without a start or
    without nodes.
    """
    accounts, rows = {}, []
    for line in text.splitlines():
        values = line.split("|", len(FIELDS) - 1)  # the name is last: it may have any character
        if len(values) != len(FIELDS):
            raise SlurmError(f"sacct: found {len(values)} fields in {shown(line)}, expected {', '.join(FIELDS)}")
        accounts[values[-1]] = dict(zip(FIELDS, values))
    for job in submissions:
        if job.name not in accounts:
            raise SlurmError(f"sacct: found no job {job.name} among {len(accounts)}, expected every submission")
        account = accounts[job.name]
        try:
            row = _row(job, account, began_s)
        except Fault as fault:
            raise SlurmError(f"sacct: job {job.name}: {fault}") from None
        if row["state"] in UNFINISHED_STATES:
            raise SlurmError(f"sacct: job {job.name} (Slurm's {row['slurm_id']}) is {row['state']}, expected an end")
        if timed and row["state"] == "COMPLETED" and (np.isnan(row["start_s"]) or not row["nodes"]):
            raise SlurmError(
                f"sacct: job {job.name} (Slurm's {row['slurm_id']}) is COMPLETED: found Start {account['Start']} and "
                f"NodeList {account['NodeList']}, expected a time and nodes"
            )
        rows.append(row)
    return pd.DataFrame(rows)


def _row(job: Submission, account: dict[str, str], began_s: float) -> dict[str, Any]:
    """One row of the frame. Raises Fault where a value cannot be read."""
    nodes = () if account["NodeList"] == "None assigned" else expand(account["NodeList"], "NodeList")
    given = Row(account)
    submit_s = given.required(given.moment("Submit"), "Submit", "seconds since 1970")
    return {
        "job": job.name,
        "slurm_id": given.count("JobIDRaw"),
        "account": account["Account"],
        "partition": account["Partition"],
        "qos": account["QOS"],
        "asked_gpus": job.gpus,
        "gpus": sum(gpus(account["AllocTRES"], "AllocTRES").values()),
        "nodes": len(nodes),
        "node_list": ",".join(nodes),
        "at_s": job.at_s,
        "submit_s": submit_s - began_s,
        "start_s": (given.moment("Start") or np.nan) - began_s,
        "end_s": (given.moment("End") or np.nan) - began_s,
        "run_s": job.run_s,
        "lasts_s": job.lasts_s(next(iter(nodes), "")),
        "limit_s": 60.0 * job.limit_min,
        "state": account["State"].split(" ")[0],
    }
