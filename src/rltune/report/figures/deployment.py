"""Figures 18 and 19: makespan and wait of each run on the Slurm cluster, and utilisation over time."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from rltune.report import style
from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.figures.series import lines
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.tables.deployment import HOUR_S, long_title, pair_sentences, short

COLOURS = {"slurm": style.ORANGE, "rltune": style.BLUE, "saf": style.PURPLE, "sjf": style.GREEN, "fifo": style.SKY}
COLOURS |= {"slurm_fastest": style.INK, "rltune_types": style.VERMILION}
PANELS = {"makespan_s": "Makespan", "wait_s": "Mean wait", "wait_max_s": "Longest wait"}
"""Column of a run → its title; drawn in hours."""
OVER_TIME = {"utilisation": "GPUs in use", "waiting": "Waiting"}
Facts = Mapping[str, Any]


def fig18(runs: pd.DataFrame, paired: pd.DataFrame, facts: Facts, paper: PaperResults) -> Drawing:
    """A bar a scheduler, the mean of its repetitions, and a point a repetition. ``runs`` and ``paired``: as
    rltune.evaluation.studies.deployment.per_run and paired_runs give them."""
    frame = runs[["scheduler", "repetition", *PANELS]]
    frame = frame.assign(title=runs["scheduler"].map(long_title), data=facts["data"])
    means = frame.groupby("title", sort=False)[list(PANELS)].mean() / HOUR_S
    with style.styled():
        figure, axes = style.panels([f"{name} (h)" for name in PANELS.values()], len(PANELS), 2.8, 0.0)
        hours = frame.assign(name=frame["scheduler"].map(short), **(frame[list(PANELS)] / HOUR_S))
        look = {"palette": {short(s): colour for s, colour in COLOURS.items()}, "saturation": 1, "width": 0.6}
        for axis, column in zip(axes, PANELS, strict=True):
            sns.barplot(hours, x="name", y=column, hue="name", errorbar=None, ax=axis, **look)
            sns.stripplot(hours, x="name", y=column, color=style.INK, size=3.5, jitter=False, ax=axis)
            for bar in axis.containers:
                axis.bar_label(bar, fmt=lambda v: show(v, "number"), label_type="center", color=style.PAPER)
            axis.set(xlabel="", ylabel="", ylim=(0, None))
            style.rows_only(axis)
    found = {"means": means.to_dict("index"), "panels": PANELS, "pairs": pair_sentences(paired)}
    return describe("fig18", frame, paper, facts=facts, **found), frame, figure


def fig19(usage: pd.DataFrame, facts: Facts, paper: PaperResults) -> Drawing:
    """GPUs in use and jobs waiting over time, two panels a repetition. ``usage``: rltune.evaluation.studies.deployment.in_use."""
    frame = usage.assign(title=usage["scheduler"].map(long_title), data=facts["data"])
    panels = {
        f"{name}, repetition {k}": (where(frame, repetition=k), column)
        for k, (column, name) in product(sorted(set(frame["repetition"])), OVER_TIME.items())
    }
    figure = _over_time(panels, across=2, each_in=1.7)
    return describe("fig19", frame, paper, busy=_busy(frame, facts)), frame, figure


def deployment_types(usage: pd.DataFrame, facts: Facts) -> Drawing:
    """GPUs in use over time, a panel a GPU type, of the first repetition; ``usage``:
    rltune.evaluation.studies.deployment.in_use_by_type."""
    frame = usage.assign(title=usage["scheduler"].map(long_title), data=facts["data"])
    parts = {kind.upper(): part for kind, part in frame.groupby("gpu_type", sort=False)}
    panels = {f"{kind} in use": (where(part, repetition=1), "utilisation") for kind, part in parts.items()}
    figure = _over_time(panels, across=1, each_in=1.5, sharex=True)
    busy = {kind: _busy(part, facts) for kind, part in parts.items()}
    return describe("deployment-types", frame, busy=busy), frame, figure


@style.styled()
def _over_time(panels: Mapping[str, tuple[pd.DataFrame, str]], across: int, each_in: float, **share: Any) -> Figure:
    """A line a scheduler over the hours: title of a panel → its rows and the column drawn."""
    figure, axes = style.panels(list(panels), across, each_in, **share)
    schedulers = pd.concat([rows["scheduler"] for rows, _ in panels.values()]).unique()
    colours = {long_title(scheduler): COLOURS[scheduler] for scheduler in schedulers}
    for axis, (rows, column) in zip(axes, panels.values(), strict=True):
        lines(axis, rows, "hour", column, "title", colours, linewidth=1.1, legend=axis is axes[0])
        if column == "utilisation":
            axis.yaxis.set_major_formatter(style.PERCENT)
    figure.supxlabel("Hours since the first submission")
    style.legend_of(axes[0], 2 + across)
    return figure


def _busy(frame: pd.DataFrame, facts: Facts) -> dict[str, float]:
    """Mean share of GPUs in use while jobs are submitted, by scheduler."""
    return frame[frame["hour"] <= facts["hours"]].groupby("title", sort=False)["utilisation"].mean().to_dict()
