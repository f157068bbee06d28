"""The experiment's jobs in Slurm's accounting (sacct, slurmdbd)."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pandas as pd

from rltune.errors import ClusterDied, SlurmError
from rltune.slurm import accounting
from rltune.slurm.emulate import Emulation
from rltune.slurm.experiment.submission import Submission

LATE_S = 60.0
"""Real seconds that the database may take to record the last jobs."""
SETTLED_S = 10.0
"""Real seconds that it may take to record their starts. Some never come: on a fast clock slurmdbd sometimes loses one."""


def jobs_of(slurm: Emulation, submissions: Sequence[Submission], began_s: float) -> pd.DataFrame:
    """One row per submission, in their order: job (its name), slurm_id, account, asked_gpus, gpus (allocated; 0 if it never
    ran), nodes, node_list, at_s (planned submission), submit_s, start_s, end_s (s since the experiment began; NaN if it did
    not happen or the accounting lost it), run_s (asked for), limit_s, state.

    Raises ClusterDied if the accounting does not have all of them, ended, within LATE_S.
    """
    asked_s = time.monotonic()
    while True:
        text = slurm.run(*accounting.command())
        waited_s = time.monotonic() - asked_s
        try:
            return read(text, submissions, began_s, timed=waited_s < SETTLED_S)
        except SlurmError as error:
            if waited_s > LATE_S:
                raise ClusterDied(f"{error}; it has not changed for {LATE_S:g} s") from None
            time.sleep(0.5)


def read(text: str, submissions: Sequence[Submission], began_s: float, timed: bool = True) -> pd.DataFrame:
    """The frame of :func:`jobs_of` from sacct's output.

    Raises SlurmError if a job is missing, has not ended or, if ``timed``, is completed without a start or without nodes.
    """
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
        known = {name: getattr(account, name) for name in ("submit_s", "start_s", "end_s")}
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
                **{name: np.nan if at_s is None else at_s - began_s for name, at_s in known.items()},
                "run_s": job.run_s,
                "limit_s": 60.0 * job.limit_min,
                "state": account.state,
            }
        )
    return pd.DataFrame(rows)
