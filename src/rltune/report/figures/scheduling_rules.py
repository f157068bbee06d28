"""What is behind the gains: scheduling rules, the headroom, groups of jobs, and clusters that keep up with their load."""

from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullFormatter

from rltune.report import style
from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.common import scheduler_titles, where
from rltune.report.figures.series import points
from rltune.report.format import show
from rltune.report.style import policy_title
from rltune.report.tables.scheduling_rules import AGENT, LOADS, RLTUNE, STEPS, TITLES, scheduler_names

BARS = {
    "base policy or FIFO, (a)": style.MUTED,
    "less by this rule": style.GREEN,
    "more by this rule": style.VERMILION,
    "RLTune": style.BLUE,
}
OTHERS = (style.PURPLE, style.SKY, style.GREEN, style.INK)
"""Colours of the orders drawn as marks."""
DRAWN = "workload data sequence_jobs windows who policy reference step wait_s before_s less less_low less_high".split()


@style.styled()
def scheduling_rules(numbers: pd.DataFrame) -> Drawing:
    """A panel a workload: the reference order's mean wait by step as a waterfall, the first agent, and other orders as
    marks.

    ``numbers``: the frame of `tables.scheduling_rules`; the frame is the part that is drawn.
    """
    later = numbers[numbers["who"] == AGENT].duplicated("workload")
    frame = numbers.drop(index=later.index[later])[DRAWN].reset_index(drop=True)
    others = [p for p in dict.fromkeys(where(frame, who="order")["policy"]) if not (frame["reference"] == p).all()]
    marks = dict(zip(others, zip(cycle(style.MARKERS), cycle(OTHERS))))
    parts = dict(list(frame.groupby("workload", sort=False)))
    titles = [f"{workload},\n{policy_title(rows['reference'].iloc[0])}" for workload, rows in parts.items()]
    figure, axes = style.panels(titles, 3, 2.5, 0.7, sharey=True)
    for axis, rows in zip(axes, parts.values()):
        _draw_rules_of(axis, rows, marks)
    style.name_rows(axes[0], [*TITLES.values(), "RLTune"])
    handles: list[Any] = [Patch(color=colour, label=name) for name, colour in BARS.items()]
    handles += [style.handle(policy_title(p), colour, marker) for p, (marker, colour) in marks.items()]
    style.legend(figure, handles, 4)
    return describe("scheduling-rules", frame, steps=STEPS), frame, figure


def _draw_rules_of(axis: Axes, part: pd.DataFrame, marks: dict[str, tuple[str, str]]) -> None:
    part = part.assign(wait_s=part["wait_s"] / 3600, before_s=part["before_s"] / 3600)  # drawn in hours
    orders, reference, steps = where(part, who="order"), part["reference"].iloc[0], list(STEPS)
    shown = pd.concat([where(orders, policy=reference), where(part, who=AGENT)])
    agent, first = shown["who"] == AGENT, shown["step"] == steps[0]
    begin = shown["before_s"].mask(agent | first, 0.0)
    base, less, more, ours = BARS.values()
    colours = np.select([agent, first, shown["wait_s"] < begin], [ours, base, less], more)
    y = [steps.index(step) if step in steps else len(steps) for step in shown["step"]]
    axis.barh(y, shown["wait_s"] - begin, 0.62, begin, color=colours)
    for at, wait_h in zip(y, shown["wait_s"]):
        at_right = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "center"}
        style.label(axis, f"{show(wait_h, 'number')} h", (1, at), (-2, 0), 7, **at_right)
    for policy, (marker, colour) in marks.items():
        rows = where(orders, policy=policy)
        if policy != reference:
            style.marks(axis, rows["wait_s"], rows["step"].map(steps.index), marker, colour, 4.5, markeredgewidth=0)
    axis.set_xlim(0, 1.45 * part["wait_s"].max() or 1)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=4))
    axis.xaxis.set_major_formatter(style.PLAIN)
    axis.set_xlabel("Mean wait (h)")


HEADROOM = {
    "basic": ("FIFO, no backfilling", "o", style.SCHEDULER["base"]),
    "strong": ("best heuristic", "s", style.SCHEDULER["baseline"]),
    "agent": ("RLTune", "D", style.SCHEDULER["rltune"]),
    "same_exact": ("the same heuristic,\nexact run times", "^", style.GREEN),
    "strong_exact": ("best heuristic,\nexact run times", "v", style.SKY),
    "bound": ("lower bound", "|", style.INK),
}
"""Kind of a schedule → its name, marker and colour."""


@style.styled()
def headroom(numbers: pd.DataFrame) -> Drawing:
    """A panel per workload, mean waits as dots on a logarithmic axis; ``numbers`` as rltune.evaluation.studies.summaries gives
    it, which is also the frame, with `title` (the heuristic)."""
    frame = numbers.assign(title=scheduler_titles(numbers).where(numbers["policy"] != "", ""))
    shown = [what for what in HEADROOM if what in set(frame["what"])]
    parts = dict(list(frame.groupby("workload", sort=False)))
    figure, axes = style.panels(list(parts), 3, 2.3, 0.4, sharey=True)
    for axis, part in zip(axes, parts.values()):
        part = part[part["wait_s"] > 0]  # a bound of nothing has no place on a logarithmic axis
        left = part["wait_s"].min() / 1.6
        for _, row in part.iterrows():
            _, marker, colour = HEADROOM[row["what"]]
            wait, y = row["wait_s"], shown.index(row["what"])
            axis.plot([left, wait], [y, y], color=style.GRID, linewidth=1.2, zorder=1)
            style.marks(axis, [wait], [y], marker, colour, 7, mew=2.2 if marker == "|" else 0, zorder=3)
            style.label(axis, show(wait, "seconds"), (wait, y), (6, 0), 7.5, va="center")
            if row["what"] == "strong":
                style.label(axis, row["title"], (wait, y), (0, 5), 6.5, va="bottom", color=style.MUTED)
        axis.set(xscale="log", xlabel="Mean wait (s)")
        if len(part):
            axis.set_xlim(left, part["wait_s"].max() * 3.2)
        axis.xaxis.set_major_formatter(style.PLAIN)
        axis.xaxis.set_minor_formatter(NullFormatter())
    style.name_rows(axes[0], [HEADROOM[what][0] for what in shown])
    workloads = [
        {row["what"]: row | {"name": HEADROOM[row["what"]][0].replace("\n", " ")} for row in part.to_dict("records")}
        for part in parts.values()
    ]
    return describe("headroom", frame, workloads=workloads), frame, figure


