"""How a gain shrinks, or not, when the cluster can keep up."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from rltune.report.artefact import Artefact
from rltune.report.format import show
from rltune.report.style import BLUE, INK, ORANGE, WIDTH_IN, styled
from rltune.report.tables.common import data_labels, where
from rltune.report.tables.loads_compared import AGENT, LOADS

SHOWN = ("fifo", "sjf", "saf")
"""Orders that are drawn; the table has all."""
LOOKS = {"slice": ("s", ORANGE), "balanced": ("o", BLUE)}
LEAST = -1.0
"""The axis ends here: what is worse than twice the wait is drawn at its edge, and its number stands in the CSV."""


def loads_compared(numbers: pd.DataFrame, source: str = "") -> tuple[Artefact, pd.DataFrame, Figure]:
    """A panel a workload: how much less than base each scheduler waits on the slice and on the balanced cluster.

    ``numbers``: the frame of `tables.loads_compared`; the frame has its rows that are drawn: orders of SHOWN, the best
    heuristics, and the agent.
    """
    best = numbers["slice_best"] | numbers["balanced_best"]
    frame = numbers[numbers["policy"].isin(SHOWN) | (numbers["role"] == AGENT) | best].reset_index(drop=True)
    with styled():
        figure = _draw(frame)
    told = [f"{r['workload']} {r['title']}: slice {show(r['slice_less'], 'percent')}, balanced "
            f"{show(r['balanced_less'], 'percent')}" for _, r in frame.iterrows()]
    return Artefact(
        "loads-compared", "figure", "Overloaded slices beside balanced clusters",
        caption="How much less than the base policy each scheduler waits, on the overloaded slice and on the same "
        "nodes with arrivals thinned to what they can keep up with, with intervals. RLTune was trained on the slice only. "
        f"What waits more than {1 - LEAST:.0f} times as long as the base stands at the left edge.",
        data=data_labels(frame), source=source,
        alt=f"Less wait than base: {'; '.join(told)}.",
    ), frame, figure


def _draw(frame: pd.DataFrame) -> Figure:
    workloads = list(dict.fromkeys(frame["workload"]))
    tall = [len(where(frame, workload=w)) for w in workloads]
    figure = Figure(figsize=(WIDTH_IN, 0.9 + sum(0.45 + 0.22 * n for n in tall)))
    panels = figure.subplots(len(workloads), 1, sharex=True, squeeze=False, height_ratios=[n + 1.5 for n in tall])[:, 0]
    for axis, workload in zip(panels, workloads):
        rows = where(frame, workload=workload)
        for load, (marker, colour) in LOOKS.items():
            y = [i + (0.16 if load == "balanced" else -0.16) for i in range(len(rows))]
            less, low, high = (rows[f"{load}_{c}"].to_numpy(float) for c in ("less", "low", "high"))
            x = less.clip(LEAST, 1)
            axis.errorbar(x, y, xerr=[(x - low.clip(LEAST, 1)).clip(0), (high.clip(LEAST, 1) - x).clip(0)], fmt=marker,
                          color=colour, markersize=5, elinewidth=1.1, capsize=2, label=LOADS[load])
        axis.axvline(0, color=INK, linewidth=0.9)
        axis.set_yticks(range(len(rows)), rows["title"])
        axis.set_ylim(len(rows) - 0.4, -0.6)
        axis.set_xlim(LEAST - 0.04, 1.04)
        offered = [f"{LOADS[load].lower()} {show(rows[f'{load}_offered'].iloc[0], 'number')}" for load in LOADS]
        axis.set_title(f"{workload}: offered load, {', '.join(offered)}")
        axis.grid(axis="y", visible=False)
        axis.tick_params(axis="y", length=0)
    panels[-1].xaxis.set_major_formatter(FuncFormatter(lambda v, _: show(round(v, 6), "percent").replace(".0", "")))
    panels[-1].set_xlabel("Less mean wait than base")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    return figure
