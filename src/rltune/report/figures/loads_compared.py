"""How much there is to gain when the cluster can handle its load."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rltune.report import style
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.format import show
from rltune.report.tables.loads_compared import AGENT, LOADS

SHOWN = ("fifo", "sjf", "saf")
"""Orders that are drawn; the table has all."""
LOOKS = {"slice": ("s", style.ORANGE, 6, "left"), "balanced": ("o", style.BLUE, -6, "right")}
"""Mark and colour of a load, and where the number stands beside the mark."""
LINEAR_BELOW_S = 10.0
"""The axis is logarithmic above this and linear below: on a balanced cluster jobs may not wait at all."""


def loads_compared(numbers: pd.DataFrame) -> tuple[Artefact, pd.DataFrame, Figure]:
    """A panel a workload: mean wait of each scheduler on the slice and on the balanced cluster.

    ``numbers``: the frame of `tables.loads_compared`; the frame has its rows that are drawn: orders of SHOWN, the best
    heuristics, and the agent.
    """
    best = numbers["slice_best"] | numbers["balanced_best"]
    frame = numbers[numbers["policy"].isin(SHOWN) | (numbers["role"] == AGENT) | best].reset_index(drop=True)
    return describe("loads-compared", frame, linear_below=LINEAR_BELOW_S), frame, _draw(frame)


@style.styled()
def _draw(frame: pd.DataFrame) -> Figure:
    rows_of = dict(list(frame.groupby("workload", sort=False)))
    tall = [len(rows) + 2 for rows in rows_of.values()]
    titles = []
    for workload, rows in rows_of.items():
        offered = [f"{LOADS[load].lower()} {show(rows[f'{load}_offered'].iloc[0], 'number')}" for load in LOADS]
        titles.append(f"{workload}: offered load, {', '.join(offered)}")
    figure, axes = style.panels(titles, 1, 0.23 * sum(tall) / len(tall), 0.9, sharex=True, height_ratios=tall)
    top = float(frame[[f"{load}_wait_s" for load in LOADS]].max().max())
    axes[0].set_xscale("symlog", linthresh=LINEAR_BELOW_S, linscale=0.5)
    for axis, rows in zip(axes, rows_of.values()):
        axis.hlines(range(len(rows)), rows["slice_wait_s"], rows["balanced_wait_s"], color=style.MUTED, linewidth=0.9)
        for load, (marker, colour, offset, side) in LOOKS.items():
            waits = rows[f"{load}_wait_s"]
            style.marks(axis, waits, range(len(rows)), marker, colour, label=LOADS[load], clip_on=False, zorder=3)
            for y, wait in enumerate(waits):
                style.label(axis, show(wait, "seconds"), (wait, y), (offset, 0), 7, ha=side, va="center")
        style.name_rows(axis, list(rows["title"]))
    axes[-1].set_xlim(-0.35 * LINEAR_BELOW_S, max(4 * top, 5 * LINEAR_BELOW_S))
    style.fixed_ticks(axes[-1].xaxis, [0, *(10.0**k for k in range(1, 9) if 10.0**k <= 4 * top)])
    axes[-1].set_xlabel("Mean wait (s)")
    style.legend_of(axes[0])
    return figure
