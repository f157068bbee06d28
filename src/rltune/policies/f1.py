"""F1 of Carastan-Santos and de Camargo (SC '17), a fitted order; paper Table 5."""

from math import log10

from numba import njit


@njit(cache=True, inline="always")
def score(job):
    """``log10(rt) · n + 870 · log10(st)``, st in seconds since the trace's t0, at least 1."""
    return log10(max(job.estimate_s, 1.0)) * job.gpus + 870.0 * log10(max(job.submit_s, 1.0))