SCHEDULERS = {
    "base": ("base policy", "o", style.SCHEDULER["base"]),
    "strong": ("best heuristic", "s", style.SCHEDULER["baseline"]),
    "rltune": ("RLTune", "D", style.SCHEDULER["rltune"]),
}
MEASURES = {"wait_s": "Mean wait (s)", "bsld": "Mean slowdown"}


@style.styled()
def fairness(sizes: pd.DataFrame) -> Drawing:
    """Mean wait on the left and mean bounded slowdown on the right by class of job size: a row of panels a workload.

    ``sizes``: workload, data, sequence_jobs, policy, backfill and the columns of rltune.evaluation.groups.by_group by
    size; the frame is the same with `title` (the scheduler).
    """
    frame = sizes.assign(title=scheduler_names(sizes))
    panels = [(workload, measure) for workload in dict.fromkeys(frame["workload"]) for measure in MEASURES]
    figure, axes = style.panels([workload for workload, _ in panels], 2, 2.2)
    colours = {scheduler: colour for scheduler, (*_, colour) in SCHEDULERS.items()}
    markers = [marker for _, marker, _ in SCHEDULERS.values()]
    for axis, (workload, measure) in zip(axes, panels):
        part = where(frame, workload=workload)
        points(axis, part, "group", measure, "scheduler", colours, 0.2, markers=markers, legend=False)
        if measure == "wait_s" and part[measure].min() < 2 * style.LINEAR_BELOW_S:
            axis.set_yscale("symlog", linthresh=style.LINEAR_BELOW_S, linscale=0.5)
            axis.set_ylim(-1, max(3 * part[measure].max(), 2 * style.LINEAR_BELOW_S))
        else:
            axis.set_yscale("log")
        axis.set(xlabel="GPUs (CPUs) of a job", ylabel=MEASURES[measure])
        axis.yaxis.set_major_formatter(style.PLAIN)
    style.legend(figure, [style.handle(name, colour, marker) for name, marker, colour in SCHEDULERS.values()])
    facts = {
        "schedulers": frame.groupby("workload", sort=False)["title"].unique().items(),
        "names": {scheduler: name for scheduler, (name, *_) in SCHEDULERS.items()},
        "sizes": frame["group"].unique(),
    }
    return describe("fairness", frame, **facts), frame, figure


SHOWN = ("fifo", "sjf", "saf")
"""Orders that are drawn; the table has all."""
LOAD_MARKS = {"slice": ("s", style.ORANGE, 6, "left"), "balanced": ("o", style.BLUE, -6, "right")}
"""Marker and colour of a load, and the offset and alignment of the number next to it."""


@style.styled()
def loads_compared(numbers: pd.DataFrame) -> Drawing:
    """A panel a workload: mean wait of each scheduler on the slice and on the balanced cluster.

    ``numbers``: the frame of `tables.loads_compared`; the frame has its rows that are drawn: orders of SHOWN, the best
    heuristics, and the agent.
    """
    best = numbers["slice_best"] | numbers["balanced_best"]
    frame = numbers[numbers["policy"].isin(SHOWN) | (numbers["role"] == RLTUNE) | best].reset_index(drop=True)
    parts = dict(list(frame.groupby("workload", sort=False)))
    tall = [len(rows) + 2 for rows in parts.values()]
    titles = []
    for workload, rows in parts.items():
        offered = [f"{LOADS[load].lower()} {show(rows[f'{load}_offered'].iloc[0], 'number')}" for load in LOADS]
        titles.append(f"{workload}: offered load, {', '.join(offered)}")
    figure, axes = style.panels(titles, 1, 0.23 * sum(tall) / len(tall), 0.9, sharex=True, height_ratios=tall)
    top = float(frame[[f"{load}_wait_s" for load in LOADS]].max().max())
    axes[0].set_xscale("symlog", linthresh=style.LINEAR_BELOW_S, linscale=0.5)
    for axis, rows in zip(axes, parts.values()):
        axis.hlines(range(len(rows)), rows["slice_wait_s"], rows["balanced_wait_s"], color=style.MUTED, linewidth=0.9)
        for load, (marker, colour, offset, side) in LOAD_MARKS.items():
            waits = rows[f"{load}_wait_s"]
            style.marks(axis, waits, range(len(rows)), marker, colour, label=LOADS[load], clip_on=False, zorder=3)
            for y, wait in enumerate(waits):
                style.label(axis, show(wait, "seconds"), (wait, y), (offset, 0), 7, ha=side, va="center")
        style.name_rows(axis, list(rows["title"]))
    axes[-1].set_xlim(-0.35 * style.LINEAR_BELOW_S, max(4 * top, 5 * style.LINEAR_BELOW_S))
    style.fixed_ticks(axes[-1].xaxis, style.decades(4 * top))
    axes[-1].set_xlabel("Mean wait (s)")
    style.legend_of(axes[0])
    return describe("loads-compared", frame, linear_below=style.LINEAR_BELOW_S), frame, figure
