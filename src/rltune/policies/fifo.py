"""First in, first out (FCFS in paper Table 5): by submit time."""

from numba import njit


@njit(cache=True, inline="always")
def score(submit_s, estimate_s, gpus, wait_s):
    """``st``: earlier submissions first."""
    return submit_s
