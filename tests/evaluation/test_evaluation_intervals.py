"""Intervals and comparisons: known answers, coverage, pairing."""

import numpy as np
import pandas as pd
import pytest

from rltune.evaluation.compare import BASE, PICKED, RANDOM, STRONG, against_all, compare, strong_baseline
from rltune.evaluation.intervals import Intervals, block_length, holm, improved

QUICK = Intervals(500)


def _windows(**schedulers: list[float]) -> pd.DataFrame:
    """Windows of 64 jobs of schedulers, named `role_policy_backfill`, with these waits."""
    frames = []
    for name, waits in schedulers.items():
        who, window = dict(zip(("role", "policy", "backfill"), name.split("_"))), np.arange(len(waits))
        frames.append(pd.DataFrame({"window": window, "first_job": 100 + 64 * window, "wait_s": waits}).assign(**who))
    return pd.concat(frames, ignore_index=True).assign(placement="best_fit", sequence_jobs=64)


def test_constant_ratio_has_an_interval_of_no_width():
    theirs = np.random.default_rng(0).exponential(size=20)
    assert improved(0.25 * theirs, theirs, 500)[1:3] == pytest.approx((0.75, 0.75))


def test_values_below_zero_or_infinite_have_no_interval_upside_down():
    assert improved(np.full(10, -1.0), np.full(10, 2.0), 200)[:3] == pytest.approx((1.5, 1.5, 1.5))
    for odd in (np.nan, np.inf):
        pair = (np.r_[odd, np.ones(9)], np.full(10, 2.0))
        assert np.isnan([improved(*pair, 200)[1:], improved(*pair[::-1], 200)[1:]]).all()


def test_blocks_widen_the_interval_when_neighbours_are_alike():
    rng = np.random.default_rng(3)
    slow = np.repeat(rng.normal(0, 0.3, size=16), 4)  # neighbours share their luck
    theirs = np.ones(64)
    low, high = improved(0.5 + slow, theirs, 3000)[1:3]
    shuffled = rng.permutation(0.5 + slow)
    low_iid, high_iid = improved(shuffled, theirs, 3000)[1:3]
    assert block_length(64) == 4
    assert high - low > 1.3 * (high_iid - low_iid)


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_windows_have_no_interval(n):
    assert np.isnan(improved(np.ones(n), np.ones(n), 200)[1:3]).all()


def test_windows_with_nothing_on_either_side_are_no_evidence():
    """Waits on one day of twelve: the other days would make any difference look certain."""
    theirs = np.zeros(12)
    theirs[5:6] = 100.0
    found = improved(0.7 * theirs, theirs, 500)
    assert found.gain == pytest.approx(0.3) and np.isnan([found.low, found.high, found.p]).all()
    jobs = np.where(theirs > 0, 4.0, 0.0)
    assert np.isnan(QUICK.longer(2 * theirs, theirs, jobs).low), "nor that a group waits longer that came on one day"
    theirs[:8] = 100.0
    assert improved(0.7 * theirs, theirs, 500)[1:3] == pytest.approx((0.3, 0.3)), "eight are enough"
    seeds = np.stack([theirs, np.zeros(12)])
    assert not np.isnan(improved(0.7 * seeds, seeds, 500).low), "and need not wait with every seed"


def _neighbours_alike(rng: np.random.Generator, n: int, rho: float) -> np.ndarray:
    """An AR(1) series [n] of unit variance."""
    series = np.empty(n)
    series[0] = rng.normal()
    for i in range(1, n):
        series[i] = rho * series[i - 1] + np.sqrt(1 - rho**2) * rng.normal()
    return series


@pytest.mark.parametrize(("rho", "factor"), [(0.0, 1.0), (0.3, 1.0), (0.0, 0.5)])
def test_coverage_is_near_the_level_even_if_neighbours_are_alike(rho, factor):
    rng, covered, called = np.random.default_rng(4), 0, 0
    for i in range(300):
        theirs = np.exp(0.5 * _neighbours_alike(rng, 60, rho))
        ours = factor * theirs * np.exp(0.3 * _neighbours_alike(rng, 60, rho) - 0.3**2 / 2)  # ``factor`` on average
        found = improved(ours, theirs, 300, 0.9, i)
        covered += found.low <= 1 - factor <= found.high
        called += found.p < 0.1
    assert 0.80 <= covered / 300 <= 0.95
    if factor == 1:
        assert called == 300 - covered, "a p-value below α is an interval that leaves zero out"


