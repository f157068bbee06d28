"""How the wait falls from one rule to the next without any learning, and where the agent stands."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import policy_title, where
from rltune.report.format import show
from rltune.report.style import BLUE, GREEN, INK, MARKERS, MUTED, PURPLE, SKY, VERMILION, WIDTH_IN, label, marks, styled
from rltune.report.tables.scheduling_rules import AGENT, STEPS, step_title

ACROSS = 3
OTHERS = (PURPLE, SKY, GREEN, INK)
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
    figure = _draw(frame)
    steps = []
    for workload, part in frame.groupby("workload", sort=False):
        mine = where(part, who="order", policy=part["reference"].iloc[0])
        falls = ", ".join(f"{STEPS[r['step']][0]} {show(r['wait_s'], 'seconds')} s" for _, r in mine.iterrows())
        agent = show(where(part, who=AGENT)["wait_s"].iloc[0], "seconds")
        steps.append(f"{workload}, {policy_title(part['reference'].iloc[0])}: {falls}; RLTune {agent} s")
    return describe("scheduling-rules", frame, steps="; ".join(steps)), frame, figure


@styled()
def _draw(frame: pd.DataFrame) -> Figure:
    workloads = list(dict.fromkeys(frame["workload"]))
    others = [p for p in dict.fromkeys(frame["policy"]) if not (frame["reference"] == p).all()]
    looks = {p: (MARKERS[i % len(MARKERS)], OTHERS[i % len(OTHERS)]) for i, p in enumerate(others)}
    down = math.ceil(len(workloads) / ACROSS)
    across = min(ACROSS, len(workloads))
    figure = Figure(figsize=(WIDTH_IN, 0.7 + 2.5 * down))
    panels = figure.subplots(down, across, sharey=True, squeeze=False)
    places = {step: i for i, step in enumerate(STEPS)}
    for axis, workload in zip(panels.flat, workloads):
        _panel(axis, where(frame, workload=workload), places, looks)
    for axis in panels.flat[len(workloads) :]:
        axis.set_visible(False)
    first = panels[0][0]
    first.set_yticks([*places.values(), len(places)], [*map(step_title, STEPS), "RLTune"])
    first.set_ylim(len(places) + 0.55, -0.55)
    handles = [
        Patch(color=MUTED, label="base policy, (a)"),
        Patch(color=GREEN, label="less by this rule"),
        Patch(color=VERMILION, label="more by this rule"),
        Patch(color=BLUE, label="RLTune"),
    ]
    handles += [Line2D([], [], linestyle="", marker=m, color=c, label=policy_title(p)) for p, (m, c) in looks.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 4))
    return figure


def _panel(axis: Axes, part: pd.DataFrame, places: dict[str, int], looks: dict[str, tuple[str, str]]) -> None:
    reference = part["reference"].iloc[0]
    part = part.assign(wait_s=part["wait_s"] / 3600, before_s=part["before_s"] / 3600)  # drawn in hours
    orders = where(part, who="order")
    top = float(part["wait_s"].max())
    for _, r in where(orders, policy=reference).iterrows():
        y, low, high = places[r["step"]], *sorted((r["before_s"], r["wait_s"]))
        if r["step"] == "released":
            axis.barh(y, r["wait_s"], 0.62, color=MUTED)
        elif high > low:
            axis.barh(y, high - low, 0.62, left=low, color=GREEN if r["wait_s"] < r["before_s"] else VERMILION)
        axis.plot([r["wait_s"]] * 2, [y - 0.31, min(y + 1.31, len(places) - 0.69)], color=INK, linewidth=0.9)
        _name(axis, y, r["wait_s"])
    agent = where(part, who=AGENT).iloc[0]
    axis.barh(len(places), agent["wait_s"], 0.62, color=BLUE)
    _name(axis, len(places), agent["wait_s"])
    for policy, (marker, colour) in looks.items():
        rows = where(orders, policy=policy)
        if policy != reference and len(rows):
            marks(axis, rows["wait_s"], rows["step"].map(places), marker, colour, 4.5, markeredgewidth=0)
    axis.set_title(f"{part['workload'].iloc[0]},\n{policy_title(reference)}")
    axis.set_xlim(0, 1.45 * top if top > 0 else 1)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=4))
    axis.xaxis.set_major_formatter(lambda v, _: show(round(v, 9), "printed"))
    axis.set_xlabel("Mean wait (h)")
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)


def _name(axis: Axes, y: float, hours: float) -> None:
    """The reference's wait at the panel's right edge, where no bar and no mark reaches."""
    text, at = show(hours, "number") + " h", (1, y)
    label(axis, text, at, (-2, 0), 7, xycoords=("axes fraction", "data"), ha="right", va="center", color=INK)
