"""The headroom: heuristics, the agent, perfect estimates and a lower bound for any schedule."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from rltune.report import style
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import schedulers
from rltune.report.format import show

LOOKS = {
    "basic": ("FIFO, no backfilling", "o", style.SCHEDULER["base"]),
    "strong": ("best heuristic", "s", style.SCHEDULER["baseline"]),
    "agent": ("RLTune", "D", style.SCHEDULER["rltune"]),
    "same_exact": ("the same heuristic,\nexact run times", "^", style.GREEN),
    "strong_exact": ("best heuristic,\nexact run times", "v", style.SKY),
    "bound": ("lower bound", "|", style.INK),
}
"""What is looked at: its name, mark and colour."""


def headroom(numbers: pd.DataFrame, confidence: float) -> tuple[Artefact, pd.DataFrame, Figure]:
    """A panel per workload, mean waits as dots on a logarithmic axis; ``numbers`` as rltune.evaluation.studies.summaries gives
    it, which is also the frame, with `title` (the heuristic)."""
    frame = numbers.assign(title=pd.Series(schedulers(numbers), numbers.index).where(numbers["policy"] != "", ""))
    workloads = [
        {row["what"]: row | {"name": LOOKS[row["what"]][0].replace("\n", " ")} for row in part.to_dict("records")}
        for _, part in frame.groupby("workload", sort=False)
    ]
    return describe("headroom", frame, workloads=workloads, confidence=confidence), frame, _draw(frame)


@style.styled()
def _draw(frame: pd.DataFrame) -> Figure:
    shown = [what for what in LOOKS if what in set(frame["what"])]
    figure, axes = style.panels(list(dict.fromkeys(frame["workload"])), 3, 2.3, 0.4, sharey=True)
    for axis, (_, part) in zip(axes, frame.groupby("workload", sort=False)):
        part = part[part["wait_s"] > 0]  # a bound of nothing has no place on a logarithmic axis
        left = part["wait_s"].min() / 1.6
        for _, row in part.iterrows():
            _, marker, colour = LOOKS[row["what"]]
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
    style.name_rows(axes[0], [LOOKS[what][0] for what in shown])
    return figure
