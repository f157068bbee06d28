"""First in, first out (FCFS in paper Table 5): by submit time."""

from numba import njit


@njit(cache=True, inline="always")
def score(job):
    """``st``: earlier submissions first."""
    return job.submit_s
