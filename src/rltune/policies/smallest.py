"""Smallest first: by GPUs, needs no estimate at all; a baseline the paper does not have."""

from rltune.policies.policy import Policy


def score(job):
    """Fewer GPUs first."""
    return float(job.gpus)


POLICY = Policy("smallest", "Smallest first", score, "n", "fewest GPUs first; needs no estimate", rank=3)
