"""What a sequence is worth to an agent: the gap to the base policy on the same jobs (paper §3.2)."""

from __future__ import annotations

import numpy as np

METRIC_COLUMN = {"wait": "wait_s"}
"""Column of the sequence table that each metric is the mean of."""
REWARD_FLOOR = {"wait": 1.0}
"""Smallest denominator of the reward, in the metric's unit."""


def reward(base: np.ndarray, agent: np.ndarray, floor: float) -> np.ndarray:
    """Normalised gap (base − agent) / max(|base|, |agent|, floor) of a metric to be minimised."""
    return (base - agent) / np.maximum(np.maximum(np.abs(base), np.abs(agent)), floor)
