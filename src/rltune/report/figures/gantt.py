"""Like Figures 1 to 4: which job ran where and when, who waited, and when all was done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from rltune.report.format import show, three_digits
from rltune.report.style import BLUE, GREEN, GRID, MUTED, ORANGE, PAPER, PURPLE, SKY, VERMILION, WIDTH_IN, styled

GREY = "#98a2ad"
JOBS = (BLUE, ORANGE, SKY, GREEN, GREY)
"""Purple is left for waits and vermilion for the makespan. Beside these, five tell neighbours apart."""
BROWN, OLIVE = "#7a5c3e", "#c9c35a"
FEW = (*JOBS, BROWN, OLIVE)
"""So many jobs have a colour each, the same in every chart of the same jobs."""
WAIT_TINT = "#f0dbe6"
LIGHT, DARK = "#fefefe", "#101418"
"""Labels on bars: the bars keep their colours in dark mode, so these must not be inks that the page swaps."""
ON = {BLUE: LIGHT, ORANGE: DARK, SKY: DARK, GREEN: LIGHT, GREY: DARK, BROWN: LIGHT, OLIVE: DARK}

MAX_LANES = 30
"""With more waiting jobs than this, the strip below shows the length of the queue instead of a lane for each."""
UNITS = ((5 * 60.0, 1.0, "s"), (5 * 3600.0, 60.0, "min"), (float("inf"), 3600.0, "h"))
"""Spans up to the first number of seconds are given in units of the second."""
DOTTED = (0, (1, 1.2))
FONT, SMALLEST_FONT = 8.0, 4.5
GLYPH = 0.64
"""Width of a digit over its size, in DejaVu Sans."""


def gantt(
    bars: pd.DataFrame,
    node_gpus: Sequence[int],
    title: str = "",
    node_names: Sequence[str] | None = None,
    until_s: float | None = None,
    least_wait_s: float = 0.0,
) -> Figure:
    """Every node's GPUs as lanes, every job as a rectangle on them, its wait in a strip below.

    ``bars``: a row a job × node × run of neighbouring GPUs: job, node, gpu (the lowest of them), gpus, submit_s,
    start_s, end_s. ``node_gpus``: GPUs of every node. Time runs from the first submission; a job has its number on it
    where there is room. Makespan and total wait are those of all jobs in ``bars``, also when the drawing ends
    ``until_s`` seconds after the first submission: one long job makes all others narrow. A wait below ``least_wait_s``
    is the scheduler's own pace: nobody is said or drawn to have waited for it. Raises ValueError on no bars,
    bars beside the GPUs there are, node names that are not as many as the nodes, and an end that is not after 0.
    """
    sizes = np.asarray(node_gpus, np.int64)
    names = [f"node {m}" for m in range(len(sizes))] if node_names is None else list(node_names)
    _check(bars, sizes, names)
    begin = float(bars["submit_s"].min())
    makespan_s = float(bars["end_s"].max()) - begin
    shown_s = makespan_s if until_s is None else min(until_s, makespan_s)
    if not (shown_s > 0 or until_s is None):
        raise ValueError(f"until_s is {until_s}, expected more than 0")
    unit_s, unit = next((scale, name) for most, scale, name in UNITS if shown_s <= most)
    jobs = bars.drop_duplicates("job")
    wait_s = jobs["start_s"] - jobs["submit_s"]
    frame = bars.sort_values(["start_s", "job", "node", "gpu"], ignore_index=True)
    for column in ("submit", "start", "end"):
        frame[column] = ((frame[f"{column}_s"] - begin) / unit_s).clip(upper=shown_s / unit_s)
    subtitle = (
        f"makespan {three_digits(makespan_s / unit_s)} {unit}",
        f"total wait {three_digits(float(wait_s.sum()) / unit_s)} {unit}",
        f"{_count(len(jobs), 'job')}, {show(int(_waited(jobs, least_wait_s).sum()), 'int')} of them had to wait",
        f"{_count(int(sizes.sum()), 'GPU')} on {_count(len(sizes), 'node')}",
    )
    with styled():
        figure = _draw(
            frame, sizes, names, (shown_s / unit_s) or 1.0, unit, whole=shown_s == makespan_s, least_wait_s=least_wait_s
        )
        _head(figure.axes[0], title, " · ".join(subtitle))
    return figure


def _check(bars: pd.DataFrame, sizes: np.ndarray, names: list[str]) -> None:
    if bars.empty:
        raise ValueError("no bars to draw")
    if len(names) != len(sizes):
        raise ValueError(f"{len(names)} names for {len(sizes)} nodes")
    node = bars["node"].to_numpy(np.int64)
    there = (node >= 0) & (node < len(sizes))
    held = sizes[np.where(there, node, 0)] if len(sizes) else np.zeros(len(node), np.int64)
    beside = ~there | (bars["gpu"] < 0).to_numpy() | ((bars["gpu"] + bars["gpus"]).to_numpy() > held)
    if beside.any():
        job, m, gpu, gpus = (int(bars[c].to_numpy()[beside][0]) for c in ("job", "node", "gpu", "gpus"))
        raise ValueError(f"job {job}: node {m} has no GPUs {gpu} to {gpu + gpus - 1}")


def _draw(
    frame: pd.DataFrame, sizes: np.ndarray, names: list[str], span: float, unit: str, whole: bool, least_wait_s: float
) -> Figure:
    """The picture up to ``span`` units of time; ``whole`` when that is all of them."""
    waiting = frame.drop_duplicates("job")
    shown = (waiting["start"] > waiting["submit"]) & _waited(waiting, least_wait_s)
    waiting = waiting[shown].sort_values(["submit", "start", "job"])
    lanes = int(sizes.sum())
    tall = float(np.clip(0.2 * lanes, max(1.3, min(0.17 * len(sizes), 7.0)), 7.0))
    lane_by_lane = len(waiting) <= MAX_LANES
    strip = max(0.17 * len(waiting), 0.35) if lane_by_lane else 0.9
    heights = [tall, strip] if len(waiting) else [tall]
    figure = Figure(figsize=(WIDTH_IN, sum(heights) + 1.15))
    axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    right = 1.02 * span if whole else span
    _nodes(axes[0], sizes, names, tall * 72)
    beside = GLYPH * FONT * max(map(len, names)) + 20
    _jobs(axes[0], frame[frame["start"] < right], sizes, (WIDTH_IN * 72 - beside) / right, tall * 72 / lanes)
    handles: list[Any] = []
    if len(waiting):
        (_lanes if lane_by_lane else _queue)(axes[1], waiting)
        what = "waiting: from submission to start" if lane_by_lane else "jobs waiting"
        handles.append(Patch(facecolor=WAIT_TINT, edgecolor=PURPLE, hatch="////", linewidth=0.6, label=what))
    for axis in axes:
        if whole:
            axis.axvline(span, color=VERMILION, linewidth=1.4, linestyle=DOTTED, zorder=6)
        else:
            axis.plot([1.004], [0.5], marker=">", color=VERMILION, transform=axis.transAxes, clip_on=False)
        axis.set_xlim(0, right)
        axis.spines["left"].set_zorder(7)
    axes[-1].xaxis.set_major_locator(MaxNLocator(8))
    axes[-1].set_xlabel(f"Time since the first submission ({unit})")
    handles.append(
        Line2D(
            [],
            [],
            color=VERMILION,
            linewidth=1.4,
            linestyle=DOTTED if whole else "none",
            marker="" if whole else ">",
            label="makespan" if whole else "makespan: beyond the edge",
        )
    )
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _waited(jobs: pd.DataFrame, least_s: float) -> pd.Series:
    wait_s = jobs["start_s"] - jobs["submit_s"]
    return (wait_s > 0) & (wait_s >= least_s)


def _nodes(axis: Axes, sizes: np.ndarray, names: list[str], height: float) -> None:
    """Lanes, separators and names; ``height`` of the axes in points."""
    edges = np.append(0, np.cumsum(sizes))
    axis.set_ylim(edges[-1], 0)
    axis.grid(visible=False)
    lane = height / edges[-1]
    if lane >= 4:
        axis.hlines(
            np.setdiff1d(np.arange(edges[-1]), edges),
            0,
            1,
            transform=axis.get_yaxis_transform(),
            color=GRID,
            linewidth=0.5,
            zorder=0.5,
        )
    # over the bars, so that a node is seen to end
    thin = float(np.clip(0.04 * height / len(sizes), 0.15, 0.5))
    axis.hlines(edges[1:-1], 0, 1, transform=axis.get_yaxis_transform(), color=MUTED, linewidth=thin, zorder=4)
    size = float(np.clip(0.8 * height / len(sizes), 5.0, FONT))
    middle = (edges[:-1] + edges[1:]) / 2
    shown: list[int] = []  # nodes may differ in height: a name is skipped that would run into the last one written
    for m in range(len(sizes)):
        if not shown or (middle[m] - middle[shown[-1]]) * lane >= 1.15 * size - 1e-9:
            shown.append(m)
    axis.set_yticks(middle[shown], [names[m] for m in shown], fontsize=size)
    axis.tick_params(axis="y", length=0)


def _jobs(axis: Axes, frame: pd.DataFrame, sizes: np.ndarray, across: float, down: float) -> None:
    """Bars and their labels; a unit of time is ``across`` points wide, a lane ``down`` points high."""
    lane = np.append(0, np.cumsum(sizes))[frame["node"]] + frame["gpu"].to_numpy()
    known = sorted(frame["job"].unique())
    colours = (
        [FEW[known.index(job)] for job in frame["job"]]
        if len(known) <= len(FEW)
        else [JOBS[i] for i in _colours(frame, lane, int(sizes.sum()))]
    )
    x, width, tall = (v.to_numpy(float) for v in (frame["start"], frame["end"] - frame["start"], frame["gpus"]))
    boxes = [Rectangle((a, b), w, h) for a, b, w, h in zip(x, lane, width, tall)]
    edge = float(np.clip(0.12 * down, 0.25, 0.8))
    # a bar too thin for its white edge would vanish behind it
    edges = [PAPER if w * across > 4 * edge else c for w, c in zip(width, colours)]
    axis.add_collection(PatchCollection(boxes, facecolors=colours, edgecolors=edges, linewidths=edge, zorder=3))
    for a, b, w, h, job, colour in zip(x, lane, width, tall, frame["job"], colours):
        text = str(job)
        size = min(FONT, 0.85 * h * down, 0.85 * w * across / (GLYPH * len(text)))
        if size >= SMALLEST_FONT:
            axis.text(
                a + w / 2,
                b + h / 2,
                text,
                ha="center",
                va="center_baseline",
                fontsize=size,
                color=ON[colour],
                zorder=5,
                clip_on=True,
            )


def _colours(frame: pd.DataFrame, lane: np.ndarray, lanes: int) -> list[int]:
    """[bars] index into JOBS: of those that no neighbour has, the one used least; ``frame`` in order of start."""
    last = np.full(lanes + 2, -1)  # colour of each lane's latest bar, with a lane beyond either end
    used = [0] * len(JOBS)
    out = [0] * len(frame)
    for rows in frame.groupby("job", sort=False).indices.values():
        taken = {int(c) for r in rows for c in last[lane[r] : lane[r] + frame["gpus"].iat[r] + 2]}
        colour = min(range(len(JOBS)), key=lambda c: (c in taken, used[c], c))
        used[colour] += 1
        for r in rows:
            last[lane[r] + 1 : lane[r] + 1 + frame["gpus"].iat[r]] = colour
            out[r] = colour
    return out


def _lanes(axis: Axes, waiting: pd.DataFrame) -> None:
    """A lane for each job that waits, named on its left, in order of submission."""
    n = len(waiting)
    boxes = [Rectangle((a, i + 0.12), b - a, 0.76) for i, (a, b) in enumerate(zip(waiting["submit"], waiting["start"]))]
    axis.add_collection(
        PatchCollection(boxes, facecolors=WAIT_TINT, edgecolors=PURPLE, linewidths=0.6, hatch="////", zorder=3)
    )
    axis.set_ylim(n, 0)
    axis.set_yticks(np.arange(n) + 0.5, [f"job {j}" for j in waiting["job"]], fontsize=7.5)
    axis.tick_params(axis="y", length=0)
    axis.grid(visible=False)


def _queue(axis: Axes, waiting: pd.DataFrame) -> None:
    """How many jobs wait, as a hatched area."""
    time = np.unique(np.concatenate([[0.0], waiting["submit"], waiting["start"]]))
    change = np.zeros(len(time), np.int64)
    np.add.at(change, np.searchsorted(time, waiting["submit"]), 1)
    np.subtract.at(change, np.searchsorted(time, waiting["start"]), 1)
    axis.fill_between(
        time,
        np.cumsum(change),
        step="post",
        facecolor=WAIT_TINT,
        edgecolor=PURPLE,
        linewidth=0.6,
        hatch="////",
        zorder=3,
    )
    axis.set_ylim(0, None)
    axis.set_ylabel("jobs waiting")
    axis.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axis.grid(axis="x", visible=False)


def _head(axis: Axes, title: str, subtitle: str) -> None:
    axis.set_title(title, pad=19 if title else 6)
    axis.annotate(
        subtitle,
        (0, 1),
        xytext=(0, 5),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=8,
        color=MUTED,
        ha="left",
        va="bottom",
    )


def _count(n: int, what: str) -> str:
    return f"{show(n, 'int')} {what}{'' if n == 1 else 's'}"
