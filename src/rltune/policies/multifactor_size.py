"""Slurm's multifactor priority (rltune.policies.multifactor) with its own job-size factor as job attribute."""

from rltune.policies.multifactor import MAX_AGE_S, WEIGHT
from rltune.policies.policy import Policy


def score(job):
    """The priority with the job's share of its pool's GPUs as job attribute, negative: lower first."""
    age, attribute = min(job.wait_s / MAX_AGE_S, 1.0), min(job.gpu_share, 1.0)
    return -WEIGHT * (age + job.fair_share + attribute + job.partition + job.qos)


POLICY = Policy(
    "multifactor_size",
    "Slurm multifactor (size)",
    score,
    "−1000 · (min(w / 7 d, 1) + f + min(g, 1) + p + q)",
    "Slurm’s plugin with its own job-size factor",
    rank=8,
    dynamic=True,
    fair=True,
)
