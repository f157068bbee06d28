"""Moving-block bootstrap of a ratio of sums over windows in time."""

from __future__ import annotations

import numpy as np


def block_length(windows: int) -> int:
    """Windows in a block: the cube root of their number, the usual order for a mean (Künsch 1989), at least one."""
    return max(1, round(windows ** (1 / 3)))


def bootstrap_improvement(
    ours: np.ndarray, theirs: np.ndarray, resamples: int, confidence: float, seed: int
) -> tuple[float, float]:
    """Percentile interval of 1 − Σ ours / Σ theirs over paired, consecutive windows.

    Blocks of consecutive windows are drawn with replacement (wrapping round at the end), both sides together,
    so what one window tells about its neighbours is kept. With fewer than two windows there is no interval:
    (nan, nan).
    """
    n = len(ours)
    if n < 2:
        return float("nan"), float("nan")
    length = block_length(n)
    blocks = -(-n // length)
    begins = np.random.default_rng(seed).integers(0, n, size=(resamples, blocks))
    picked = ((begins[:, :, None] + np.arange(length)) % n).reshape(resamples, -1)[:, :n]
    total = theirs[picked].sum(axis=1)
    ratio = np.divide(ours[picked].sum(axis=1), total, out=np.full(resamples, np.nan), where=total > 0)
    tail = (1 - confidence) / 2
    if np.isnan(ratio).all():
        return float("nan"), float("nan")
    low, high = np.nanquantile(1 - ratio, [tail, 1 - tail])
    return float(low), float(high)
