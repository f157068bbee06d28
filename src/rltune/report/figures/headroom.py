"""The headroom: heuristics, the agent, perfect estimates and a lower bound for any schedule."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.format import show, show_interval, three_digits
from rltune.report.style import GREEN, GRID, INK, MUTED, SCHEDULER, SKY, WIDTH_IN, label, marks, scheduler_title, styled

LOOKS = {
    "basic": ("FIFO, no backfilling", "o", SCHEDULER["base"]),
    "strong": ("best heuristic", "s", SCHEDULER["baseline"]),
    "agent": ("RLTune", "D", SCHEDULER["rltune"]),
    "same_exact": ("the same heuristic,\nexact run times", "^", GREEN),
    "strong_exact": ("best heuristic,\nexact run times", "v", SKY),
    "bound": ("lower bound", "|", INK),
}
"""What is looked at: its name, mark and colour."""
ACROSS = 3


def headroom(numbers: pd.DataFrame, confidence: float) -> tuple[Artefact, pd.DataFrame, Figure]:
    """A panel per workload, mean waits as dots on a logarithmic axis; ``numbers`` as rltune.evaluation.studies.summaries gives
    it, which is also the frame, with `title` (the heuristic)."""
    frame = numbers.assign(
        title=[scheduler_title(p, b) if p else "" for p, b in zip(numbers["policy"], numbers["backfill"], strict=True)]
    )
    figure = _draw(frame)
    waits = [
        f"{workload}: " + ", ".join(f"{_plain(r['what'])} {show(r['wait_s'], 'seconds')} s" for _, r in part.iterrows())
        for workload, part in frame.groupby("workload", sort=False)
    ]
    workloads = [_summary(part, confidence) for _, part in frame.groupby("workload", sort=False)]
    return describe("headroom", frame, workloads=workloads, waits="; ".join(waits)), frame, figure


def _summary(part: pd.DataFrame, confidence: float) -> str:
    rows = {r["what"]: r for _, r in part.iterrows()}
    strong, exact, agent, bound = (rows[k] for k in ("strong", "same_exact", "agent", "bound"))
    said = f"{strong['workload']}: best heuristic {strong['title']}, {show(strong['wait_s'], 'seconds')} s; less wait"
    for name, row in (("RLTune", agent), ("the same with exact run times", exact)):
        said += f"{' than that:' if row is agent else ','} {name} {show(row['less'], 'percent')}"
        if not pd.isna(row["low"]):
            said += f" ({show_interval(row['low'], row['high'], 'percent')}, {100 * confidence:.0f} % interval)"
    over = f" ({show(strong['over_bound'], 'number')} times lower)" if not pd.isna(strong["over_bound"]) else ""
    return f"{said}; bound {show(bound['wait_s'], 'seconds')} s{over}; {strong['windows']} windows."


def _plain(what: str) -> str:
    return LOOKS[what][0].replace("\n", " ")


@styled()
def _draw(frame: pd.DataFrame) -> Figure:
    workloads = list(dict.fromkeys(frame["workload"]))
    places = {what: i for i, what in enumerate(w for w in LOOKS if w in set(frame["what"]))}
    down, across = math.ceil(len(workloads) / ACROSS), min(ACROSS, len(workloads))
    figure = Figure(figsize=(WIDTH_IN, 0.4 + 2.3 * down))
    panels = figure.subplots(down, across, sharey=True, squeeze=False)
    for axis, workload in zip(panels.flat, workloads):
        _panel(axis, where(frame, workload=workload), places)
    for axis in panels.flat[len(workloads) :]:
        axis.set_visible(False)
    panels[0][0].set_yticks(list(places.values()), [LOOKS[what][0] for what in places])
    panels[0][0].set_ylim(len(places) - 0.5, -0.6)
    return figure


def _panel(axis: Axes, part: pd.DataFrame, places: dict[str, int]) -> None:
    drawn = part[part["wait_s"] > 0]  # a bound of nothing has no place on a logarithmic axis
    axis.set_xscale("log")
    if len(drawn):
        axis.set_xlim(drawn["wait_s"].min() / 1.6, drawn["wait_s"].max() * 3.2)
    for _, r in drawn.iterrows():
        _, marker, colour = LOOKS[r["what"]]
        y = places[r["what"]]
        axis.plot([axis.get_xlim()[0], r["wait_s"]], [y, y], color=GRID, linewidth=1.2, zorder=1)
        thick = marker == "|"
        marks(axis, [r["wait_s"]], [y], marker, colour, 10 if thick else 6, mew=2.2 if thick else 0, zorder=3)
        label(axis, show(r["wait_s"], "seconds"), (r["wait_s"], y), (6, 0), 7.5, va="center", color=INK)
    heuristics = where(part, what="strong")
    if len(heuristics):
        at = (heuristics["wait_s"].iloc[0], places["strong"])
        label(axis, heuristics["title"].iloc[0], at, (0, 5), 6.5, ha="left", va="bottom", color=MUTED)
    axis.set_title(part["workload"].iloc[0])
    wide = not len(drawn) or drawn["wait_s"].max() > 12 * drawn["wait_s"].min()
    axis.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0,) if wide else (1.0, 3.0), numticks=8))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: three_digits(v).split(".")[0] if v >= 1 else f"{v:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("Mean wait (s)")
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
