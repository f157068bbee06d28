"""UNICEP of Tang et al. (CLUSTER '09), written UNICEF there; paper Table 5."""

from math import log2

from numba import njit


@njit(cache=True, inline="always")
def score(job):
    """``−wt / (log2(n + 1) · rt)``: long waits of small, short jobs first.

    The paper prints ``log2(n)``, which is 0 for the many jobs of one GPU.
    """
    return -job.wait_s / (log2(job.gpus + 1.0) * job.estimate_s)
