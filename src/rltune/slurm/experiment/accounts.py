"""What Slurm's accounting (sacct, slurmdbd) says became of the experiment's jobs."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pandas as pd

from rltune.errors import ClusterDied, SlurmError
from rltune.slurm import accounting
from rltune.slurm.emulate import Emulation
from rltune.slurm.experiment.submission import Submission

LATE_S = 60.0
"""How long, on the true clock, the database may take to have the last jobs."""
SETTLED_S = 10.0
"""How long it may take to have their starts. Some it never has: on a fast clock slurmdbd now and then loses one."""


def jobs_of(slurm: Emulation, submissions: Sequence[Submission], began_s: float) -> pd.DataFrame:
    """A row a submission, in their order: job (its name), slurm_id, account, asked_gpus, gpus (allocated; 0 where it never
    ran), nodes, node_list, at_s (when it was to be submitted), submit_s, eligible_s, start_s, end_s (by Slurm's accounting;
    s since the experiment began, NaN where it did not happen or the accounting has lost it), run_s (asked for), limit_s,
    state. Ids, accounts, nodes and eligible_s are for whoever reads the file; nothing here does.

    Raises ClusterDied where the accounting does not have all of them, ended, within LATE_S.
    """
    asked_s = time.monotonic()
    while True:
        told = slurm.run(*accounting.command())
        waited_s = time.monotonic() - asked_s
        try:
            return read(told, submissions, began_s, timed=waited_s < SETTLED_S)
        except SlurmError as error:
            if waited_s > LATE_S:
                raise ClusterDied(f"{error}; it has not changed for {LATE_S:g} s") from None
            time.sleep(0.5)


def read(text: str, submissions: Sequence[Submission], began_s: float, timed: bool = True) -> pd.DataFrame:
    """The frame of :func:`jobs_of` from what sacct printed. Raises SlurmError where a job is not there, has not
    ended, or, if all are to be ``timed``, is said to be completed without a start or without nodes."""
    found = {account.name: account for account in accounting.read(text).values()}
    rows = []
    for job in submissions:
        account = found.get(job.name)
        if account is None:
            raise SlurmError(f"sacct: found no job {job.name} among {len(found)}, expected every submission")
        if account.state in accounting.UNFINISHED:
            raise SlurmError(f"sacct: job {job.name} (Slurm's {account.id}) is {account.state}, expected an end")
        if timed and account.state == "COMPLETED" and (account.start_s is None or not account.nodes):
            raise SlurmError(
                f"sacct: job {job.name} (Slurm's {account.id}) is COMPLETED with start "
                f"{account.start_s or 'Unknown'} and {len(account.nodes)} nodes, expected both"
            )
        moments = ("submit_s", "eligible_s", "start_s", "end_s")
        times = {name: _since(began_s, getattr(account, name)) for name in moments}
        rows.append(
            {
                "job": job.name,
                "slurm_id": account.id,
                "account": account.account,
                "asked_gpus": job.gpus,
                "gpus": account.held_gpus,
                "nodes": len(account.nodes),
                "node_list": ",".join(account.nodes),
                "at_s": job.at_s,
                **times,
                "run_s": job.run_s,
                "limit_s": 60.0 * job.limit_min,
                "state": account.state,
            }
        )
    return pd.DataFrame(rows)


def _since(began_s: float, moment_s: float | None) -> float:
    """A moment as s since the experiment began; NaN for one that did not come."""
    return float("nan") if moment_s is None else moment_s - began_s
