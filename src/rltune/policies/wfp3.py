"""WFP3 of Tang et al. (CLUSTER '09); paper Table 5."""

from numba import njit


@njit(cache=True, inline="always")
def score(job):
    """``−(wt / rt)³ · n``: long waits relative to the run time first."""
    ratio = job.wait_s / job.estimate_s
    return -ratio * ratio * ratio * job.gpus
