"""Training curves: how far agents are from their base policies, epoch by epoch; panels of lines, and their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rltune.metrics import METRICS
from rltune.report import style
from rltune.report.common import where

SMALLEST = {"utilisation": 1e-3}
"""Smaller values count as this in the normalised difference, as in the reward; of the other metrics it is 1."""
METRIC_SHORT = {name: metric.short for name, metric in METRICS.items()}
"""Metrics as titles of panels have them."""
HOW_TO_READ = (
    "(base − RLTune) over the larger of the two means, so above the line RLTune is better. Faint: each epoch; strong: "
    "mean of the last five. Markers: validation windows, the agent acting greedily; what is kept is the best of these, "
    "or what it started from where none is better. Dashed: a random order on the same validation windows; an agent at "
    "its height has learned nothing."
)
"""Of a caption: what is drawn of each agent."""
DASHED = (0, (2, 2))


def normalised(base: pd.Series, agent: pd.Series, metric: str = "wait") -> pd.Series:
    """(base − agent) / the larger of the two in size, at least a second of wait."""
    return (base - agent) / np.maximum(np.maximum(base.abs(), agent.abs()), SMALLEST.get(metric, 1.0))


def curves(cells: pd.DataFrame, histories: pd.DataFrame) -> pd.DataFrame:
    """One row a cell and epoch of training: `training`, `validation` and `random` (`normalised`, no unit), `difference`,
    that of training undivided, in the metric's unit, and the ``panel`` and ``line`` that the cell has."""
    frames = []
    for _, cell in cells.iterrows():
        history, metric = where(histories, cell=cell["cell"]).sort_values("epoch"), cell["metric"]
        columns = {
            **{k: cell[k] for k in ("trace_title", "policy", "metric", "seed", "cell", "data")},
            "epoch": history["epoch"],
            "training": normalised(history["base"], history["rl"], metric),
            "validation": normalised(history["validation_base"], history["validation_rl"], metric),
            "random": normalised(history["validation_base"], history["validation_random"], metric),
            "difference": history["base"] - history["rl"],
            **{k: cell[k] for k in ("panel", "line")},
        }
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


@style.styled()
def draw(frame: pd.DataFrame, panels: Mapping[tuple[int, int], str], colours: Mapping[str, str]) -> Figure:
    """Panels by their place, (row, column), each with the lines of the cells that it has.

    ``frame``: of :func:`curves`, with ``panel``, a title in ``panels``, and ``line``, what a cell is drawn as, one of
    ``colours``: cells that differ by seed are lines of one name.
    """
    down, across = (1 + max(place[axis] for place in panels) for axis in (0, 1))
    figure = Figure(figsize=(style.WIDTH_IN, 0.5 + 2.05 * down))
    axes = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    markers = dict(zip(colours, cycle(style.MARKERS)))
    for place, title in panels.items():
        axis = axes[place]
        axis.axhline(0, color=style.INK, linewidth=0.9)
        axis.set_title(fill(title, 52), fontsize=None if len(title) < 40 else 8)
        for (line, _), rows in where(frame, panel=title).groupby(["line", "cell"], sort=False):
            colour = colours[str(line)]
            axis.plot(rows["epoch"], rows["training"], color=colour, linewidth=0.8, alpha=0.4)
            axis.plot(rows["epoch"], rows["training"].rolling(5, min_periods=1).mean(), color=colour)
            seen = rows.dropna(subset=["validation"])
            axis.plot(seen["epoch"], seen["random"], color=colour, linewidth=1.0, linestyle=DASHED)
            style.marks(axis, seen["epoch"], seen["validation"], markers[str(line)], colour, 4.5, mfc="none", mew=1.2)
    for place in set(np.ndindex(*axes.shape)) - set(panels):
        axes[place].set_visible(False)
        if place[0]:  # the panel above is the last of its column
            axes[place[0] - 1, place[1]].tick_params(labelbottom=True)
    axes[0, 0].xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.supxlabel("Epoch", fontsize=9)
    figure.supylabel("gap to base (relative)", fontsize=9)
    handles = [style.handle(name, colour, markers[name], "-", mfc="none") for name, colour in colours.items()]
    handles += [
        style.handle("training", style.MUTED, line="-"),
        style.handle("validation", style.MUTED, "o", mfc="none"),
    ]
    handles.append(style.handle("random order", style.MUTED, line=DASHED, linewidth=1.0))
    style.legend(figure, handles, 6 if len(handles) < 7 else 4)
    return figure
