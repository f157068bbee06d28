"""All comparisons at a glance: improvement over the base policy and over the strongest heuristic, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from rltune.metrics import METRICS
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import best_measured, distinct_names
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.style import (
    INK,
    MUTED,
    PERCENT,
    PURPLE,
    WIDTH_IN,
    dot,
    rows_of_dots,
    scheduler_title,
    styled,
    trace_colours,
)

SIDES = (
    ("Over its base policy", "improvement", "low", "high"),
    ("Over the strongest heuristic", "over_strong", "over_strong_low", "over_strong_high"),
)
SHORT = {name: metric.short.lower() for name, metric in METRICS.items()}
LEFT_MOST = -1.0
"""Improvements below −100 % are drawn at this edge as an arrow; the table has their size."""


def improvements(comparisons: Sequence[pd.DataFrame], paper: PaperResults) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Dots with intervals, a row a comparison at the length with the most windows; the paper's figure as a cross.

    ``comparisons``: the frames of `tables.comparison`, one a study, whose best measured rows are this figure's frame,
    with `label`, what a row is called.
    """
    frame = pd.concat([best_measured(frame) for frame in comparisons], ignore_index=True)
    for column in (c for _, *columns in SIDES for c in columns):
        if column not in frame:
            frame[column] = float("nan")
    frame["label"] = _labels(frame)
    figure = _draw(frame, {t: paper.trace(t) for t in frame["trace_title"]})
    shown = [f"{r['label']} {show(r['improvement'], 'percent')}" for _, r in frame.iterrows()]
    only = set(frame["measure"]) == {"wait"}
    artefact = describe(
        "improvements",
        frame,
        paper_ref=paper.ref("fig12") if only else "",
        only=only,
        sizes=" or ".join(show(n, "int") for n in sorted(set(frame["sequence_jobs"]))),
        cut=(frame[[s[1] for s in SIDES]] < LEFT_MOST).any().any(),
        dots="; ".join(shown),
    )
    return artefact, frame, figure


def _labels(frame: pd.DataFrame) -> list[str]:
    """What rows are called: trace, base policy and its backfill rule, the metric where there are several, and the
    settings in which rows differ that would be called the same."""
    several = frame["measure"].nunique() > 1
    return distinct_names(
        frame,
        [
            f"{r['trace_title']} · {scheduler_title(r['policy'], r['backfill'])}"
            + (f" · {SHORT[r['measure']]}" if several else "")
            + (" (mix)" if r["metric"] != r["measure"] else "")
            for _, r in frame.iterrows()
        ],
    )


@styled()
def _draw(frame: pd.DataFrame, traces: dict[str, str]) -> Figure:
    colours = trace_colours(traces)
    figure = Figure(figsize=(WIDTH_IN, 0.9 + 0.24 * len(frame)))
    axes = figure.subplots(1, 2, sharey=True)
    drawn = _extent(frame)
    for axis, (title, value, low, high) in zip(axes, SIDES):
        axis.axvline(0, color=INK, linewidth=0.9)
        axis.set_title(title)
        for y, (_, row) in enumerate(frame.iterrows()):
            _draw_row(axis, row, y, colours[row["trace_title"]], value, low, high)
            if value == "improvement" and pd.notna(row["paper"]):
                axis.plot([row["paper"]], [y], marker="x", color=PURPLE, markersize=6.5, markeredgewidth=1.8, zorder=6)
        axis.set_xlim(*drawn)
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.xaxis.set_major_formatter(PERCENT)
    axes[0].set_yticks(range(len(frame)), frame["label"], fontsize=7 if frame["label"].str.len().max() > 36 else None)
    for axis in axes:
        rows_of_dots(axis, len(frame))
    only = set(frame["measure"]) == {"wait"}
    figure.supxlabel("Less mean wait (negative: more)" if only else "Better (negative: worse)", fontsize=9)
    if frame["paper"].notna().any():
        figure.legend(
            handles=[
                Line2D([], [], color=MUTED, marker="o", markersize=4.5, label="ours, with interval"),
                Line2D([], [], color=PURPLE, marker="x", linestyle="none", markeredgewidth=1.8, label="the paper"),
            ],
            loc="outside upper center",
            ncols=2,
        )
    return figure


def _extent(frame: pd.DataFrame) -> tuple[float, float]:
    values = frame[[c for _, *columns in SIDES for c in columns] + ["paper"]].astype(float)
    least, most = float(values.min().min()), float(values.max().max())
    return max(min(least - 0.05, -0.1), LEFT_MOST - 0.05), max(most + 0.05, 0.1)


def _draw_row(axis: Any, row: pd.Series, y: int, colour: str, value: str, low: str, high: str) -> None:
    if pd.isna(row[value]):
        return
    if row[value] < LEFT_MOST:
        axis.plot([LEFT_MOST], [y], marker="<", color=colour, markersize=6)
        return
    dot(axis, y, row[value], row[low], row[high], colour)
