"""Moving-block bootstrap of a ratio of sums over windows in time."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm, t


FEWEST = 8
"""Fewer windows than this have an interval but no verdict: in simulation it misses the truth too often."""


def block_length(windows: int) -> int:
    """Windows in a block: the cube root of their number, the usual order for a mean (Künsch 1989), rounded down."""
    return max(1, int(windows ** (1 / 3) + 1e-9))


def bootstrap_improvement(
    ours: np.ndarray, theirs: np.ndarray, resamples: int, confidence: float, seed: int
) -> tuple[float, float]:
    """Interval of 1 − Σ ours / Σ theirs over paired, consecutive windows.

    Blocks of consecutive windows are drawn with replacement (wrapping round at the end), both sides together,
    so what one window tells about its neighbours is kept. The percentile interval of few blocks is too narrow
    (it knows neither that the spread is estimated nor that a resample never leaves the sample); its distances
    from the estimate are widened by Student's t over the normal quantile and √(b / (b − 1)), b the number of
    blocks. It does not cover what another training seed would change. With fewer than two windows there is no
    interval: (nan, nan).
    """
    n = len(ours)
    total = float(theirs.sum())
    if n < 2 or total <= 0:
        return float("nan"), float("nan")
    length = block_length(n)
    blocks = -(-n // length)
    begins = np.random.default_rng(seed).integers(0, n, size=(resamples, blocks))
    picked = ((begins[:, :, None] + np.arange(length)) % n).reshape(resamples, -1)[:, :n]
    drawn = theirs[picked].sum(axis=1)
    ratio = np.divide(ours[picked].sum(axis=1), drawn, out=np.full(resamples, np.nan), where=drawn > 0)
    tail = (1 - confidence) / 2
    estimate = 1 - float(ours.sum()) / total
    widen = t.ppf(1 - tail, blocks - 1) / norm.ppf(1 - tail) * np.sqrt(blocks / (blocks - 1))
    low, high = estimate + widen * (np.nanquantile(1 - ratio, [tail, 1 - tail]) - estimate)
    return float(low), float(min(high, 1.0))
