"""Figures 18 and 19: makespan and wait of each run on the Slurm cluster, and utilisation over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import seaborn as sns

from rltune.report import style
from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.tables.deployment import HOUR_S, in_words, short, who

LOOKS = {"slurm": style.ORANGE, "rltune": style.BLUE, "saf": style.PURPLE, "sjf": style.GREEN, "fifo": style.SKY}
PANELS = {"makespan_s": "Makespan", "wait_s": "Mean wait", "wait_max_s": "Longest wait"}
"""Column of a run → what it is; drawn in hours."""
Facts = Mapping[str, Any]


def fig18(runs: pd.DataFrame, paired: pd.DataFrame, facts: Facts, paper: PaperResults) -> Drawing:
    """A bar a scheduler, the mean of its repetitions, each of which is a point. ``runs`` and ``paired``: as
    rltune.evaluation.studies.deployment.per_run and paired_runs give them."""
    frame = runs[["scheduler", "repetition", *PANELS]].assign(title=runs["scheduler"].map(who), data=facts["data"])
    means = frame.groupby("scheduler", sort=False)[list(PANELS)].mean() / HOUR_S
    with style.styled():
        figure, axes = style.panels([f"{name} (h)" for name in PANELS.values()], len(PANELS), 2.8, 0.0)
        for axis, column in zip(axes, PANELS, strict=True):
            hours = frame.assign(hours=frame[column] / HOUR_S, name=frame["scheduler"].map(short))
            colours = {short(scheduler): colour for scheduler, colour in LOOKS.items()}
            bars = sns.barplot(
                hours, x="name", y="hours", hue="name", palette=colours, errorbar=None, saturation=1, width=0.6, ax=axis
            )
            sns.stripplot(hours, x="name", y="hours", color=style.INK, size=3.5, jitter=False, ax=axis)
            for bar in bars.containers:
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
    with style.styled():
        titles = [
            f"{of}, repetition {k}" for k in sorted(set(frame["repetition"])) for of in ("GPUs in use", "Waiting")
        ]
        figure, axes = style.panels(titles, 2, 1.7)
        for i, (_, part) in enumerate(frame.groupby("repetition")):
            for axis, column in zip(axes[2 * i : 2 * i + 2], ("utilisation", "waiting"), strict=True):
                for scheduler, rows in part.groupby("scheduler", sort=False):
                    axis.plot(rows["hour"], rows[column], color=LOOKS[scheduler], linewidth=1.1, label=who(scheduler))
            axes[2 * i].yaxis.set_major_formatter(style.PERCENT)
        figure.supxlabel("Hours since the first submission", fontsize=9)
        style.legend_of(axes[0], 4)
    busy = frame[frame["hour"] <= facts["hours"]].groupby("scheduler", sort=False)["utilisation"].mean()
    shares = "; ".join(f"{who(s)} {show(v, 'percent')}" for s, v in busy.items())
    return describe("fig19", frame, paper, summary=shares), frame, figure
