"""The reward of a sequence, and the scores that are minimised."""

import numpy as np
import pandas as pd
import pytest

from rltune.environment.reward import reward, rewards, scores
from rltune.errors import DataError


def test_reward_is_the_gap_relative_to_the_larger():
    got = reward(np.array([10.0, 4.0, 0.0, 0.4]), np.array([5.0, 8.0, 0.0, 0.0]), 1.0)
    assert got == pytest.approx([0.5, -0.5, 0.0, 0.4])


BASE = {"wait_s": [10, 4, 0.4], "jct_s": [30, 8, 0.4], "bsld": [2, 1, 4], "utilisation_span": [0, 0.8, np.nan]}
AGENT = {"wait_s": [5, 8, 0], "jct_s": [15, 16, 0], "bsld": [1, 2, 4], "utilisation_span": [5e-4, 0.6, np.nan]}
LESS = [0.5, -0.5, 0.4]
"""Half as much, twice as much, less by 0.4 of the floor, 1 s."""
MORE_USE = [0.5, -0.25, 0.5]
"""More by half of the floor, 0.001; a quarter less; where the span is not known, that of the makespan."""


@pytest.mark.parametrize(
    ("metric", "score", "expected"),
    [
        ("wait", [5, 8, 0], LESS),
        ("jct", [15, 16, 0], LESS),
        ("bsld", [1, 2, 4], [0.5, -0.5, 0]),
        ("utilisation", [-5e-4, -0.6, -0.4], MORE_USE),
        ("0.8*wait+0.2*utilisation", [-0.5, 0.45, -0.42], [0.5, -0.45, 0.42]),
    ],
)
def test_metrics_are_minimised_and_rewarded(metric, score, expected):
    base, agent = pd.DataFrame(BASE | {"utilisation": 0.2}), pd.DataFrame(AGENT | {"utilisation": 0.4})
    assert rewards(metric, base, agent) == pytest.approx(expected)
    assert scores(metric, base, agent) == pytest.approx(score)


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_a_metric_without_a_number_for_a_sequence_is_named(odd):
    table = pd.DataFrame(BASE | {"utilisation": 0.2, "bsld": [1.0, odd, 2.0]})
    for of in (rewards, scores):
        with pytest.raises(DataError, match="metric bsld: no finite number for 1 of 3 sequences"):
            of("bsld", table, table)
