"""The reward of a sequence: the gap between agent and base policy on the same jobs (paper §3.2)."""

import numpy as np
import pandas as pd

from rltune.config.metric import parse_metric
from rltune.errors import DataError
from rltune.metrics import METRICS

METRIC_COLUMN = {name: metric.column for name, metric in METRICS.items()}
"""Column of the sequence table that each metric is; utilisation is that over the makespan."""
METRIC_SIGN = {name: metric.sign for name, metric in METRICS.items()}
SPAN = METRICS["utilisation"].trained_column
"""Column of utilisation over the submission span: what an agent is trained for; the makespan is one long job's doing."""


def reward(base: np.ndarray, agent: np.ndarray, floor: float) -> np.ndarray:
    """Normalised gap (base − agent) / max(|base|, |agent|, floor) of a metric to be minimised."""
    return (base - agent) / np.maximum(np.maximum(np.abs(base), np.abs(agent)), floor)


def trained_for(part: str, table: pd.DataFrame) -> np.ndarray:
    """What an agent gets its reward for [S]: the metric's column; of utilisation that over the submission span, and over
    the makespan only where all jobs of a sequence are submitted at once.

    Raises DataError where a metric has no finite number for a sequence: a reward without one would spoil the weights.
    """
    values, other = table[METRICS[part].column].to_numpy(float), METRICS[part].trained_column
    if other:
        values = np.where(np.isnan(table[other]), values, table[other])
    if missing := int((~np.isfinite(values)).sum()):
        raise DataError(
            f"metric {part}: no finite number for {missing} of {len(values)} sequences, expected one for each"
        )
    return values


def rewards(metric: str, base: pd.DataFrame, agent: pd.DataFrame) -> np.ndarray:
    """Reward [S] of each sequence, from tables of the same sequences (rltune.simulator.metrics.sequence_table).

    A mix's is the sum of its parts' rewards by their weights. Raises ConfigError for a metric that does not exist.
    """
    total = np.zeros(len(base))
    for part, weight in parse_metric(metric).items():
        sign = METRIC_SIGN[part]
        total += weight * reward(sign * trained_for(part, base), sign * trained_for(part, agent), METRICS[part].floor)
    return total


def scores(metric: str, base: pd.DataFrame, table: pd.DataFrame) -> np.ndarray:
    """The metric [S] of each sequence, to be minimised: utilisation with its sign reversed.

    The parts of a mix have no unit in common, so its score is the reward against ``base``, the same sequences under the
    base policy, with its sign reversed; the base policy's own is 0. Raises as :func:`rewards` does.
    """
    if metric not in METRIC_COLUMN:
        return -rewards(metric, base, table)
    return METRIC_SIGN[metric] * trained_for(metric, table)
