"""One look for every figure: fixed colours that colour-blind readers tell apart, sizes that survive print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import matplotlib
from matplotlib.axes import Axes

from rltune.policies import TITLES

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
