"""Smallest area first: by estimated run time × GPUs, a strong baseline the paper does not have."""

from rltune.policies.policy import Policy


def score(job):
    """Fewer GPU-seconds first."""
    return job.estimate_s * job.gpus


POLICY = Policy("saf", "SAF", score, "r · n", "smallest area first", rank=2)
