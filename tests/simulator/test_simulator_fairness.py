"""Indices of fairness: known answers, and what must hold of any values."""

import numpy as np
import pytest

from rltune.simulator.fairness import gini, jain_index


def test_known_answers():
    assert jain_index(np.array([1, 3, 3])) == pytest.approx(7**2 / (3 * (1 + 9 + 9)))
    # differences of two: 40, 40, 80, each twice among nine pairs; half their mean over the mean
    assert gini(np.array([0, 40, 80])) == pytest.approx((2 * 160 / 9) / 2 / 40)


@pytest.mark.parametrize("seed", range(2))
def test_what_holds_of_any_values(seed):
    rng = np.random.default_rng(seed)
    values = rng.lognormal(0, 1, 50)
    n = len(values)
    assert 1 / n <= jain_index(values) <= 1 and 0 <= gini(values) < 1
    for f in (jain_index, gini):
        assert f(1000 * values) == pytest.approx(f(values))
        assert f(rng.permutation(values)) == pytest.approx(f(values))
    assert jain_index(values) == pytest.approx(1 / (1 + (values.std() / values.mean()) ** 2))
    assert gini(values) == pytest.approx(np.abs(values[:, None] - values).mean() / 2 / values.mean())
    assert (jain_index(np.zeros(3)), gini(np.zeros(3))) == (1, 0)
    assert jain_index(np.array([1e200, 1e200])) == pytest.approx(1)
