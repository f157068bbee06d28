"""Lines and points of several series: each value of a column has its colour, and a marker or dashes of its own."""

from __future__ import annotations

from collections.abc import Container, Mapping
from itertools import cycle, islice
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from rltune.report import style


def lines(
    axis: Axes,
    rows: pd.DataFrame,
    x: str,
    y: str,
    by: str,
    colours: Mapping[str, str],
    marked: bool = False,
    dashed: Container[str] = (),
    **more: Any,
) -> None:
    """A line for each value of the column ``by``, through the rows as they are; dashed for the values in ``dashed``."""
    names = list(colours)
    markers = dict(zip(names, cycle(style.MARKERS))) if marked else False
    dashes = {name: (4, 2) if name in dashed else "" for name in names}
    look = {"hue": by, "hue_order": names, "palette": dict(colours), "style": by, "style_order": names}
    look |= {"markers": markers, "markeredgewidth": 0, "dashes": dashes, "estimator": None}
    sns.lineplot(rows, x=x, y=y, ax=axis, **look, **more)
    axis.set(xlabel="", ylabel="")


def points(
    axis: Axes, rows: pd.DataFrame, x: str, y: str, by: str, colours: Mapping[str, str], apart: float, **more: Any
) -> None:
    """A point for each category ``x`` and value of the column ``by``, those of a category so far ``apart``."""
    look = {"hue": by, "hue_order": list(colours), "palette": dict(colours), "dodge": apart * (len(colours) - 1)}
    look |= {"markers": list(islice(cycle(style.MARKERS), len(colours))), "markersize": 5, "linestyle": "none"}
    sns.pointplot(rows, x=x, y=y, errorbar=None, ax=axis, **{**look, **more})
    style.rows_only(axis)
