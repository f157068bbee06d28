"""Intervals and comparisons: known answers, coverage, pairing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rltune.evaluation.compare import compare, picked_baseline, strong_baseline
from rltune.evaluation.intervals import block_length, bootstrap_improvement


def _windows(**schedulers: list[float]) -> pd.DataFrame:
    rows = []
    for name, waits in schedulers.items():
        role, policy, blocking = name.split("_")
        for i, wait in enumerate(waits):
            rows.append({"role": role, "policy": policy, "blocking": blocking, "placement": "best_fit",
                         "sequence_jobs": 64, "window": i, "first_job": 100 + 64 * i, "wait_s": wait})  # fmt: skip
    return pd.DataFrame(rows)


def test_constant_ratio_has_an_interval_of_no_width():
    theirs = np.random.default_rng(0).exponential(size=20)
    assert bootstrap_improvement(0.25 * theirs, theirs, 500, 0.95, 1) == pytest.approx((0.75, 0.75))


def test_the_same_seed_gives_the_same_interval():
    rng = np.random.default_rng(1)
    x, y = rng.exponential(size=(2, 15))
    assert bootstrap_improvement(x, y, 500, 0.9, 7) == bootstrap_improvement(x, y, 500, 0.9, 7)
    assert bootstrap_improvement(x, y, 500, 0.9, 7) != bootstrap_improvement(x, y, 500, 0.9, 8)


def test_coverage_is_near_the_level():
    rng = np.random.default_rng(2)
    covered = 0
    for i in range(300):
        theirs = rng.gamma(4.0, 1.0, size=40)
        ours = theirs * rng.gamma(16.0, 0.5 / 16, size=40)  # half as long on average
        low, high = bootstrap_improvement(ours, theirs, 400, 0.9, i)
        covered += low <= 0.5 <= high
    assert 0.80 <= covered / 300 <= 0.95


def test_blocks_widen_the_interval_when_neighbours_are_alike():
    rng = np.random.default_rng(3)
    slow = np.repeat(rng.normal(0, 0.3, size=16), 4)  # neighbours share their luck
    theirs = np.ones(64)
    low, high = bootstrap_improvement(0.5 + slow, theirs, 3000, 0.95, 1)
    shuffled = rng.permutation(0.5 + slow)
    low_iid, high_iid = bootstrap_improvement(shuffled, theirs, 3000, 0.95, 1)
    assert block_length(64) == 4
    assert high - low > 1.3 * (high_iid - low_iid)


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_windows_have_no_interval(n):
    assert np.isnan(bootstrap_improvement(np.ones(n), np.ones(n), 200, 0.95, 1)).all()


def test_compare_known_answer():
    windows = _windows(rltune_fifo_none=[1.0, 2.0, 3.0], base_fifo_none=[2.0, 4.0, 14.0])
    result = compare(windows, "wait", 64, {"role": "rltune"}, {"role": "base"}, 500, 0.95, 1)
    assert result.improvement == pytest.approx(1 - 6 / 20)
    assert (result.ours_mean, result.theirs_mean) == pytest.approx((2.0, 20 / 3))
    assert (result.ours_median, result.theirs_median) == (2.0, 4.0)
    assert result.worst_tenth_share == pytest.approx(14 / 20)
    assert result.low <= result.improvement <= result.high and result.windows == 3


def test_strong_baseline_is_the_best_mean():
    windows = _windows(baseline_sjf_none=[3.0, 1.0], baseline_saf_easy=[1.0, 2.5], baseline_f1_fits=[1.0, 2.0])
    assert strong_baseline(windows, "wait", 64) == {
        "role": "baseline", "policy": "f1", "blocking": "fits", "placement": "best_fit",
    }  # fmt: skip


def test_the_picked_baseline_is_the_best_on_validation_judged_on_test():
    windows = _windows(baseline_sjf_none=[3.0, 1.0], baseline_saf_easy=[9.0, 9.0])
    assert picked_baseline(windows, "wait", 64) is None
    held = _windows(baseline_sjf_none=[5.0], baseline_saf_easy=[4.0]).assign(role="baseline_validation")
    picked = picked_baseline(pd.concat([windows, held]), "wait", 64)
    assert picked == {"role": "baseline", "policy": "saf", "blocking": "easy", "placement": "best_fit"}


def test_what_cannot_be_compared_is_refused():
    windows = _windows(rltune_fifo_none=[1.0, 2.0], base_fifo_none=[2.0, 4.0], baseline_saf_none=[1.0, 1.0],
                       baseline_sjf_none=[1.0, 1.0])  # fmt: skip
    with pytest.raises(ValueError, match="more than one"):
        compare(windows, "wait", 64, {"role": "rltune"}, {"role": "baseline"})
    with pytest.raises(ValueError, match="no windows"):
        compare(windows, "wait", 256, {"role": "rltune"}, {"role": "base"})
    windows.loc[windows["role"] == "base", "first_job"] += 1
    with pytest.raises(ValueError, match="different windows"):
        compare(windows, "wait", 64, {"role": "rltune"}, {"role": "base"})
