"""How long jobs of each size wait under the base policy, the best heuristic and the agent."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.format import show
from rltune.report.style import SCHEDULER, WIDTH_IN, marks, rows_only, styled, symlog_ticks
from rltune.report.tables.fairness import scheduler_names

LOOKS = {
    "base": ("base policy", "o", SCHEDULER["base"]),
    "strong": ("best heuristic", "s", SCHEDULER["baseline"]),
    "rltune": ("RLTune", "D", SCHEDULER["rltune"]),
}
MEASURES = {"wait_s": "Mean wait (s)", "bsld": "Mean slowdown"}
LINEAR_BELOW_S = 10.0
"""Where some class hardly waits, the axis of waits is logarithmic above this and linear below."""
ACROSS = 3


def fairness(sizes: pd.DataFrame) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Mean wait above and mean bounded slowdown below by class of job size: a column of panels a workload.

    ``sizes``: workload, data, sequence_jobs, policy, backfill and the columns of rltune.evaluation.groups.by_group by
    size; the frame is the same with `title` (the scheduler).
    """
    frame = sizes.assign(title=scheduler_names(sizes))
    figure = _draw(frame)
    waits = []
    for workload, part in frame.groupby("workload", sort=False):
        each = [
            f"{size} GPUs "
            + ", ".join(f"{LOOKS[r['scheduler']][0]} {show(r['wait_s'], 'seconds')} s" for _, r in rows.iterrows())
            for size, rows in part.groupby("group", sort=False)
        ]
        waits.append(f"{workload}: {'; '.join(each)}")
    who = [f"{w}: {', '.join(p['title'].drop_duplicates())}." for w, p in frame.groupby("workload", sort=False)]
    return describe("fairness", frame, heuristics=who, waits=". ".join(waits)), frame, figure


@styled()
def _draw(frame: pd.DataFrame) -> Figure:
    workloads = list(dict.fromkeys(frame["workload"]))
    sizes = list(dict.fromkeys(frame["group"]))
    across = min(ACROSS, len(workloads))
    blocks = math.ceil(len(workloads) / ACROSS)
    figure = Figure(figsize=(WIDTH_IN, 0.5 + 3.6 * blocks))
    panels = figure.subplots(2 * blocks, across, sharex=True, squeeze=False)
    for axis in panels.flat:
        axis.set_visible(False)
    for i, workload in enumerate(workloads):
        for row, measure in enumerate(MEASURES):
            axis = panels[2 * (i // ACROSS) + row][i % ACROSS]
            axis.set_visible(True)
            _panel(axis, where(frame, workload=workload), measure, sizes)
            if i % ACROSS == 0:
                axis.set_ylabel(MEASURES[measure])
        panels[2 * (i // ACROSS)][i % ACROSS].set_title(workload)
        lowest = panels[2 * (i // ACROSS) + 1][i % ACROSS]
        lowest.set_xlabel("GPUs of a job")
        lowest.tick_params(labelbottom=True)
    handles = [Line2D([], [], linestyle="", marker=m, color=c, label=name) for name, m, c in LOOKS.values()]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def _panel(axis: Axes, part: pd.DataFrame, measure: str, sizes: list[str]) -> None:
    least, top = float(part[measure].min()), float(part[measure].max())
    zero = measure == "wait_s" and least < 2 * LINEAR_BELOW_S
    if zero:
        axis.set_yscale("symlog", linthresh=LINEAR_BELOW_S, linscale=0.5)
    else:
        axis.set_yscale("log")
    for k, (scheduler, (_, marker, colour)) in enumerate(LOOKS.items()):
        rows = where(part, scheduler=scheduler)
        at = [sizes.index(g) + 0.18 * (k - 1) for g in rows["group"]]
        marks(axis, at, rows[measure], marker, colour)
    axis.set_xticks(range(len(sizes)), sizes)
    axis.set_xlim(-0.5, len(sizes) - 0.5)
    axis.set_ylim(0 if zero else least / 2, max(3 * top, 2 * LINEAR_BELOW_S))
    powers = [10.0**k for k in range(1 if zero else 0, 9) if 10.0**k <= max(3 * top, 2 * LINEAR_BELOW_S)]
    symlog_ticks(axis.yaxis, [0, *powers] if zero else powers)
    rows_only(axis)