def test_p_value_is_the_level_at_which_the_interval_meets_zero():
    rng = np.random.default_rng(5)
    ours, theirs = rng.gamma(8.0, 0.11, size=30), rng.gamma(8.0, 0.125, size=30)
    p = improved(ours, theirs, 2000).p
    assert 0.001 < p < 0.9
    for level, out in ((1.05 * p, True), (0.95 * p, False)):
        found = improved(ours, theirs, 2000, 1 - level, 1)
        assert (found.low > 0 or found.high < 0) == out
    assert improved(0.2 * theirs, theirs, 2000).p == pytest.approx(1 / 2001), "as small as resamples can show"
    assert improved(theirs, theirs, 2000).p == 1


def test_seeds_that_differ_are_covered_only_when_they_are_a_level():
    rng = np.random.default_rng(6)
    covered = {"seeds": 0, "windows alone": 0}
    for i in range(300):
        theirs = np.tile(rng.gamma(4.0, 1.0, size=40), (4, 1))
        luck = rng.normal(0.5, 0.1, size=(4, 1))
        ours = theirs * luck * rng.gamma(16.0, 1 / 16, size=(4, 40))
        for name, pair in {"seeds": (ours, theirs), "windows alone": (ours.mean(axis=0), theirs[0])}.items():
            found = improved(*pair, 300, 0.9, i)
            covered[name] += found.low <= 0.5 <= found.high
    assert 0.82 <= covered["seeds"] / 300 <= 0.97
    assert covered["windows alone"] / 300 < 0.6


def test_seeds_that_learned_the_same_change_nothing():
    rng = np.random.default_rng(7)
    ours, theirs = rng.exponential(size=(2, 40))
    one = improved(ours, theirs, 4000)
    four = improved(np.tile(ours, (4, 1)), np.tile(theirs, (4, 1)), 4000)
    assert (four.low, four.high, four.p) == pytest.approx((one.low, one.high, one.p))
    with pytest.raises(ValueError, match="pairs"):
        improved(ours, theirs[:-1], 200)


def test_holm_worked_example():
    # sorted: 0.005 × 4, 0.01 × 3, 0.03 × 2, and 0.04 × 1, which may not fall below the one before
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.5]) == pytest.approx([1.0, 1.0])
    with_gaps = holm([np.nan, 0.02, np.nan, 0.04])
    assert np.isnan(with_gaps[[0, 2]]).all() and with_gaps[[1, 3]] == pytest.approx([0.04, 0.04])
    assert len(holm([])) == 0


def test_holm_keeps_the_share_of_families_with_a_false_alarm():
    rng = np.random.default_rng(8)
    families = rng.uniform(size=(2000, 10))
    assert np.mean([(holm(p) < 0.05).any() for p in families]) == pytest.approx(0.05, abs=0.015)
    assert np.mean([(p < 0.05).any() for p in families]) > 0.3


def test_compare_known_answer():
    windows = _windows(rltune_fifo_none=[1.0, 2.0, 3.0], base_fifo_none=[2.0, 4.0, 14.0])
    result = compare(windows, "wait", 64, {"role": "rltune"}, {"role": "base"}, QUICK)
    assert result.improvement == pytest.approx(1 - 6 / 20)
    assert (result.ours_mean, result.theirs_mean) == pytest.approx((2.0, 20 / 3))
    assert (result.ours_median, result.theirs_median) == (2.0, 4.0)
    assert result.worst_tenth_share == pytest.approx(14 / 20)
    assert result.low <= result.improvement <= result.high and result.windows == 3


def test_several_seeds_are_one_comparison():
    seeds = [
        _windows(rltune_fifo_none=ours, base_fifo_none=[2.0, 4.0, 14.0]) for ours in ([1.0, 2.0, 3.0], [2.0, 2.0, 10.0])
    ]
    result = compare(seeds, "wait", 64, {"role": "rltune"}, {"role": "base"}, QUICK)
    assert (result.seeds, result.windows) == (2, 3)
    assert result.improvement == pytest.approx(1 - 20 / 40)
    assert (result.seed_low, result.seed_high) == pytest.approx((1 - 14 / 20, 1 - 6 / 20))
    seeds[1].loc[seeds[1]["role"] == "base", "first_job"] += 1
    with pytest.raises(ValueError, match="different windows"):
        compare(seeds, "wait", 64, {"role": "rltune"}, {"role": "base"}, QUICK)


