"""Figures 18 and 19: makespan and wait of each run on the Slurm cluster, and utilisation over time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pandas as pd
import seaborn as sns

from rltune.report import style
from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.figures.series import lines
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.tables.deployment import HOUR_S, in_words, short, who

LOOKS = {"slurm": style.ORANGE, "rltune": style.BLUE, "saf": style.PURPLE, "sjf": style.GREEN, "fifo": style.SKY}
LOOKS |= {"slurm_fastest": style.INK, "rltune_types": style.GREEN}
PANELS = {"makespan_s": "Makespan", "wait_s": "Mean wait", "wait_max_s": "Longest wait"}
"""Column of a run → what it is; drawn in hours."""
OVER_TIME = {"utilisation": "GPUs in use", "waiting": "Waiting"}
Facts = Mapping[str, Any]


def fig18(runs: pd.DataFrame, paired: pd.DataFrame, facts: Facts, paper: PaperResults) -> Drawing:
    """A bar a scheduler, the mean of its repetitions, each of which is a point. ``runs`` and ``paired``: as
    rltune.evaluation.studies.deployment.per_run and paired_runs give them."""
    frame = runs[["scheduler", "repetition", *PANELS]].assign(title=runs["scheduler"].map(who), data=facts["data"])
    means = frame.groupby("scheduler", sort=False)[list(PANELS)].mean() / HOUR_S
    with style.styled():
        figure, axes = style.panels([f"{name} (h)" for name in PANELS.values()], len(PANELS), 2.8, 0.0)
        hours = frame.assign(name=frame["scheduler"].map(short), **(frame[list(PANELS)] / HOUR_S))
        look = {"palette": {short(s): colour for s, colour in LOOKS.items()}, "saturation": 1, "width": 0.6}
        for axis, column in zip(axes, PANELS, strict=True):
            sns.barplot(hours, x="name", y=column, hue="name", errorbar=None, ax=axis, **look)
            sns.stripplot(hours, x="name", y=column, color=style.INK, size=3.5, jitter=False, ax=axis)
            for bar in axis.containers:
                axis.bar_label(bar, fmt=lambda v: show(v, "number"), label_type="center", color=style.PAPER)
            axis.set(xlabel="", ylabel="", ylim=(0, None))
            style.rows_only(axis)
    each = "; ".join(
        f"{who(s)} " + ", ".join(f"{name.lower()} {show(r[c], 'number')} h" for c, name in PANELS.items())
        for s, r in means.iterrows()
    )
    summary = " ".join([f"Means: {each}.", *in_words(paired)])
    return describe("fig18", frame, paper, facts=facts, summary=summary), frame, figure


def fig19(usage: pd.DataFrame, facts: Facts, paper: PaperResults) -> Drawing:
    """GPUs in use and jobs waiting over time, two panels a repetition. ``usage``: rltune.evaluation.studies.deployment.in_use."""
    frame = usage.assign(title=usage["scheduler"].map(who), data=facts["data"])
    panels = list(product(sorted(set(frame["repetition"])), OVER_TIME))
    colours = {who(scheduler): LOOKS[scheduler] for scheduler in frame["scheduler"].unique()}
    with style.styled():
        figure, axes = style.panels([f"{OVER_TIME[column]}, repetition {k}" for k, column in panels], 2, 1.7)
        for axis, (k, column) in zip(axes, panels, strict=True):
            look = {"linewidth": 1.1, "legend": axis is axes[0]}
            lines(axis, where(frame, repetition=k), "hour", column, "title", colours, **look)
            if column == "utilisation":
                axis.yaxis.set_major_formatter(style.PERCENT)
        figure.supxlabel("Hours since the first submission")
        style.legend_of(axes[0], 4)
    return describe("fig19", frame, paper, summary=_busy(frame, facts)), frame, figure


def deployment_types(usage: pd.DataFrame, facts: Facts) -> Drawing:
    """GPUs in use over time, a panel a GPU type, of the first repetition; ``usage``:
    rltune.evaluation.studies.deployment.in_use_by_type."""
    frame = usage.assign(title=usage["scheduler"].map(who), data=facts["data"])
    kinds = list(dict.fromkeys(frame["gpu_type"]))
    colours = {who(scheduler): LOOKS[scheduler] for scheduler in frame["scheduler"].unique()}
    with style.styled():
        figure, axes = style.panels([f"{kind.upper()} in use" for kind in kinds], 1, 1.5, sharex=True)
        for axis, kind in zip(axes, kinds, strict=True):
            look = {"linewidth": 1.1, "legend": axis is axes[0]}
            lines(axis, where(frame, repetition=1, gpu_type=kind), "hour", "utilisation", "title", colours, **look)
            axis.yaxis.set_major_formatter(style.PERCENT)
        figure.supxlabel("Hours since the first submission")
        style.legend_of(axes[0], 3)
    each = (f"{kind.upper()}: {_busy(where(frame, gpu_type=kind), facts)}" for kind in kinds)
    return describe("deployment-types", frame, summary=". ".join(each)), frame, figure


def _busy(frame: pd.DataFrame, facts: Facts) -> str:
    """Mean share of GPUs in use while jobs are submitted, of each scheduler, in words."""
    busy = frame[frame["hour"] <= facts["hours"]].groupby("scheduler", sort=False)["utilisation"].mean()
    return "; ".join(f"{who(s)} {show(v, 'percent')}" for s, v in busy.items())
