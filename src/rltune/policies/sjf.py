"""Shortest job first (paper Table 5): by estimated run time."""

from numba import njit


@njit(cache=True, inline="always")
def score(submit_s, estimate_s, gpus, wait_s):
    """``rt``: shorter estimates first."""
    return estimate_s
