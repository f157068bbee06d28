"""Your cluster, what if: hours waited by scheduler, by day, and by group of users and size."""

from collections.abc import Mapping
from itertools import cycle
from typing import Any

import pandas as pd
import seaborn as sns

from rltune.report import style
from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.figures.series import INTERVAL, lines, points, with_interval
from rltune.report.format import show
from rltune.report.tables.whatif import names

COLOURS = {
    "recorded": style.MUTED,
    "current": style.ORANGE,
    "rule": style.SKY,
    "qssf": style.PURPLE,
    "configuration": style.GREEN,
    "rltune": style.BLUE,
    "bounded": style.MUTED,
}
RULES = (style.SKY, style.VERMILION, style.INK, "#8c564b")
"""Colours of rules where each needs a different one."""
RECORDED = "As recorded"
GROUP_TITLE = {"user": "Users", "size": "Job size"}
Facts = Mapping[str, Any]


def whatif(numbers: pd.DataFrame, facts: Facts) -> Drawing:
    """Hours waited, a bar a scheduler; the whisker is the interval of the difference from today.

    ``numbers``: the frame of the table `whatif-numbers`.
    """
    frame = numbers[["scheduler", "kind", "title", "wait_h", "hours_less", "hours_less_low", "hours_less_high", "data"]]
    today = float(frame.loc[frame["kind"] == "current", "wait_h"].iloc[0])
    ends = {"low": today - frame["hours_less_high"], "high": today - frame["hours_less_low"]}
    with style.styled():
        figure, (axis,) = style.panels([""], 1, 0.38 * len(frame), 0.9)
        look = {"hue": "kind", "palette": COLOURS, "saturation": 1, "width": 0.62, "legend": False}
        look |= {"capsize": 0.2, "err_kws": {"color": style.INK, "linewidth": 1.6}, **INTERVAL}
        bars = with_interval(frame.assign(**ends), "wait_h", "low", "high")
        sns.barplot(bars, x="wait_h", y="scheduler", ax=axis, **look)
        axis.axvline(today, color=style.ORANGE, linewidth=1, linestyle="--")
        for y, (wait_h, right) in enumerate(zip(frame["wait_h"], ends["high"].fillna(0).clip(lower=frame["wait_h"]))):
            style.label(axis, f"{show(wait_h, 'int')} h", (right, y), (6, 0), va="center")
        style.name_rows(axis, list(frame["title"]))
        axis.margins(x=0.14)
        axis.set(xlabel=f"Hours waited by {show(facts['jobs'], 'int')} jobs in {show(facts['days'], 'number')} days")
        axis.set(xlim=(0, None), ylabel="")
        axis.xaxis.set_major_formatter(style.COUNT)
    return describe("whatif", frame), frame, figure


def _colours(frame: pd.DataFrame) -> dict[str, str]:
    """Title of each scheduler → colour: that of its bar; each rule has a different one."""
    titles, rules = dict(zip(frame["scheduler"], frame["title"])), cycle(RULES)
    return {title: COLOURS[name] if name in COLOURS else next(rules) for name, title in titles.items()}


def whatif_days(days: pd.DataFrame, ran: pd.DataFrame, facts: Facts) -> Drawing:
    """Hours waited by the jobs of each block of arrivals: recorded, today and some others.

    ``days``: scheduler, block, at (text), wait_h.
    """
    title = {**names(ran), "recorded": RECORDED}
    frame = days.assign(title=days["scheduler"].map(title), data=facts["data"])
    with style.styled():
        figure, (axis,) = style.panels([""], 1, 3.0, 0.0)
        look = {"marked": True, "dashed": [RECORDED], "markersize": 5, "linewidth": 1.2}
        lines(axis, frame, "block", "wait_h", "title", _colours(frame), **look)
        ticks = frame.drop_duplicates("block").sort_values("block")
        ticks = ticks.iloc[:: max(1, -(-len(ticks) // 12))]
        axis.set_xticks(list(ticks["block"]), [at[5:10] for at in ticks["at"]])
        axis.set(xlabel="Day of arrival (the log’s time)", ylabel="Hours waited", ylim=(0, None))
        axis.yaxis.set_major_formatter(style.COUNT)
        style.legend_of(axis, 2)
    worst = frame.loc[frame.groupby("scheduler", sort=False)["wait_h"].idxmax()]
    return describe("whatif-days", frame, worst=worst.to_dict("records")), frame, figure


def whatif_groups(groups: pd.DataFrame) -> Drawing:
    """Mean wait by user group and by job size. ``groups``: the frame of the table `whatif-groups-numbers`."""
    frame = groups[["grouping", "group", "name", "scheduler", "title", "jobs", "wait_s", "data"]]
    with style.styled():
        figure, axes = style.panels([""] * frame["grouping"].nunique(), 2, 3.4, 0.0, sharey=True)
        hours, colours = frame.assign(wait_h=frame["wait_s"] / 3600), _colours(frame)
        for axis, (grouping, part) in zip(axes, hours.groupby("grouping", sort=False), strict=True):
            points(axis, part, "group", "wait_h", "title", colours, 0.11, legend=axis is axes[0])
            axis.set(xlabel=GROUP_TITLE[grouping], ylabel="Mean wait (h)")
        axes[0].set_yscale("symlog", linthresh=0.1, linscale=0.5)
        axes[0].set_ylim(0, max(2 * float(hours["wait_h"].max()), 0.2))
        axes[0].yaxis.set_major_formatter(style.PLAIN)
        style.legend_of(axes[0], 2)
    return describe("whatif-groups", frame), frame, figure
