"""What a sequence is worth to an agent: the gap to the base policy on the same jobs (paper §3.2)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.config.metric import parse_metric

METRIC_COLUMN = {"wait": "wait_s", "jct": "jct_s", "bsld": "bsld", "utilisation": "utilisation"}
"""Column of the sequence table that each metric is; utilisation is that over the makespan."""
METRIC_SIGN = {"wait": 1.0, "jct": 1.0, "bsld": 1.0, "utilisation": -1.0}
"""−1 where more is better: the metric times its sign is to be minimised."""
REWARD_FLOOR = {"wait": 1.0, "jct": 1.0, "bsld": 1.0, "utilisation": 1e-3}
"""Smallest denominator of the reward, in the metric's unit."""


def reward(base: np.ndarray, agent: np.ndarray, floor: float) -> np.ndarray:
    """Normalised gap (base − agent) / max(|base|, |agent|, floor) of a metric to be minimised."""
    return (base - agent) / np.maximum(np.maximum(np.abs(base), np.abs(agent)), floor)


def rewards(metric: str, base: pd.DataFrame, agent: pd.DataFrame) -> np.ndarray:
    """Reward [S] of each sequence, from tables of the same sequences (rltune.simulator.metrics.sequence_table).

    A mix's is the sum of its parts' rewards by their weights. Raises ConfigError for a metric that does not exist.
    """
    total = np.zeros(len(base))
    for part, weight in parse_metric(metric).items():
        column, sign = METRIC_COLUMN[part], METRIC_SIGN[part]
        total += weight * reward(sign * base[column].to_numpy(), sign * agent[column].to_numpy(), REWARD_FLOOR[part])
    return total


def scores(metric: str, base: pd.DataFrame, table: pd.DataFrame) -> np.ndarray:
    """The metric [S] of each sequence, to be minimised: utilisation with its sign reversed.

    The parts of a mix have no unit in common, so its score is the reward against ``base``, the same sequences under the
    base policy, with its sign reversed; the base policy's own is 0. Raises as :func:`rewards` does.
    """
    if metric not in METRIC_COLUMN:
        return -rewards(metric, base, table)
    return METRIC_SIGN[metric] * table[METRIC_COLUMN[metric]].to_numpy()
