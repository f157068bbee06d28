"""F1 of Carastan-Santos and de Camargo (SC '17), a fitted order; paper Table 5."""

from math import log10

from numba import njit


@njit(cache=True, inline="always")
def score(submit_s, estimate_s, gpus, wait_s):
    """``log10(rt) · n + 870 · log10(st)``, st in seconds since the trace's t0, at least 1."""
    return log10(max(estimate_s, 1.0)) * gpus + 870.0 * log10(max(submit_s, 1.0))
