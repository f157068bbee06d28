"""Figures 18 and 19: makespan and wait of each run on the Slurm cluster, and utilisation over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.style import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, WIDTH_IN, label, legend_above, rows_only, styled
from rltune.report.tables.deployment import HOUR_S, in_words, short, who

LOOKS = {"slurm": ORANGE, "rltune": BLUE, "saf": PURPLE, "sjf": GREEN, "fifo": SKY}
PANELS = {"makespan_s": "Makespan", "wait_s": "Mean wait", "wait_max_s": "Longest wait"}
"""Column of a run → what it is; drawn in hours."""
Facts = Mapping[str, Any]


def fig18(
    runs: pd.DataFrame, paired: pd.DataFrame, facts: Facts, paper: PaperResults
) -> tuple[Artefact, pd.DataFrame, Figure]:
    """A bar a scheduler, the mean of its repetitions, each of which is a point. ``runs`` and ``paired``: as
    rltune.evaluation.studies.deployment.per_run and paired_runs give them."""
    frame = runs[["scheduler", "repetition", *PANELS]].assign(title=runs["scheduler"].map(who), data=facts["data"])
    schedulers = list(dict.fromkeys(frame["scheduler"]))
    with styled():
        figure = Figure(figsize=(WIDTH_IN, 2.8))
        for axis, (column, name) in zip(figure.subplots(1, len(PANELS)), PANELS.items(), strict=True):
            for place, scheduler in enumerate(schedulers):
                values = frame.loc[frame["scheduler"] == scheduler, column] / HOUR_S
                axis.bar(place, values.mean(), color=LOOKS[scheduler], width=0.6)
                axis.plot([place] * len(values), values, linestyle="", marker="o", markersize=3.5, color=INK)
                label(axis, show(values.mean(), "number"), (place, max(values)), (0, 5), ha="center")
            axis.set_xticks(range(len(schedulers)), [short(s) for s in schedulers])
            axis.margins(y=0.12)
            axis.set_ylim(bottom=0)
            axis.set_ylabel(f"{name} (h)")
            rows_only(axis)
    means = frame.groupby("scheduler", sort=False)[list(PANELS)].mean()
    each = "; ".join(
        f"{who(s)} " + ", ".join(f"{name.lower()} {show(r[c] / HOUR_S, 'number')} h" for c, name in PANELS.items())
        for s, r in means.iterrows()
    )
    summary = " ".join([f"Means: {each}.", *in_words(paired)])
    return describe("fig18", frame, paper, facts=facts, summary=summary), frame, figure


def fig19(usage: pd.DataFrame, facts: Facts, paper: PaperResults) -> tuple[Artefact, pd.DataFrame, Figure]:
    """GPUs in use and jobs waiting over time, two panels a repetition. ``usage``: rltune.evaluation.studies.deployment.in_use."""
    frame = usage.assign(title=usage["scheduler"].map(who), data=facts["data"])
    repetitions = sorted(frame["repetition"].unique())
    with styled():
        figure = Figure(figsize=(WIDTH_IN, 0.7 + 1.55 * len(repetitions)))
        axes = figure.subplots(len(repetitions), 2, squeeze=False, sharex="row")
        for row, repetition in zip(axes, repetitions, strict=True):
            for scheduler, part in frame[frame["repetition"] == repetition].groupby("scheduler", sort=False):
                for axis, values in zip(row, (100 * part["utilisation"], part["waiting"]), strict=True):
                    axis.plot(part["hour"], values, color=LOOKS[scheduler], linewidth=1.1, label=who(scheduler))
            row[0].set_ylim(0, 105)
            row[1].set_ylim(bottom=0)
            row[0].set_ylabel(f"Repetition {repetition}\nGPUs in use (%)")
            row[1].set_ylabel("Jobs waiting")
        for axis in axes[-1]:
            axis.set_xlabel("Hours since the first submission")
        legend_above(figure, axes[0][0], 4)
    busy = frame[frame["hour"] <= facts["hours"]].groupby("scheduler", sort=False)["utilisation"].mean()
    shares = "; ".join(f"{who(s)} {show(v, 'percent')}" for s, v in busy.items())
    return describe("fig19", frame, paper, summary=shares), frame, figure
