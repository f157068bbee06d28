"""Smallest first: by GPUs, needs no estimate at all; a baseline the paper does not have."""

from numba import njit


@njit(cache=True, inline="always")
def score(job):
    """``n``: fewer GPUs first."""
    return float(job.gpus)
