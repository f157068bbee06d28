"""Smallest area first: by estimated run time × GPUs, a strong baseline the paper does not have."""

from numba import njit


@njit(cache=True, inline="always")
def score(job):
    """``rt · n``: fewer GPU-seconds first."""
    return job.estimate_s * job.gpus
