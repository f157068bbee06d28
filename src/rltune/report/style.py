"""One look for every figure: fixed colours that colour-blind readers tell apart, sizes that survive print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from rltune.policies import TITLES
from rltune.report.format import show, three_digits

# Okabe & Ito's palette, without its yellow and black (too light and too heavy on paper)
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"
INK, MUTED, GRID, PAPER = "#22282f", "#5b6570", "#d9dee3", "#ffffff"
"""The page swaps these four for its own in dark mode; nothing else in a figure may use them."""

SCHEDULER = {"rltune": BLUE, "base": ORANGE, "base_best_fit": SKY, "baseline": VERMILION, "paper": PURPLE}
POLICY = {"fifo": BLUE, "sjf": ORANGE, "saf": PURPLE, "f1": SKY, "wfp3": GREEN}
TRACES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
PAPER_TRACE = {"Philly": BLUE, "Helios": VERMILION, "Alibaba": GREEN}
MARKERS = ("o", "s", "^", "D", "v", "P")

POLICY_TITLE = dict(TITLES)
"""A custom policy goes by its name."""

WIDTH_IN = 7.2
"""Width of every figure, inches: the text width of a printed page."""

LETTER_IN = 0.075
"""Width of a letter of a tick's name, about."""

RC = {
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "xtick.major.width": 0.8,
    "ytick.major.width": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the project's style; what was set before comes back afterwards."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever a notebook has set must not change the bytes
        matplotlib.rcParams.update(RC)
        yield


def trace_colours(traces: dict[str, str]) -> dict[str, str]:
    """Colour of each trace: name → paper's name (or "") → colour; the paper's three keep theirs in every figure."""
    free = [c for c in TRACES if c not in {PAPER_TRACE.get(p) for p in traces.values()}]
    chosen: dict[str, str] = {}
    for name, paper in traces.items():
        taken = set(chosen.values())
        own = PAPER_TRACE.get(paper)
        chosen[name] = own if own and own not in taken else next((c for c in free if c not in taken), MUTED)
    return chosen


def scheduler_title(policy: str, backfill: str = "none") -> str:
    """`SAF + EASY`, `FIFO`, `F1 + greedy`: a heuristic's name in tables and figures."""
    name = POLICY_TITLE.get(policy, policy)
    return name + {"none": "", "easy": " + EASY", "greedy": " + greedy"}.get(backfill, f" + {backfill}")


def name_ticks(axes: Axes, names: Iterable[str], upright: bool, size: float | None = None) -> None:
    """Name the places 0, 1, … of the x axis; what stands behind a comma goes on a line of its own."""
    lines = [name.replace(", ", "\n") for name in names]
    axes.set_xticks(range(len(lines)), lines, rotation=90 if upright else 0, fontsize=size)


def upright_in(names: Iterable[str], each_in: float) -> float:
    """Inches that names take which have to stand upright, as there are `each_in` inches for each; 0: they fit."""
    needed = LETTER_IN * max(len(line) for name in names for line in name.split(", "))
    return needed if needed > each_in else 0.0


def rows_only(axes: Axes) -> None:
    """Grid lines across only: categories need none."""
    axes.grid(axis="x", visible=False)
    axes.tick_params(axis="x", length=0)


def percent_ticks(value: float, _: object = None) -> str:
    """A tick of a share: `25 %`."""
    return show(round(value, 6), "percent").replace(".0", "")


PERCENT, COUNT = FuncFormatter(percent_ticks), FuncFormatter(lambda value, _: f"{value:,.0f}")
"""Formatters of axes: fractions as percentages, numbers with their thousands parted."""


def hide_rest(axes: Any, used: int) -> None:
    """Hide the panels of a grid behind those in use; the lowest of each column keeps its ticks."""
    across = axes.shape[1]
    for i in range(used, axes.size):
        axes.flat[i].set_visible(False)
        axes.flat[i - across].tick_params(labelbottom=True)


def rows_of_dots(axis: Axes, rows: int) -> None:
    """An axis with a named row for each dot, the first on top, without lines across."""
    axis.set_ylim(rows - 0.4, -0.6)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)


def dot(axis: Axes, y: float, value: float, low: float, high: float, colour: str) -> None:
    """A value with its interval, where there is one."""
    if pd.notna(low):
        axis.plot([low, high], [y, y], color=colour, linewidth=2.2, solid_capstyle="butt")
    axis.plot([value], [y], marker="o", color=colour, markersize=5.5, zorder=5)


def marks(axis: Axes, x: Any, y: Any, marker: str, colour: str, size: float = 5.5, **more: Any) -> None:
    """Points without a line."""
    axis.plot(x, y, linestyle="", marker=marker, color=colour, markersize=size, **more)


def symlog_ticks(axis: Any, powers: Iterable[float]) -> None:
    """Ticks of a logarithmic axis (`axes.xaxis`, `axes.yaxis`) at these values alone, written out."""
    axis.set_major_locator(FixedLocator(list(powers)))
    axis.set_minor_locator(FixedLocator([]))
    axis.set_major_formatter(FuncFormatter(lambda v, _: "0" if v == 0 else three_digits(v).split(".")[0]))


def label(axis: Axes, text: str, at: Any, offset: tuple[float, float], size: float = 8, **more: Any) -> None:
    """Text next to a point, ``offset`` in points from it."""
    axis.annotate(text, at, xytext=offset, textcoords="offset points", fontsize=size, **more)


def legend_above(figure: Figure, axis: Axes, columns: int) -> None:
    """The legend of one panel above all of them."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns)
