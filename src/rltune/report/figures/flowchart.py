"""Boxes and arrows: a small language for diagrams, and how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch
from matplotlib.path import Path

from rltune.report.style import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, WIDTH_IN, styled

KINDS = {
    "data": ("#eceff1", "#7b8794"),
    "simulator": ("#d9e9f5", BLUE),
    "learning": ("#fdeccd", ORANGE),
    "optimisation": ("#d2efe5", GREEN),
    "result": ("#f3e1ec", PURPLE),
}
"""Kind of a box → its tint and its edge. Tints stay light in dark mode, so text on them stays dark."""
ON_TINT = "#101418"
ACROSS = 100.0
"""Width of every diagram in its own units, 1/100 of the figure's width; heights are in the same units."""
UNIT_IN = WIDTH_IN / ACROSS
TITLE_PT, TEXT_PT, LABEL_PT = 8.5, 7.8, 7.6
LEGEND = 5.0
"""Height of the strip for the legend."""


@dataclass(frozen=True)
class Box:
    """A box with its upper left corner at (x, y), y downwards."""

    name: str
    title: str
    text: str
    kind: str
    x: float
    y: float
    width: float
    height: float

    def side(self, which: str) -> tuple[float, float]:
        """Middle of its top, bottom, left or right side."""
        dx, dy = {"top": (0.5, 0), "bottom": (0.5, 1), "left": (0, 0.5), "right": (1, 0.5)}[which]
        return self.x + dx * self.width, self.y + dy * self.height


@dataclass(frozen=True)
class Arrow:
    """From the side of one box to the side of another, with one right angle where they are not opposite."""

    tail: str
    head: str
    out: str = "bottom"
    into: str = "top"
    label: str = ""
    dashed: bool = False
    """Only now and then, or in training only: the diagram's caption says which."""


def frame_of(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> pd.DataFrame:
    """A row a box, then a row an arrow: all that is drawn. Raises ValueError for an arrow of a box that is not."""
    rows = [
        {
            "what": "box",
            "name": b.name,
            "title": b.title,
            "text": b.text.replace("\n", " "),
            "kind": b.kind,
            "x": b.x,
            "y": b.y,
            "width": b.width,
            "height": b.height,
        }
        for b in boxes
    ]
    rows += [
        {
            "what": "arrow",
            "name": f"{a.tail} → {a.head}",
            "text": a.label.replace("\n", " "),
            "kind": "dashed" if a.dashed else "plain",
            "path": " ".join(f"{x:g},{y:g}" for x, y in path(a, boxes)),
        }
        for a in arrows
    ]
    return pd.DataFrame(rows)


def path(arrow: Arrow, boxes: Sequence[Box]) -> list[tuple[float, float]]:
    """The corners of an arrow. Raises ValueError as `frame_of`."""
    named = {box.name: box for box in boxes}
    for end in (arrow.tail, arrow.head):
        if end not in named:
            raise ValueError(f"arrow {arrow.tail} → {arrow.head}: no box {end!r}; there are {', '.join(named)}")
    begin, end = named[arrow.tail].side(arrow.out), named[arrow.head].side(arrow.into)
    level = {"left", "right"}
    if (arrow.out in level) != (arrow.into in level):
        return [begin, (end[0], begin[1]) if arrow.out in level else (begin[0], end[1]), end]
    if arrow.out not in level and abs(begin[0] - end[0]) > 1e-9:  # down onto a wider or narrower box
        narrow = min((named[arrow.tail], named[arrow.head]), key=lambda b: b.width)
        x = narrow.side("top")[0]
        return [(x, begin[1]), (x, end[1])]
    return [begin, end]


def draw(boxes: Sequence[Box], arrows: Sequence[Arrow], kinds: dict[str, str]) -> Figure:
    """The diagram, as high as its boxes; ``kinds``: kind → what its colour stands for, in the legend's order."""
    high = max(box.y + box.height for box in boxes) + 1
    with styled():
        figure = Figure(figsize=(WIDTH_IN, (high + LEGEND) * UNIT_IN))
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set_xlim(0, ACROSS)
        axes.set_ylim(high, 0)
        for arrow in arrows:
            _arrow(axes, arrow, path(arrow, boxes))
        for box in boxes:
            _box(axes, box)
        handles = [Patch(facecolor=KINDS[k][0], edgecolor=KINDS[k][1], label=what) for k, what in kinds.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handlelength=1.4)
    return figure


def _box(axes: Axes, box: Box) -> None:
    tint, edge = KINDS[box.kind]
    axes.add_patch(
        FancyBboxPatch(
            (box.x, box.y),
            box.width,
            box.height,
            boxstyle="round,pad=0,rounding_size=1",
            facecolor=tint,
            edgecolor=edge,
            linewidth=1.1,
            zorder=3,
        )
    )
    line = 1.28 / (72 * UNIT_IN)  # units a point of text takes
    lines = len(box.text.splitlines())
    top = box.y + (box.height - line * (TITLE_PT + lines * TEXT_PT)) / 2
    middle = box.x + box.width / 2
    axes.text(
        middle,
        top + line * TITLE_PT / 2,
        box.title,
        fontsize=TITLE_PT,
        fontweight="bold",
        color=ON_TINT,
        ha="center",
        va="center",
        zorder=4,
    )
    for i, text in enumerate(box.text.splitlines()):
        axes.text(
            middle,
            top + line * (TITLE_PT + (i + 0.5) * TEXT_PT),
            text,
            fontsize=TEXT_PT,
            color=ON_TINT,
            ha="center",
            va="center",
            zorder=4,
        )


def _arrow(axes: Axes, arrow: Arrow, corners: list[tuple[float, float]]) -> None:
    axes.add_patch(
        FancyArrowPatch(
            path=Path(corners),
            arrowstyle="-|>",
            mutation_scale=9,
            linewidth=1.2,
            color=INK,
            linestyle=(0, (4, 2)) if arrow.dashed else "-",
            shrinkA=0,
            shrinkB=0,
            joinstyle="miter",
            zorder=2,
        )
    )
    if not arrow.label:
        return
    (x0, y0), (x1, y1) = max(zip(corners, corners[1:]), key=lambda s: abs(s[0][0] - s[1][0]) + abs(s[0][1] - s[1][1]))
    along = y0 == y1
    axes.text(
        (x0 + x1) / 2 + (0 if along else 0.9),
        (y0 + y1) / 2 - (0.5 if along else 0),
        arrow.label,
        fontsize=LABEL_PT,
        color=MUTED,
        ha="center" if along else "left",
        va="bottom" if along else "center",
        linespacing=1.1,
        zorder=4,
    )
