"""How much there is to gain when the cluster can handle its load."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.format import show
from rltune.report.style import (
    BLUE,
    INK,
    MUTED,
    ORANGE,
    WIDTH_IN,
    label,
    legend_above,
    marks,
    rows_of_dots,
    styled,
    symlog_ticks,
)
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
    figure = _draw(frame)
    waits = [
        f"{r['workload']} {r['title']}: slice {show(r['slice_wait_s'], 'seconds')} s, balanced "
        f"{show(r['balanced_wait_s'], 'seconds')} s"
        for _, r in frame.iterrows()
    ]
    return describe("loads-compared", frame, linear_below=LINEAR_BELOW_S, waits="; ".join(waits)), frame, figure


@styled()
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
            marks(axis, waits, range(len(rows)), marker, colour, label=LOADS[load], clip_on=False, zorder=3)
            side, where_ = (6, "left") if load == "slice" else (-6, "right")
            for y, wait in enumerate(waits):
                label(axis, show(wait, "seconds"), (wait, y), (side, 0), 7, color=INK, ha=where_, va="center")
        axis.set_yticks(range(len(rows)), rows["title"])
        rows_of_dots(axis, len(rows))
        offered = [f"{LOADS[load].lower()} {show(rows[f'{load}_offered'].iloc[0], 'number')}" for load in LOADS]
        axis.set_title(f"{workload}: offered load, {', '.join(offered)}")
    last = panels[-1]
    last.set_xlim(-0.35 * LINEAR_BELOW_S, max(4 * top, 5 * LINEAR_BELOW_S))
    symlog_ticks(last.xaxis, [0, *(10.0**k for k in range(1, 9) if 10.0**k <= 4 * top)])
    last.set_xlabel("Mean wait (s)")
    legend_above(figure, panels[0], 2)
    return figure
