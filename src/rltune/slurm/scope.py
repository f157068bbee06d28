"""Which waiting jobs are ranked, and why the others are left to Slurm."""

from __future__ import annotations

from rltune.config.slurm import MOST_PRIORITY, ScopeConfig
from rltune.slurm.records import PENDING, SlurmJob

RANKED = ""
ABOVE = "its priority is above the band"
WAITS_FOR_SLURM = frozenset({"", "None", "Priority", "Resources", "NodesBusy", "ReqNodeNotAvail", "Licenses"})
"""Reasons of jobs that wait for their turn. Under any other (a limit, a begin time, a reservation, a failed launch) no
priority could start the job."""


def why_left(
    job: SlurmJob, scope: ScopeConfig, now_s: float, ours: bool = False, theirs: bool = False, most: int = MOST_PRIORITY
) -> str:
    """Why a waiting job is left to Slurm; RANKED where it is not.

    ``now_s``: s since 1970. ``ours``: its priority is the controller's own doing, and no reason to leave it. ``theirs``:
    somebody else has set it after the controller had. ``most``: highest priority of a ranked job where the scope has no
    rule, the band's.
    """
    partitions, below = job.partition.split(","), scope.priority_below
    rules = (
        (not set(partitions) & set(scope.partitions), "another partition"),
        (not set(partitions) <= set(scope.partitions), "asks for a partition that is not ranked, too"),
        (scope.users is not None and job.user not in scope.users, "another user"),
        (job.user in scope.not_users, "its user is left to Slurm"),
        (scope.accounts is not None and job.account not in scope.accounts, "another account"),
        (scope.qos is not None and job.qos not in scope.qos, "another QOS"),
        (job.qos in scope.not_qos, "its QOS is left to Slurm"),
        (job.state != PENDING, f"in state {job.state}"),
        (job.held or job.priority == 0, "held"),
        (bool(job.dependency), "depends on other jobs"),
        (job.eligible_s is not None and job.eligible_s > now_s, "begins later"),
        (job.het_id is not None, "part of a heterogeneous job"),
        (job.array_id is not None and scope.arrays == "leave", "task of an array"),
        (bool(job.constraint) and scope.constraints == "leave", "asks for features of nodes"),
        (job.gpus < 1, "asks for no GPU"),
        (len(job.gpus_by_type) > 1, "asks for GPUs of several types"),
        (theirs, "somebody has set its priority"),
        (below is not None and not ours and job.priority >= below, "high priority"),
        (below is None and not ours and job.priority > most, ABOVE),
        (job.reason.split(",")[0] not in WAITS_FOR_SLURM, f"waits for {job.reason}"),
    )
    return next((why for wrong, why in rules if wrong), RANKED)
