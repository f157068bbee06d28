"""How near estimates of the run time come to it."""

from __future__ import annotations

import numpy as np

FACTOR = 2.0
"""An estimate between half and twice the run time counts as near."""


def accuracy(estimate_s: np.ndarray, run_s: np.ndarray) -> dict[str, float]:
    """Accuracy of estimates [J] of run times [J], both in s and above 0.

    ``median_abs_log``: median of |ln(estimate / run time)|, 0 for perfect estimates, ln 2 ≈ 0.69 when half of them are
    off by a factor of two; ``spearman``: rank correlation, 1 when they order the jobs rightly, which is all that a
    shortest-first order needs (NaN where either is the same for all); ``within_2``: share between half and twice the
    run time; ``median_ratio``: median of estimate / run time, below 1 where they are mostly too short.
    """
    from scipy.stats import rankdata

    log_ratio = np.log(estimate_s / run_s)
    ranks = np.stack([rankdata(estimate_s), rankdata(run_s)])
    constant = (ranks == ranks[:, :1]).all(axis=1).any()
    return {
        "median_abs_log": float(np.median(np.abs(log_ratio))),
        "spearman": float("nan") if constant else float(np.corrcoef(ranks)[0, 1]),
        "within_2": float(np.mean(np.abs(log_ratio) <= np.log(FACTOR) * (1 + 1e-12))),
        "median_ratio": float(np.exp(np.median(log_ratio))),
    }
