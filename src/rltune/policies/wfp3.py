"""WFP3 of Tang et al. (CLUSTER '09); paper Table 5."""

from numba import njit


@njit(cache=True, inline="always")
def score(submit_s, estimate_s, gpus, wait_s):
    """``−(wt / rt)³ · n``: long waits relative to the run time first."""
    ratio = wait_s / estimate_s
    return -ratio * ratio * ratio * gpus