def test_of_utilisation_more_is_better():
    windows = _windows(rltune_fifo_none=[0.6] * 5, base_fifo_none=[0.5] * 5).rename(columns={"wait_s": "utilisation"})
    windows["utilisation_span"] = [0.9, 0.9, np.nan, 0.9, 0.9] + [0.6, np.nan, 0.6, 0.6, 0.6]
    which = {"role": "rltune"}, {"role": "base"}
    result = compare(windows, "utilisation", 64, *which, QUICK)
    assert (result.improvement, result.low, result.high) == pytest.approx((0.2, 0.2, 0.2))
    span = compare(windows, "utilisation_span", 64, *which, QUICK)
    assert (span.improvement, span.windows) == (pytest.approx(0.5), 3), "windows without a span are left out"


def test_strong_baseline_is_the_best_mean():
    windows = _windows(baseline_sjf_none=[3.0, 1.0], baseline_saf_easy=[1.0, 2.5], baseline_f1_greedy=[1.0, 2.0])
    best = {"role": "baseline", "policy": "f1", "backfill": "greedy", "placement": "best_fit"}
    assert strong_baseline(windows, "wait", 64) == best
    used = windows.rename(columns={"wait_s": "utilisation"})
    assert strong_baseline(used, "utilisation", 64) == best | {"policy": "sjf", "backfill": "none"}, "more is better"
    span = windows.rename(columns={"wait_s": "utilisation_span"})
    assert strong_baseline(span, "utilisation_span", 64) == best | {"policy": "sjf", "backfill": "none"}


def test_an_agent_is_compared_with_all_its_opponents():
    """Among them the baseline that was best on validation windows, which is not the best on the test windows."""
    rules = {"baseline_sjf_none": [3.0, 1.0], "baseline_saf_easy": [9.0, 9.0]}
    ours = {"rltune_fifo_none": [1.0, 3.0], "base_fifo_none": [4.0, 4.0], "random_fifo_none": [2.0, 3.0]}
    windows = _windows(**ours, **rules)
    validation = _windows(baseline_sjf_none=[5.0], baseline_saf_easy=[4.0]).assign(role="baseline_validation")
    gains = against_all(pd.concat([windows, validation]), ["wait"], QUICK)
    assert list(gains["against"]) == [BASE, RANDOM, STRONG, PICKED]
    assert list(gains["policy"] + " " + gains["backfill"]) == ["fifo none", "fifo none", "sjf none", "saf easy"]
    assert gains["improvement"].to_list() == pytest.approx([0.5, 0.2, 0.0, 1 - 4 / 18])
    assert PICKED not in set(against_all(windows, ["wait"], QUICK)["against"]), "no validation windows"


def test_what_cannot_be_compared_is_refused():
    baselines = {"baseline_saf_none": [1.0, 1.0], "baseline_sjf_none": [1.0, 1.0]}
    windows = _windows(rltune_fifo_none=[1.0, 2.0], base_fifo_none=[2.0, 4.0], **baselines)
    with pytest.raises(ValueError, match="more than one"):
        compare(windows, "wait", 64, {"role": "rltune"}, {"role": "baseline"}, QUICK)
    with pytest.raises(ValueError, match="no windows"):
        compare(windows, "wait", 256, {"role": "rltune"}, {"role": "base"}, QUICK)


def test_parts_are_drawn_within_themselves():
    """Two runs that differ from one another and not within: only blocks that reach across see a spread."""
    ours, theirs = np.repeat([1.0, 8.0], 8), np.full(16, 10.0)
    within = improved(ours, theirs, 300, 0.9, 1, parts=(8, 8))
    across = improved(ours, theirs, 300, 0.9, 1)
    assert within.low == within.high == pytest.approx(0.55) and across.low < 0.4 < 0.7 < across.high
    one = improved(ours, theirs, 300, 0.9, 1, parts=(16,))
    assert one == across, "all of it in one part is as without"
    assert np.isnan(improved(ours[:2], theirs[:2], 300, 0.9, 1, parts=(1, 1)).low), "one block each tells nothing"
    with pytest.raises(ValueError, match="parts of 15 windows, expected the 16"):
        improved(ours, theirs, 300, 0.9, 1, parts=(8, 7))
