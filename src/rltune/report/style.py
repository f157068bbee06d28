"""One look for every figure: fixed colours that colour-blind readers tell apart, sizes that survive print."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter

from rltune.policies import TITLES
from rltune.report.format import show

# Okabe & Ito's palette, without its yellow and black (too light and too heavy on paper)
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"
INK, MUTED, GRID, PAPER = "#22282f", "#5b6570", "#d9dee3", "#ffffff"
"""The page replaces these four in dark mode; nothing else in a figure may use them."""

SCHEDULER = {"rltune": BLUE, "base": ORANGE, "baseline": VERMILION}
TRACES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
PAPER_TRACE = {"Philly": BLUE, "Helios": VERMILION, "Alibaba": GREEN}
MARKERS = ("o", "s", "^", "D", "v", "P")

WIDTH_IN = 7.2
"""Width of every figure, inches: the text width of a printed page."""

LETTER_IN = 0.075
"""Width of a letter of a tick's name, about."""

RC = {
    **dict.fromkeys(("font.size", "axes.labelsize", "figure.labelsize"), 9),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 8.5),
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("axes.grid", "axes.axisbelow", "figure.constrained_layout.use"), True),
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": MUTED,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.6,
    "figure.dpi": 110,
}
"""What differs from matplotlib's own."""


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the project's style; the settings are restored afterwards."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a notebook's settings must not change the bytes
        matplotlib.rcParams.update(RC)
        yield


def trace_colours(traces: dict[str, str]) -> dict[str, str]:
    """Colour of each trace: name → paper's name (or "") → colour; the paper's three keep theirs in every figure."""
    free = [c for c in TRACES if c not in {PAPER_TRACE.get(p) for p in traces.values()}]
    chosen: dict[str, str] = {}
    for name, paper in traces.items():
        candidates = [PAPER_TRACE.get(paper), *free]
        chosen[name] = next((c for c in candidates if c and c not in chosen.values()), MUTED)
    return chosen


def policy_title(policy: str) -> str:
    """A policy's title; a custom policy's name."""
    return TITLES.get(policy, policy)


def scheduler_title(policy: str, backfill: str) -> str:
    """`SAF + EASY`, `FIFO`, `F1 + greedy`: a heuristic's name in tables and figures."""
    return policy_title(policy) + {"none": "", "easy": " + EASY", "greedy": " + greedy"}.get(backfill, f" + {backfill}")


def title_of(scheduler: Mapping[str, Any] | pd.Series) -> str:
    """`scheduler_title` of a row, or a filter of rows, with policy and backfill."""
    return scheduler_title(scheduler["policy"], scheduler["backfill"])


def panels(
    titles: Sequence[str], most_across: int, each_in: float, above_in: float = 0.5, **share: Any
) -> tuple[Figure, Sequence[Axes]]:
    """A figure with a panel for each title, row by row, as :meth:`Figure.subplots` with ``share``, and its panels.

    ``each_in``: height of a row of panels, inches; ``above_in``: of what stands above them all.
    """
    across = min(most_across, len(titles))
    down = -(-len(titles) // across)
    figure = Figure(figsize=(WIDTH_IN, above_in + each_in * down))
    axes = figure.subplots(down, across, squeeze=False, **share).ravel()
    for axis, title in zip(axes, titles):
        axis.set_title(
            "\n".join(fill(line, 66 // across, break_on_hyphens=False) for line in title.split("\n")), parse_math=False
        )
    for axis in axes[len(titles) :]:
        axis.remove()
    for axis in axes[max(0, len(titles) - across) : len(titles)]:
        axis.tick_params(labelbottom=True)
    return figure, axes[: len(titles)]


def handle(name: str, colour: str, marker: str = "", line: Any = "none", **look: Any) -> Line2D:
    """A legend's handle of a line or a marker."""
    return Line2D([], [], color=colour, marker=marker, linestyle=line, markersize=5, label=name, **look)


def legend(figure: Figure, handles: Sequence[Any], columns: int = 6) -> None:
    """A legend above all panels."""
    made = figure.legend(handles=handles, loc="outside upper center", ncols=min(columns, len(handles)))
    for text in made.get_texts():
        text.set_parse_math(False)


def legend_of(axis: Axes, columns: int = 6) -> None:
    """Replace a panel's legend by one above all panels."""
    legend(axis.figure, axis.get_legend_handles_labels()[0], columns)
    if inside := axis.get_legend():
        inside.remove()


def upright_in(names: Iterable[str], each_in: float) -> float:
    """Height of names that have to be upright because each has only `each_in` inches of width; 0 where they fit."""
    needed = LETTER_IN * max(len(line) for name in names for line in name.split(", "))
    return needed if needed > each_in else 0.0


def rows_only(axis: Axes) -> None:
    """Grid lines across only: categories need none."""
    axis.grid(axis="x", visible=False)
    axis.tick_params(axis="x", length=0)


def name_rows(axis: Axes, names: Sequence[str]) -> None:
    """A named row for each mark, the first on top, without lines across."""
    axis.set_yticks(range(len(names)), names, parse_math=False)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)


PERCENT = FuncFormatter(lambda value, _: show(round(value, 6), "percent").replace(".0", ""))
COUNT = FuncFormatter(lambda value, _: f"{value:,.0f}")
PLAIN = FuncFormatter(lambda value, _: f"{round(value, 9):,.10g}")
"""Formatters of axes: fractions as percentages, numbers with their thousands parted, numbers with the digits they need."""

LINEAR_BELOW_S = 10.0
"""Axes of waits are logarithmic above this and linear below, since many jobs do not wait at all."""


def decades(most: float) -> list[float]:
    """Ticks of such an axis."""
    return [0, *(10.0**k for k in range(1, 9) if 10.0**k <= most)]


def marks(axis: Axes, x: Any, y: Any, marker: str, colour: str, size: float = 5.5, **more: Any) -> None:
    """Points without a line."""
    axis.plot(x, y, linestyle="", marker=marker, color=colour, markersize=size, **more)


def fixed_ticks(axis: Any, values: Iterable[float], names: Mapping[float, str] | None = None) -> None:
    """Ticks of an axis (`axes.xaxis`, `axes.yaxis`) at these values alone, written out or by their names."""
    axis.set_major_locator(FixedLocator(list(values)))
    axis.set_minor_locator(FixedLocator([]))
    axis.set_major_formatter(FuncFormatter(lambda v, _: names.get(round(v), "") if names else f"{v:,.10g}"))


def label(axis: Axes, text: str, at: Any, offset: tuple[float, float], size: float = 8, **more: Any) -> None:
    """Text next to a point, ``offset`` in points from it."""
    axis.annotate(text, at, xytext=offset, textcoords="offset points", fontsize=size, **more)
