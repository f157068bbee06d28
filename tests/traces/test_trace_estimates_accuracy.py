"""Accuracy of estimates on numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from rltune.traces.estimates.accuracy import accuracy

RUN_S = np.array([1.0, 10.0, 100.0, 1000.0, 50.0])


def test_perfect_estimates() -> None:
    assert accuracy(RUN_S, RUN_S) == {
        "median_abs_log": 0,
        "spearman": pytest.approx(1),
        "within_2": 1,
        "median_ratio": 1,
    }


def test_known_answer() -> None:
    found = accuracy(RUN_S * [2, 0.5, 4, 0.1, 1], RUN_S)
    assert found["within_2"] == 0.6
    assert found["median_abs_log"] == pytest.approx(np.log(2))
    assert found["median_ratio"] == pytest.approx(1)


def test_the_order_alone_decides_the_rank_correlation() -> None:
    rng = np.random.default_rng(2)
    run, noise = rng.lognormal(5, 2, 400).round(), rng.lognormal(0, 1, 400)
    assert accuracy(run * noise, run)["spearman"] == pytest.approx(spearmanr(run * noise, run)[0])
    assert accuracy(1 / RUN_S, RUN_S)["spearman"] == pytest.approx(-1)
    assert np.isnan(accuracy(np.full(5, 3.0), RUN_S)["spearman"])


def test_mistakes() -> None:
    for estimate, run in ((RUN_S[:2], RUN_S), (RUN_S[:0], RUN_S[:0])):
        with pytest.raises(ValueError, match="expected as many"):
            accuracy(estimate, run)
