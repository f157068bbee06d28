"""Comparisons in words, by known answers."""

import math

import pandas as pd
import pytest

from rltune.evaluation.compare import BASE, STRONG
from rltune.report.answer import answer, gain, tally


@pytest.mark.parametrize(
    ("metric", "ends", "windows", "expected"),
    [
        ("wait", (0.2, 0.1, 0.3), 40, "20.0 % less than FIFO (10.0 to 30.0 %: better)"),
        ("wait", (-0.2, -0.3, 0.1), 40, "20.0 % more than FIFO (−10.0 to 30.0 %: undecided)"),
        ("utilisation", (-0.2, -0.3, -0.1), 40, "20.0 % lower than FIFO (10.0 to 30.0 %: worse)"),
        ("wait", (0.2, 0.1, 0.3), 4, "20.0 % less than FIFO (10.0 to 30.0 %: too few to say)"),
        ("wait", (0.2, math.nan, math.nan), 40, "20.0 % less than FIFO (too few to say)"),
        ("wait", (math.nan,) * 3, 40, "not comparable with FIFO"),
    ],
)
def test_a_gain_says_how_much_how_sure_and_what_that_shows(metric, ends, windows, expected):
    found = dict(zip(("improvement", "low", "high"), ends, strict=True)) | {"windows": windows}
    assert gain(metric, found, "FIFO").replace("\u00a0", " ") == expected


@pytest.mark.parametrize(
    ("low", "high", "so"),
    [
        (-0.2, -0.1, "a simple rule does better"),
        (-0.2, 0.1, "whether a simple rule does as well is undecided"),
        (0.1, 0.2, "no simple rule does as well"),
    ],
)
def test_the_answer_is_of_the_first_metric_at_the_length_with_the_most_windows(low, high, so):
    about = {"policy": "saf", "backfill": "easy", "improvement": (low + high) / 2, "low": low, "high": high}
    rows = [
        {**about, "against": against, "metric": metric, "sequence_jobs": n, "windows": windows}
        for metric in ("bsld", "wait")
        for n, windows in ((256, 40), (1024, 10))
        for against in (BASE, STRONG)
    ]
    said = answer(pd.DataFrame(rows))
    assert said.startswith("Mean bounded slowdown is ") and said.count("SAF + EASY") == 2
    assert said.endswith(f"so {so} (40 windows of 256 jobs, 95 % intervals).")
    idle = pd.DataFrame(rows).assign(improvement=math.nan, low=math.nan, high=math.nan)
    assert answer(idle).startswith("There is no mean bounded slowdown to compare (")


def test_a_rule_under_which_nobody_waits_does_as_well():
    about = {"policy": "saf", "backfill": "easy", "metric": "wait", "sequence_jobs": 256, "windows": 40}
    base = {**about, "against": BASE, "improvement": 0.9, "low": 0.8, "high": 0.95}
    said = answer(pd.DataFrame([base, {**about, "against": STRONG, **dict.fromkeys(("improvement", "low", "high"))}]))
    assert "and not comparable with that under SAF + EASY, the best rule" in said
    assert "so a simple rule does as well or better (" in said


def test_a_tally_counts_what_comparisons_show():
    ends = [(0.2, 0.1, 0.3), (0.2, 0.1, 0.3), (0.0, -0.1, 0.1), (math.nan,) * 3]
    rows = pd.DataFrame(ends, columns=["less", "low", "high"]).assign(windows=40)
    assert tally(rows, ("less", "low", "high")) == "better in 2, undecided in 1 of 3 comparisons"
    assert tally(rows.assign(windows=2).head(1), ("less", "low", "high")) == "too few to say in 1 of 1 comparison"
    for no, columns in ((rows.tail(1), ("less", "low", "high")), (rows, ("over", "over_low", "over_high"))):
        assert tally(no, columns) == "not compared in this run"
