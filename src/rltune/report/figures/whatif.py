"""Your cluster, what if: hours waited by scheduler, by day, and by group of users and size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from rltune.report import style
from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.format import show
from rltune.report.tables.whatif import GROUP_TITLE, names

LOOKS = {
    "recorded": style.MUTED,
    "current": style.ORANGE,
    "rule": style.SKY,
    "qssf": style.PURPLE,
    "configuration": style.GREEN,
    "rltune": style.BLUE,
    "bounded": style.MUTED,
}
RULES = (style.SKY, style.VERMILION, style.INK, style.GREEN)
"""Colours of rules where each has its own."""
Facts = Mapping[str, Any]


def whatif(numbers: pd.DataFrame, facts: Facts, confidence: float) -> Drawing:
    """Hours waited, a bar a scheduler; the whisker is the interval of the difference from today.

    ``numbers``: the frame of the table `whatif-numbers`.
    """
    frame = numbers[["scheduler", "kind", "title", "wait_h", "hours_less", "hours_less_low", "hours_less_high", "data"]]
    with style.styled():
        figure = Figure(figsize=(style.WIDTH_IN, 0.9 + 0.38 * len(frame)))
        axis = figure.subplots()
        places = range(len(frame))[::-1]
        axis.barh(places, frame["wait_h"], color=[LOOKS[k] for k in frame["kind"]], height=0.62)
        today = float(frame.loc[frame["kind"] == "current", "wait_h"].iloc[0])
        axis.axvline(today, color=style.ORANGE, linewidth=1, linestyle="--")
        for place, (_, row) in zip(places, frame.iterrows(), strict=True):
            right = row["wait_h"]
            if pd.notna(row["hours_less_low"]):
                ends = [today - row["hours_less_high"], today - row["hours_less_low"]]
                axis.plot(ends, [place, place], color="black", linewidth=1.2, marker="|", markersize=7)
                right = max(right, *ends)
            style.label(axis, f"{show(row['wait_h'], 'int')} h", (right, place), (4, 0), va="center")
        axis.set_yticks(list(places), list(frame["title"]))
        axis.set_xlim(left=0)
        axis.margins(x=0.14)
        axis.set_xlabel(f"Hours waited by {show(facts['jobs'], 'int')} jobs in {show(facts['days'], 'number')} days")
        axis.xaxis.set_major_formatter(style.COUNT)
    return describe("whatif", frame, confidence=confidence), frame, figure


def _colours(frame: pd.DataFrame) -> dict[str, str]:
    """Scheduler → colour: that of its bar, of each rule one of its own."""
    schedulers = list(dict.fromkeys(frame["scheduler"]))
    rules = [s for s in schedulers if s not in LOOKS]
    return {s: LOOKS[s] if s in LOOKS else RULES[rules.index(s) % len(RULES)] for s in schedulers}


def whatif_days(days: pd.DataFrame, ran: pd.DataFrame, facts: Facts) -> Drawing:
    """Hours waited by the jobs of each block of arrivals: recorded, today and some others.

    ``days``: scheduler, block, at (text), wait_h.
    """
    title = {**names(ran), "recorded": "As recorded"}
    frame = days.assign(title=days["scheduler"].map(title), data=facts["data"])
    with style.styled():
        figure = Figure(figsize=(style.WIDTH_IN, 3.0))
        axis = figure.subplots()
        colour = _colours(frame)
        for i, (scheduler, part) in enumerate(frame.groupby("scheduler", sort=False)):
            look = {"marker": style.MARKERS[i % len(style.MARKERS)], "markersize": 3.5, "color": colour[scheduler]}
            line = "--" if scheduler == "recorded" else "-"
            axis.plot(part["block"], part["wait_h"], line, label=part["title"].iloc[0], linewidth=1.2, **look)
        ticks = frame.drop_duplicates("block").sort_values("block")
        ticks = ticks.iloc[:: max(1, -(-len(ticks) // 12))]
        axis.set_xticks(list(ticks["block"]), [at[5:10] for at in ticks["at"]])
        axis.set_ylim(bottom=0)
        axis.set_ylabel("Hours waited")
        axis.set_xlabel("Day of arrival (the log’s time)")
        axis.yaxis.set_major_formatter(style.COUNT)
        style.legend_of(axis, 3)
    worst = frame.loc[frame.groupby("scheduler", sort=False)["wait_h"].idxmax()]
    return describe("whatif-days", frame, worst=worst.to_dict("records")), frame, figure


def whatif_groups(groups: pd.DataFrame, facts: Facts) -> Drawing:
    """Mean wait by user group and by job size. ``groups``: the frame of the table `whatif-groups-numbers`."""
    frame = groups[["grouping", "group", "scheduler", "title", "jobs", "wait_s", "data"]]
    with style.styled():
        figure = Figure(figsize=(style.WIDTH_IN, 3.4))
        panels = figure.subplots(1, frame["grouping"].nunique(), sharey=True, squeeze=False)[0]
        schedulers, colour = list(dict.fromkeys(frame["scheduler"])), _colours(frame)
        for axis, (grouping, part) in zip(panels, frame.groupby("grouping", sort=False), strict=True):
            order = list(dict.fromkeys(part["group"]))
            for k, (scheduler, mine) in enumerate(part.groupby("scheduler", sort=False)):
                at = [order.index(g) + 0.11 * (k - (len(schedulers) - 1) / 2) for g in mine["group"]]
                name = mine["title"].iloc[0]
                marker = style.MARKERS[k % len(style.MARKERS)]
                style.marks(axis, at, mine["wait_s"] / 3600, marker, colour[scheduler], 5, label=name)
            axis.set_xticks(range(len(order)), order)
            axis.set_xlabel(GROUP_TITLE[grouping].capitalize() if grouping == "user" else GROUP_TITLE[grouping])
            axis.set_yscale("symlog", linthresh=0.1, linscale=0.5)
            axis.set_ylim(0, max(2 * float(frame["wait_s"].max()) / 3600, 0.2))
            axis.yaxis.set_major_formatter(style.PLAIN)
            style.rows_only(axis)
        panels[0].set_ylabel("Mean wait (h)")
        style.legend_of(panels[0], 3)
    means = [
        f"{group} {GROUP_TITLE[grouping]}: "
        + ", ".join(f"{r['title']} {show(r['wait_s'] / 3600, 'number')} h" for _, r in part.iterrows())
        for (grouping, group), part in frame.groupby(["grouping", "group"], sort=False)
    ]
    return describe("whatif-groups", frame, summary="; ".join(means)), frame, figure
