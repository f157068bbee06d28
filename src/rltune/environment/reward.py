"""What a sequence is worth to an agent: the gap to the base policy on the same jobs (paper §3.2)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.config.metric import parse_metric

METRIC_COLUMN = {"wait": "wait_s", "jct": "jct_s", "bsld": "bsld", "utilisation": "utilisation"}
"""Column of the sequence table that each metric of the paper is; utilisation is that over the makespan."""
SPAN = "utilisation_span"
"""Column of utilisation over the submission span: what an agent is trained for; the makespan is one long job's doing."""
METRIC_SIGN = {"wait": 1.0, "jct": 1.0, "bsld": 1.0, "utilisation": -1.0}
"""−1 where more is better: the metric times its sign is to be minimised."""
REWARD_FLOOR = {"wait": 1.0, "jct": 1.0, "bsld": 1.0, "utilisation": 1e-3}
"""Smallest denominator of the reward, in the metric's unit."""


def reward(base: np.ndarray, agent: np.ndarray, floor: float) -> np.ndarray:
    """Normalised gap (base − agent) / max(|base|, |agent|, floor) of a metric to be minimised."""
    return (base - agent) / np.maximum(np.maximum(np.abs(base), np.abs(agent)), floor)


def trained_for(part: str, table: pd.DataFrame) -> np.ndarray:
    """What an agent gets its reward for [S]: the metric's column; of utilisation that over the submission span, and over
    the makespan only where all jobs of a sequence are submitted at once."""
    values = table[METRIC_COLUMN[part]].to_numpy()
    if part != "utilisation":
        return values
    span = table[SPAN].to_numpy()
    return np.where(np.isnan(span), values, span)


def rewards(metric: str, base: pd.DataFrame, agent: pd.DataFrame) -> np.ndarray:
    """Reward [S] of each sequence, from tables of the same sequences (rltune.simulator.metrics.sequence_table).

    A mix's is the sum of its parts' rewards by their weights. Raises ConfigError for a metric that does not exist.
    """
    total = np.zeros(len(base))
    for part, weight in parse_metric(metric).items():
        sign = METRIC_SIGN[part]
        total += weight * reward(sign * trained_for(part, base), sign * trained_for(part, agent), REWARD_FLOOR[part])
    return total


def scores(metric: str, base: pd.DataFrame, table: pd.DataFrame) -> np.ndarray:
    """The metric [S] of each sequence, to be minimised: utilisation with its sign reversed.

    The parts of a mix have no unit in common, so its score is the reward against ``base``, the same sequences under the
    base policy, with its sign reversed; the base policy's own is 0. Raises as :func:`rewards` does.
    """
    if metric not in METRIC_COLUMN:
        return -rewards(metric, base, table)
    return METRIC_SIGN[metric] * trained_for(metric, table)
