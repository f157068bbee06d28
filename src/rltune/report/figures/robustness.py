"""What worse run-time estimates cost agents and heuristics."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from rltune.evaluation.intervals import Improvement, Intervals
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import policy_title, varying, where
from rltune.report.format import show
from rltune.report.style import (
    BLUE,
    GREEN,
    INK,
    MARKERS,
    MUTED,
    ORANGE,
    PERCENT,
    PURPLE,
    SKY,
    VERMILION,
    WIDTH_IN,
    scheduler_title,
    styled,
)
from rltune.report.transferred import HOME, SAME_AGENT, less, waits

SIDES = (("share", "Mean wait / FIFO’s"), ("more", "More wait than\nwith exact estimates"))
COLOUR = {"FIFO": MUTED, "SJF": VERMILION, "SAF": PURPLE, "FIFO + EASY": ORANGE, "SAF + EASY": GREEN}
AGENTS = (BLUE, SKY)
HIGHEST = 2.0
"""Panels end here: a share of FIFO's wait, or more wait as a fraction, beyond this is off the drawing."""


def robustness(
    cells: pd.DataFrame, runs: pd.DataFrame, by: Intervals, reference: tuple[str, str] = ("fifo", "none")
) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Lines over the spread of the estimates, a column of panels a trace; bands are intervals.

    ``cells`` as `report.read` gives them, ``runs`` as `evaluation.studies.transfer.under_noise` does. The frame has a row a
    trace × scheduler × sigma: ``mean_s``; ``share`` of the wait of ``reference`` (policy, backfill), which goes by no
    estimate, with ``share_low`` and ``share_high``; ``more``, the wait beyond the same scheduler's with exact
    estimates, a fraction of that, with its interval. Agents that differ by seed are one scheduler.
    """
    titles = cells.drop_duplicates(HOME).set_index(HOME)["trace_title"]
    several = runs["locality"].nunique() > 1
    rows: list[dict[str, Any]] = []
    for (trace, cluster, locality), found in runs.groupby([*HOME, "locality"], sort=False):
        title = titles[trace, cluster] + (f", {locality}" if several else "")
        here = where(cells, trace=trace, cluster=cluster, locality=locality)
        for kind, name, mine in _schedulers(here, found):
            exact = waits(where(mine, sigma=0.0))
            for sigma, at in mine.groupby("sigma"):
                ours = waits(at)
                plain = where(found, sigma=sigma, cell="", policy=reference[0], backfill=reference[1])
                less_than = less(ours, waits(plain), by)
                better = less(ours, exact, by) if sigma else Improvement(0.0, 0.0, 0.0)
                rows.append(
                    {
                        "trace_title": title,
                        "data": cells.loc[cells["trace"] == trace, "data"].iloc[0],
                        "kind": kind,
                        "scheduler": name,
                        "sigma": sigma,
                        "sequence_jobs": int(at["sequence_jobs"].iloc[0]),
                        "windows": len(ours),
                        "mean_s": ours.to_numpy().mean(),
                        "share": 1 - less_than.gain,
                        "share_low": 1 - less_than.high,
                        "share_high": 1 - less_than.low,
                        "more": -better.gain,
                        "more_low": -better.high,
                        "more_high": -better.low,
                    }
                )
    frame = pd.DataFrame(rows)
    figure = _draw(frame)
    return _artefact(frame, cells, scheduler_title(*reference), by.confidence), frame, figure


def _schedulers(cells: pd.DataFrame, runs: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """(agent or heuristic, title, its rows) of one workload, agents first."""
    differ = [c for c in varying(cells) if c != "seed"]
    found = []
    for _, group in cells.groupby(SAME_AGENT, sort=False):
        cell = group.iloc[0]
        mine = runs[runs["cell"].isin(group["cell"])]
        named = [policy_title(cell["policy"]), *(str(cell[c]) for c in differ)]
        if len(mine):
            found.append(("agent", f"RLTune, trained on {', '.join(named)}", mine))
    for (policy, backfill), mine in where(runs, cell="").groupby(["policy", "backfill"], sort=False):
        found.append(("heuristic", scheduler_title(policy, backfill), mine))
    return found


def _artefact(frame: pd.DataFrame, cells: pd.DataFrame, reference: str, confidence: float) -> Artefact:
    worst = frame[frame["sigma"] == frame["sigma"].max()]
    rows = [
        f"{r['trace_title']}, {r['scheduler']}: {show(r['share'], 'number')} of {reference}’s wait, "
        f"{show(r['more'], 'percent')} more than with exact estimates"
        for _, r in worst.iterrows()
    ]
    return describe(
        "robustness",
        frame,
        reference=reference,
        confidence=confidence,
        factor=math.exp(worst["sigma"].iloc[0]),
        trained=", ".join(dict.fromkeys(cells["estimate"])),
        windows=int(frame["windows"].max()),
        n=frame["sequence_jobs"].max(),
        highest=HIGHEST,
        off=bool((frame[["share", "more"]] > HIGHEST).any().any()),
        worst="; ".join(rows),
    )


@styled()
def _draw(frame: pd.DataFrame) -> Figure:
    traces = list(dict.fromkeys(frame["trace_title"]))
    agents = list(dict.fromkeys(frame.loc[frame["kind"] == "agent", "scheduler"]))
    heuristics = list(dict.fromkeys(frame.loc[frame["kind"] == "heuristic", "scheduler"]))
    looks: dict[str, dict[str, Any]] = {}
    for i, name in enumerate(agents):
        looks[name] = {"color": AGENTS[i % 2], "linestyle": "-", "marker": MARKERS[i % len(MARKERS)], "linewidth": 1.9}
    for i, name in enumerate(heuristics, 2):
        looks[name] = {"color": COLOUR.get(name, INK), "linestyle": "--", "marker": MARKERS[i % len(MARKERS)]}
        looks[name]["linewidth"] = 1.3
    legend = -(-len(looks) // 3)
    figure = Figure(figsize=(WIDTH_IN, 4.2 + 0.17 * legend))
    axes = figure.subplots(2, len(traces), sharex=True, sharey="row", squeeze=False)
    for column, trace in enumerate(traces):
        for row, (value, title) in enumerate(SIDES):
            axis = axes[row][column]
            for name, look in looks.items():
                _line(axis, where(frame, trace_title=trace, scheduler=name).sort_values("sigma"), value, look)
            if not row:
                axis.set_title(trace)
            if not column:
                axis.set_ylabel(title)
    _scale(axes[0][0], frame, "share", 0.0)
    _scale(axes[1][0], frame, "more", -0.1)
    axes[1][0].yaxis.set_major_formatter(PERCENT)
    axes[0][0].set_xticks(sorted(frame["sigma"].unique()))
    axes[0][0].xaxis.set_major_formatter(FuncFormatter(lambda v, _: show(v, "printed")))
    figure.supxlabel("Spread of the estimates (σ)", fontsize=9)
    handles = [Line2D([], [], label=name, markersize=4, **look) for name, look in looks.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(3, len(handles)))
    return figure


def _line(axis: Axes, rows: pd.DataFrame, value: str, look: dict[str, Any]) -> None:
    axis.fill_between(
        rows["sigma"],
        rows[f"{value}_low"],
        rows[f"{value}_high"],
        color=look["color"],
        alpha=0.16 if look["linestyle"] == "-" else 0.07,
        linewidth=0,
    )
    axis.plot(rows["sigma"], rows[value], markersize=4, **look)


def _scale(axis: Axes, frame: pd.DataFrame, value: str, least: float) -> None:
    """What the lines need, and a little of the bands."""
    lines = frame[value].dropna()
    low, high = (float(lines.min()), float(lines.max())) if len(lines) else (0.0, 1.0)
    room = 0.15 * max(high - low, 0.1)
    axis.set_ylim(min(least, max(low - room, -1.0)), min(high + room, HIGHEST))
