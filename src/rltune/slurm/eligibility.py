"""Which waiting jobs are ranked, and why the others are left to Slurm."""

from rltune.config.slurm import MOST_PRIORITY, EligibleConfig
from rltune.slurm.records import PENDING, SlurmJob

RANKED = ""
ABOVE = "its priority is above the band"
OVERRIDDEN = "somebody has set its priority"
WAITS_FOR_SLURM = frozenset({"", "None", "Priority", "Resources", "NodesBusy", "ReqNodeNotAvail", "Licenses"})
"""Reasons of jobs that wait for their turn. With any other (a limit, a begin time, a reservation, a failed launch) no
priority could start the job."""


def reason_to_leave(
    job: SlurmJob,
    rules: EligibleConfig,
    now_s: float,
    owned: bool = False,
    overridden: bool = False,
    most: int = MOST_PRIORITY,
) -> str:
    """Why a waiting job is left to Slurm; RANKED where it is not.

    ``now_s``: s since 1970. ``owned``: its priority is the controller's, and no reason to leave it. ``overridden``:
    somebody else has set it after the controller had. ``most``: highest priority of a ranked job where the rules name
    none, the band's.
    """
    partitions, below = set(job.partition.split(",")), rules.priority_below
    reasons = (
        (not partitions & set(rules.partitions), "another partition"),
        (not partitions <= set(rules.partitions), "also requests a partition that is not ranked"),
        (rules.users is not None and job.user not in rules.users, "another user"),
        (rules.accounts is not None and job.account not in rules.accounts, "another account"),
        (not set(rules.exclude_qos).isdisjoint(job.qos.split(",")), "its QOS is left to Slurm"),
        (job.state != PENDING, f"in state {job.state}"),
        (job.held or job.priority == 0, "held"),
        (bool(job.dependency), "depends on other jobs"),
        (job.eligible_s is not None and job.eligible_s > now_s, "begins later"),
        (job.het_id is not None, "part of a heterogeneous job"),
        (job.array_id is not None and "arrays" not in rules.also, "task of an array"),
        (bool(job.constraint) and "constraints" not in rules.also, "requests features of nodes"),
        (job.gpus < 1, "requests no GPU"),
        (len(job.gpus_by_type) > 1, "requests GPUs of several types"),
        (overridden, OVERRIDDEN),
        (below is not None and not owned and job.priority >= below, "high priority"),
        (below is None and not owned and job.priority > most, ABOVE),
        (job.reason.split(",")[0] not in WAITS_FOR_SLURM, f"waits for {job.reason}"),
    )
    return next((why for applies, why in reasons if applies), RANKED)
