"""The median of the last run times known of the most similar jobs of which any is known."""

import numpy as np

from rltune.traces.estimates.history import Request, all_known, rolling_median


def estimate(request: Request) -> tuple[np.ndarray, np.ndarray]:
    """Rolling medians [J], s, and the group each is from."""
    return rolling_median(all_known(request.jobs))
