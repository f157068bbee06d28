"""Shortest job first (paper Table 5): by estimated run time."""

from numba import njit


@njit(cache=True, inline="always")
def score(job):
    """``rt``: shorter estimates first."""
    return job.estimate_s
