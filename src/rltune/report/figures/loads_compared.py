"""How much there is to win when the cluster can keep up with its load."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.format import show, three_digits
from rltune.report.style import BLUE, INK, MUTED, ORANGE, WIDTH_IN, styled
from rltune.report.common import FIRST_SEED, data_labels, where
from rltune.report.tables.loads_compared import AGENT, LOADS

SHOWN = ("fifo", "sjf", "saf")
"""Orders that are drawn; the table has all."""
LOOKS = {"slice": ("s", ORANGE), "balanced": ("o", BLUE)}
LINEAR_BELOW_S = 10.0
"""The axis is logarithmic above this and linear below: on a balanced cluster jobs may not wait at all."""


def loads_compared(numbers: pd.DataFrame) -> tuple[Artefact, pd.DataFrame, Figure]:
    """A panel a workload: mean wait of each scheduler on the slice and on the balanced cluster.

    ``numbers``: the frame of `tables.loads_compared`; the frame has its rows that are drawn: orders of SHOWN, the best
    heuristics, and the agent.
    """
    best = numbers["slice_best"] | numbers["balanced_best"]
    frame = numbers[numbers["policy"].isin(SHOWN) | (numbers["role"] == AGENT) | best].reset_index(drop=True)
    with styled():
        figure = _draw(frame)
    told = [
        f"{r['workload']} {r['title']}: slice {show(r['slice_wait_s'], 'seconds')} s, balanced "
        f"{show(r['balanced_wait_s'], 'seconds')} s"
        for _, r in frame.iterrows()
    ]
    return (describe("loads-compared", frame, fact=LINEAR_BELOW_S, join="; ".join(told)), frame, figure)


def _draw(frame: pd.DataFrame) -> Figure:
    workloads = list(dict.fromkeys(frame["workload"]))
    tall = [len(where(frame, workload=w)) for w in workloads]
    figure = Figure(figsize=(WIDTH_IN, 0.9 + sum(0.45 + 0.22 * n for n in tall)))
    panels = figure.subplots(len(workloads), 1, sharex=True, squeeze=False, height_ratios=[n + 1.5 for n in tall])[:, 0]
    top = float(frame[[f"{load}_wait_s" for load in LOADS]].max().max())
    for axis, workload in zip(panels, workloads):
        rows = where(frame, workload=workload)
        axis.set_xscale("symlog", linthresh=LINEAR_BELOW_S, linscale=0.5)
        axis.hlines(range(len(rows)), rows["slice_wait_s"], rows["balanced_wait_s"], color=MUTED, linewidth=0.9)
        for load, (marker, colour) in LOOKS.items():
            waits = rows[f"{load}_wait_s"]
            axis.plot(
                waits,
                range(len(rows)),
                linestyle="",
                marker=marker,
                color=colour,
                markersize=5.5,
                label=LOADS[load],
                clip_on=False,
                zorder=3,
            )
            for y, wait in enumerate(waits):
                right = load == "slice"
                axis.annotate(
                    show(wait, "seconds"),
                    (wait, y),
                    xytext=(6 if right else -6, 0),
                    fontsize=7,
                    color=INK,
                    textcoords="offset points",
                    ha="left" if right else "right",
                    va="center",
                )
        axis.set_yticks(range(len(rows)), rows["title"])
        axis.set_ylim(len(rows) - 0.4, -0.6)
        offered = [f"{LOADS[load].lower()} {show(rows[f'{load}_offered'].iloc[0], 'number')}" for load in LOADS]
        axis.set_title(f"{workload}: offered load, {', '.join(offered)}")
        axis.grid(axis="y", visible=False)
        axis.tick_params(axis="y", length=0)
    last = panels[-1]
    last.set_xlim(-0.35 * LINEAR_BELOW_S, max(4 * top, 5 * LINEAR_BELOW_S))
    last.xaxis.set_major_locator(FixedLocator([0, *(10.0**k for k in range(1, 9) if 10.0**k <= 4 * top)]))
    last.xaxis.set_minor_locator(FixedLocator([]))
    last.xaxis.set_major_formatter(FuncFormatter(lambda v, _: "0" if v == 0 else three_digits(v).split(".")[0]))
    last.set_xlabel("Mean wait (s)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    return figure
