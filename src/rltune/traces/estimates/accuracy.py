"""How near estimates of the run time come to it."""

import numpy as np
import pandas as pd

FACTOR = 2.0
"""An estimate between half and twice the run time counts as near."""


def accuracy(estimate_s: np.ndarray, run_s: np.ndarray) -> dict[str, float]:
    """Accuracy of estimates [J] of run times [J], both in s and above 0.

    ``median_abs_log``: median of |ln(estimate / run time)|, 0 for perfect estimates, ln 2 ≈ 0.69 when half of them are
    off by a factor of two; ``spearman``: rank correlation, 1 when they order the jobs rightly, which is all that a
    shortest-first order needs (NaN where either is the same for all); ``within_2``: share between half and twice the
    run time; ``median_ratio``: median of estimate / run time, below 1 where they are mostly too short.
    """
    log_ratio = np.log(estimate_s / run_s)
    estimate_rank, run_rank = pd.Series(estimate_s).rank(), pd.Series(run_s).rank()
    return {
        "median_abs_log": float(np.median(np.abs(log_ratio))),
        "spearman": float(estimate_rank.corr(run_rank)),
        "within_2": float(np.mean(np.abs(log_ratio) <= np.log(FACTOR) * (1 + 1e-12))),
        "median_ratio": float(np.exp(np.median(log_ratio))),
    }
