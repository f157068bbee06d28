"""The verdict rule and number formats, by known answers."""

import math

import pytest

from rltune.evaluation.intervals import FEWEST
from rltune.report.format import show, show_interval
from rltune.report.verdict import TOO_FEW, direction, verdict

NAN = math.nan


@pytest.mark.parametrize(
    ("paper", "low", "high", "expected"),
    [
        (0.875, 0.80, 0.90, "matches"),
        (0.875, 0.10, 0.20, "holds"),
        (0.875, 0.90, 0.95, "holds"),
        (0.875, -0.10, 0.20, "does not hold"),
        (0.875, -0.30, -0.20, "does not hold"),
        (0.875, -0.10, 0.90, "undecided"),
        (-0.013, -0.05, 0.03, "undecided"),
        (-0.013, -0.05, -0.01, "matches"),
        (-0.013, -0.50, -0.20, "holds"),
        (-0.013, 0.10, 0.20, "does not hold"),
        (0.0, -0.10, 0.10, "undecided"),
        (0.0, 0.10, 0.20, "does not hold"),
        (NAN, 0.10, 0.20, ""),
        (0.5, NAN, NAN, ""),
    ],
)
def test_verdict(paper, low, high, expected):
    assert verdict(paper, low, high, FEWEST) == expected
    assert verdict(paper, low, high, FEWEST - 1) == (TOO_FEW if expected else "")


def test_direction():
    ends = ((0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1), (0.0, 0.1), (NAN, 0.1))
    assert [direction(*x, FEWEST) for x in ends] == ["better", "worse", "open", "open", TOO_FEW]
    assert direction(0.1, 0.2, FEWEST - 1) == TOO_FEW


@pytest.mark.parametrize(
    ("value", "format", "expected"),
    [
        (8725.4, "seconds", "8,725"),
        (3.14159, "seconds", "3.14"),
        (0.022333, "number", "0.0223"),
        (99.96, "number", "100"),
        (0.9999, "number", "1.00"),
        (1.2345e-7, "number", "1.23e-07"),
        (0, "number", "0"),
        (-0.1234, "percent", "−12.3\u00a0%"),
        (None, "int", "–"),
        (NAN, "percent", "–"),
        ("", "text", "–"),
        ("left-hand", "text", "left-hand"),
        (1e6, "int", "1,000,000"),
        (0.7, "printed", "0.7"),
        (3, "printed", "3"),
    ],
)
def test_show(value, format, expected):
    assert show(value, format) == expected


def test_show_interval():
    assert show_interval(-0.05, 0.123, "percent") == "−5.0 to 12.3\u00a0%"
    assert show_interval(NAN, 0.1, "percent") == ""
