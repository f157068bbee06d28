"""Like Figures 1 to 4: which job ran where and when, who waited, and when all was done."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from rltune.report import style
from rltune.report.format import show

LIGHT, DARK = "#fefefe", "#101418"
"""Labels on bars, which keep their colours in dark mode, so these must not be colours that the page replaces."""
JOBS = {
    style.BLUE: LIGHT,
    style.ORANGE: DARK,
    style.SKY: DARK,
    style.GREEN: LIGHT,
    "#98a2ad": DARK,
    "#7a5c3e": LIGHT,
    "#c9c35a": DARK,
}
"""Colour of a job → of its number. Purple is left for waits and vermilion for the makespan."""
WAIT = {"facecolor": "#f0dbe6", "edgecolor": style.PURPLE, "hatch": "////", "linewidth": 0.6}

MAX_LANES = 30
"""With more waiting jobs, the strip below shows the length of the queue instead of a lane for each."""
UNITS = ((5 * 60.0, 1.0, "s"), (5 * 3600.0, 60.0, "min"), (float("inf"), 3600.0, "h"))
"""Spans up to the first number of seconds are given in units of the second."""
FONT, SMALLEST_FONT = 8.0, 4.5
GLYPH = 0.64
"""Width of a digit over its size, in DejaVu Sans."""


def gantt(
    bars: pd.DataFrame,
    node_gpus: Sequence[int],
    title: str = "",
    until_s: float | None = None,
    least_wait_s: float = 0.0,
) -> Figure:
    """Every node's GPUs as lanes, every job as a rectangle on them, its wait in a strip below.

    ``bars``: a row a job × node × run of neighbouring GPUs: job, node, gpu (the lowest of them), gpus, submit_s,
    start_s, end_s. ``node_gpus``: GPUs of every node. Time runs from the first submission; a job has its number on it
    where it fits. Makespan and total wait are those of all jobs in ``bars``, also when the drawing ends
    ``until_s`` seconds after the first submission: one long job makes all others narrow. Jobs with waits below
    ``least_wait_s``, the scheduler's own delay, do not count as having waited, and such waits are not drawn.
    """
    sizes = np.asarray(node_gpus, np.int64)
    begin = float(bars["submit_s"].min())
    makespan_s = float(bars["end_s"].max()) - begin
    shown_s = makespan_s if until_s is None else min(until_s, makespan_s)
    unit_s, unit = next((scale, name) for most, scale, name in UNITS if shown_s <= most)
    frame = bars.sort_values(["start_s", "job", "node", "gpu"], ignore_index=True)
    frame["wait_s"] = frame["start_s"] - frame["submit_s"]
    for column in ("submit", "start", "end"):
        frame[column] = ((frame[f"{column}_s"] - begin) / unit_s).clip(upper=shown_s / unit_s)
    jobs = frame.drop_duplicates("job")
    waited = jobs[(jobs["wait_s"] > 0) & (jobs["wait_s"] >= least_wait_s)]
    subtitle = (
        f"makespan {show(makespan_s / unit_s, 'number')} {unit}",
        f"total wait {show(jobs['wait_s'].sum() / unit_s, 'number')} {unit}",
        f"{_count(len(jobs), 'job')}, {show(len(waited), 'int')} of them had to wait",
        f"{_count(int(sizes.sum()), 'GPU')} on {_count(len(sizes), 'node')}",
    )
    with style.styled():
        waiting = waited[waited["start"] > waited["submit"]].sort_values(["submit", "start", "job"])
        figure = _draw(frame, waiting, sizes, (shown_s / unit_s) or 1.0, shown_s == makespan_s)
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=9.5, parse_math=False)
        figure.axes[0].set_title(" · ".join(subtitle), fontsize=8, fontweight="normal", color=style.MUTED)
        figure.axes[-1].set_xlabel(f"Time since the first submission ({unit})")
    return figure


def _draw(frame: pd.DataFrame, waiting: pd.DataFrame, sizes: np.ndarray, span: float, whole: bool) -> Figure:
    """The picture up to ``span`` units of time; ``whole`` when that is all of them."""
    tall = float(np.clip(0.2 * sizes.sum(), max(1.3, min(0.17 * len(sizes), 7.0)), 7.0))
    lane_by_lane = len(waiting) <= MAX_LANES
    heights = [tall, max(0.17 * len(waiting), 0.35) if lane_by_lane else 0.9][: 1 + (len(waiting) > 0)]
    figure = Figure(figsize=(style.WIDTH_IN, sum(heights) + 1.25))
    axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    right = 1.02 * span if whole else span
    _nodes(axes[0], sizes, tall * 72)
    _jobs(axes[0], frame[frame["start"] < right], sizes, (style.WIDTH_IN - 0.8) * 72 / right, tall * 72 / sizes.sum())
    end = {"linewidth": 1.4, "line": (0, (1, 1.2))} if whole else {"marker": ">"}
    handles = [style.handle("makespan" if whole else "makespan: beyond the edge", style.VERMILION, **end)]
    if len(waiting):
        (_lanes if lane_by_lane else _queue)(axes[1], waiting)
        what = "waiting: from submission to start" if lane_by_lane else "jobs waiting"
        handles.insert(0, Patch(label=what, **WAIT))
    for axis in axes:
        if whole:
            axis.axvline(span, color=style.VERMILION, linewidth=1.4, linestyle=end["line"], zorder=6)
        else:
            axis.plot([1.004], [0.5], marker=">", color=style.VERMILION, transform=axis.transAxes, clip_on=False)
        axis.set_xlim(0, right)
    axes[-1].xaxis.set_major_locator(MaxNLocator(8))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _nodes(axis: Axes, sizes: np.ndarray, height: float) -> None:
    """Separators, and as many names as fit; ``height`` of the axes in points."""
    edges = np.append(0, np.cumsum(sizes))
    axis.set_ylim(edges[-1], 0)
    axis.grid(visible=False)
    # over the bars, so that the end of a node is visible
    axis.hlines(edges[1:-1], 0, 1, transform=axis.get_yaxis_transform(), color=style.MUTED, linewidth=0.3, zorder=4)
    size = float(np.clip(0.8 * height / len(sizes), 5.0, FONT))
    every = int(np.ceil(1.15 * size * edges[-1] / (max(sizes.min(), 1) * height)))
    named = range(0, len(sizes), every)
    axis.set_yticks(((edges[:-1] + edges[1:]) / 2)[named], [f"node {m}" for m in named], fontsize=size)
    axis.tick_params(axis="y", length=0)


def _jobs(axis: Axes, frame: pd.DataFrame, sizes: np.ndarray, across: float, down: float) -> None:
    """Bars and their labels; a unit of time is ``across`` points wide, a lane ``down`` points high."""
    colour = {job: list(JOBS)[i % len(JOBS)] for i, job in enumerate(sorted(frame["job"].unique()))}
    middle = np.append(0, np.cumsum(sizes))[frame["node"]] + frame["gpu"] + frame["gpus"] / 2
    width, edge = frame["end"] - frame["start"], float(np.clip(0.12 * down, 0.25, 0.8))
    # a bar too thin for its white edge would vanish behind it
    edges = [style.PAPER if w * across > 4 * edge else colour[job] for w, job in zip(width, frame["job"])]
    look = {"color": frame["job"].map(colour), "edgecolor": edges, "linewidth": edge, "zorder": 3}
    axis.barh(middle, width, frame["gpus"], left=frame["start"], **look)
    for job, x, y, w, h in zip(frame["job"], frame["start"] + width / 2, middle, width, frame["gpus"]):
        size = min(FONT, 0.85 * h * down, 0.85 * w * across / (GLYPH * len(str(job))))
        if size >= SMALLEST_FONT:
            centred = {"ha": "center", "va": "center_baseline", "zorder": 5, "clip_on": True}
            axis.text(x, y, str(job), fontsize=size, color=JOBS[colour[job]], **centred)


def _lanes(axis: Axes, waiting: pd.DataFrame) -> None:
    """A lane for each job that waits, named on its left, in order of submission."""
    axis.barh(range(len(waiting)), waiting["start"] - waiting["submit"], 0.76, left=waiting["submit"], zorder=3, **WAIT)
    axis.set_ylim(len(waiting) - 0.5, -0.5)
    axis.set_yticks(range(len(waiting)), [f"job {j}" for j in waiting["job"]], fontsize=7.5)
    axis.tick_params(axis="y", length=0)
    axis.grid(visible=False)


def _queue(axis: Axes, waiting: pd.DataFrame) -> None:
    """How many jobs wait, as a hatched area."""
    changes = pd.concat([pd.Series(1, waiting["submit"]), pd.Series(-1, waiting["start"]), pd.Series([0], [0.0])])
    queued = changes.groupby(level=0).sum().cumsum()
    axis.fill_between(queued.index, queued, step="post", zorder=3, **WAIT)
    axis.set_ylim(0, None)
    axis.set_ylabel("jobs waiting")
    axis.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axis.grid(axis="x", visible=False)


def _count(n: int, what: str) -> str:
    return f"{show(n, 'int')} {what}{'' if n == 1 else 's'}"
