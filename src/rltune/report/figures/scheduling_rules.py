"""How the wait falls from one rule to the next without any learning, and where the agent stands."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from rltune.report import style
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import policy_title, where
from rltune.report.format import show
from rltune.report.tables.scheduling_rules import AGENT, STEPS, TITLES

BARS = {
    "base policy, (a)": style.MUTED,
    "less by this rule": style.GREEN,
    "more by this rule": style.VERMILION,
    "RLTune": style.BLUE,
}
OTHERS = (style.PURPLE, style.SKY, style.GREEN, style.INK)
"""Colours of the orders drawn as marks."""
DRAWN = "workload data sequence_jobs windows who policy reference step wait_s before_s less less_low less_high".split()


def scheduling_rules(numbers: pd.DataFrame) -> tuple[Artefact, pd.DataFrame, Figure]:
    """A panel a workload: the reference order's mean wait by step as a waterfall, the first agent, and other orders as
    marks.

    ``numbers``: the frame of `tables.scheduling_rules`, of which the frame has what is drawn.
    """
    first = ~numbers[numbers["who"] == AGENT].duplicated("workload")
    frame = numbers[(numbers["who"] != AGENT) | first.reindex(numbers.index, fill_value=False)]
    frame = frame[DRAWN].reset_index(drop=True)
    steps = []
    for workload, part in frame.groupby("workload", sort=False):
        mine = where(part, who="order", policy=part["reference"].iloc[0])
        falls = ", ".join(f"{STEPS[r['step']][0]} {show(r['wait_s'], 'seconds')} s" for _, r in mine.iterrows())
        agent = show(where(part, who=AGENT)["wait_s"].iloc[0], "seconds")
        steps.append(f"{workload}, {policy_title(part['reference'].iloc[0])}: {falls}; RLTune {agent} s")
    return describe("scheduling-rules", frame, steps="; ".join(steps)), frame, _draw(frame)


@style.styled()
def _draw(frame: pd.DataFrame) -> Figure:
    others = [p for p in dict.fromkeys(frame["policy"]) if not (frame["reference"] == p).all()]
    looks = {p: (style.MARKERS[i % len(style.MARKERS)], OTHERS[i % len(OTHERS)]) for i, p in enumerate(others)}
    rows_of = dict(list(frame.groupby("workload", sort=False)))
    titles = [f"{workload},\n{policy_title(rows['reference'].iloc[0])}" for workload, rows in rows_of.items()]
    figure, axes = style.panels(titles, 3, 2.5, 0.7, sharey=True)
    for axis, rows in zip(axes, rows_of.values()):
        _panel(axis, rows, looks)
    style.name_rows(axes[0], [*TITLES.values(), "RLTune"])
    handles: list[Any] = [Patch(color=colour, label=name) for name, colour in BARS.items()]
    handles += [style.handle(policy_title(p), colour, marker) for p, (marker, colour) in looks.items()]
    style.legend(figure, handles, 4)
    return figure


def _panel(axis: Axes, part: pd.DataFrame, looks: dict[str, tuple[str, str]]) -> None:
    part = part.assign(wait_s=part["wait_s"] / 3600, before_s=part["before_s"] / 3600)  # drawn in hours
    orders, reference, places = where(part, who="order"), part["reference"].iloc[0], list(STEPS)
    shown = pd.concat([where(orders, policy=reference), where(part, who=AGENT).head(1)])
    for _, r in shown.iterrows():
        first = r["who"] == AGENT or r["step"] == places[0]
        y = len(places) if r["who"] == AGENT else places.index(r["step"])
        begin = 0.0 if first else r["before_s"]
        colour = list(BARS.values())[3 if r["who"] == AGENT else 0 if first else 1 if r["wait_s"] < begin else 2]
        axis.barh(y, r["wait_s"] - begin, 0.62, left=begin, color=colour)
        at = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "center"}
        style.label(axis, f"{show(r['wait_s'], 'number')} h", (1, y), (-2, 0), 7, **at)
    for policy, (marker, colour) in looks.items():
        rows = where(orders, policy=policy)
        if policy != reference:
            style.marks(axis, rows["wait_s"], rows["step"].map(places.index), marker, colour, 4.5, markeredgewidth=0)
    axis.set_xlim(0, 1.45 * part["wait_s"].max() or 1)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=4))
    axis.xaxis.set_major_formatter(style.PLAIN)
    axis.set_xlabel("Mean wait (h)")
