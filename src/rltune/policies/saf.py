"""Smallest area first: by estimated run time × GPUs, a strong baseline the paper does not have."""

from numba import njit


@njit(cache=True, inline="always")
def score(submit_s, estimate_s, gpus, wait_s):
    """``rt · n``: fewer GPU-seconds first."""
    return estimate_s * gpus
