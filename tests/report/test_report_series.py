"""Intervals as they are drawn."""

import numpy as np
import pandas as pd

from rltune.report import style
from rltune.report.figures.series import INTERVAL, LEFT_MOST, dots, lines, with_interval


def test_a_dot_has_its_interval_and_one_beyond_the_edge_is_an_arrow():
    rows = pd.DataFrame({"value": [0.5, -1.7, 0.1], "low": [0.4, -2.5, np.nan], "high": [0.9, -0.4, np.nan]})
    with style.styled():
        _, (axis,) = style.panels([""], 1, 2.0)
        dots(axis, rows, ("value", "low", "high"), [style.BLUE, style.ORANGE, style.GREEN])
    points, ends = {}, {}
    for line in axis.lines[:-1]:  # the last is that of no difference
        x, y = line.get_xdata(), line.get_ydata()
        if line.get_marker() == "None":
            ends[y[0]] = tuple(x)
        else:
            points |= {row: (value, line.get_marker()) for value, row in zip(x, y)}
    assert points == {0: (0.5, "o"), 1: (LEFT_MOST, "<"), 2: (0.1, "o")}, "not the middle of the interval"
    assert ends[0] == (0.4, 0.9) and ends[1] == (LEFT_MOST, -0.4) and np.isnan(ends[2]).all()


def test_a_line_goes_through_the_values_and_its_band_to_the_ends():
    rows = pd.DataFrame({"x": [0, 1], "y": [1.0, 3.0], "low": [0.5, 2.0], "high": [1.2, 5.0], "who": "a"})
    with style.styled():
        _, (axis,) = style.panels([""], 1, 2.0)
        lines(axis, with_interval(rows, "y", "low", "high"), "x", "y", "who", {"a": style.BLUE}, sort=False, **INTERVAL)
    assert axis.lines[0].get_ydata().tolist() == [1.0, 3.0]
    band = axis.collections[0].get_paths()[0].vertices
    assert {tuple(v) for v in band.tolist()} >= {(0.0, 0.5), (0.0, 1.2), (1.0, 2.0), (1.0, 5.0)}
