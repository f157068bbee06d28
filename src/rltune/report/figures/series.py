"""Lines, points and intervals of several series: each value of a column has its colour, and a marker or dashes of its own."""

from collections.abc import Container, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from rltune.report import style

LEFT_MOST = -1.0
"""Improvements below −100 % are arrows at this edge; the table has their size."""


def with_interval(rows: pd.DataFrame, value: str, low: str, high: str) -> pd.DataFrame:
    """Each row thrice, with the value, then the ends of its interval in the column ``value``: what INTERVAL draws."""
    return pd.concat([rows.assign(**{value: rows[column]}) for column in (value, low, high)], ignore_index=True)


INTERVAL: dict[str, Any] = {
    "estimator": lambda three: three.iloc[0],
    "errorbar": lambda three: (three.min(), three.max()) if len(three) > 1 else (float("nan"),) * 2,
}
"""How seaborn draws such rows, a line of them with ``sort=False``. A value without an interval has none."""


def dots(
    axis: Axes, rows: pd.DataFrame, columns: Sequence[str], colours: Sequence[str], y: Sequence[int] | None = None
) -> None:
    """Improvements with their intervals (``columns``: value, low, high), a dot a row, the first on top, or at ``y``."""
    clipped = rows[list(columns)].clip(lower=LEFT_MOST).set_axis(["x", "low", "high"], axis=1)
    clipped = clipped.assign(
        y=range(len(rows)) if y is None else y, colour=colours, marker=np.where(clipped["x"] > LEFT_MOST, "o", "<")
    )
    look = {"linestyle": "none", "markersize": 5.5, "err_kws": {"linewidth": 2.2}, "native_scale": True, "orient": "h"}
    for (colour, marker), some in clipped.groupby(["colour", "marker"], sort=False):
        each = {"color": colour, "marker": marker, **look, **INTERVAL}
        sns.pointplot(with_interval(some, "x", "low", "high"), x="x", y="y", ax=axis, **each)
    axis.axvline(0, color=style.INK, linewidth=0.9)
    axis.set(xlabel="", ylabel="")
    axis.xaxis.set_major_locator(MaxNLocator(4))
    axis.xaxis.set_major_formatter(style.PERCENT)


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
    sns.lineplot(rows, x=x, y=y, ax=axis, **{**look, **more})
    axis.set(xlabel="", ylabel="")


def points(
    axis: Axes, rows: pd.DataFrame, x: str, y: str, by: str, colours: Mapping[str, str], apart: float, **more: Any
) -> None:
    """A point for each category ``x`` and value of the column ``by``, those of a category so far ``apart``."""
    look = {"hue": by, "hue_order": list(colours), "palette": dict(colours), "dodge": apart * (len(colours) - 1)}
    look |= {"markers": list(islice(cycle(style.MARKERS), len(colours))), "markersize": 5, "linestyle": "none"}
    sns.pointplot(rows, x=x, y=y, errorbar=None, ax=axis, **{**look, **more})
    style.rows_only(axis)
