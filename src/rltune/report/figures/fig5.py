"""Figure 5: how CPU and GPU traces differ in waits, run times and what they allocate."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.style import MUTED, WIDTH_IN, marks, styled, trace_colours

PANELS = {"avg_run_s": "Mean run time (s)", "alloc": "Allocated GPUs or CPUs (per 30 days)"}
MARKER = {"CPU": "o", "GPU": "s"}
LEAST_WAIT_S = 1.0
"""Shorter mean waits are drawn here, since the axis is logarithmic."""


def fig5(statistics: pd.DataFrame, paper: PaperResults) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Mean run time and allocated resources against mean wait: a point a trace, ours and the paper's.

    ``statistics`` as for Table 2. The frame has one row a point: trace, type, data, row (ours | paper), avg_wait_s,
    avg_run_s, alloc, wait_is. Traces without any wait are left out and noted. Raises ValueError when that is all.
    """
    columns = ["trace", "type", "data", "avg_wait_s", "avg_run_s", "alloc", "wait_is"]
    ours = statistics[statistics["avg_wait_s"].notna()][columns].assign(row="ours")
    if ours.empty:
        raise ValueError("no trace has a wait, recorded or simulated")
    printed = _printed(paper)
    frame = pd.concat([ours, printed], ignore_index=True)
    figure = _draw(frame, {t: paper.trace(t) for t in ours["trace"]})
    without = sorted(set(statistics["trace"]) - set(ours["trace"]))
    simulated = ours[ours["wait_is"].str.startswith("simulated")]
    notes = [f"{r['trace']}: waits {r['wait_is']}." for _, r in simulated.iterrows()]
    notes += [f"Without a wait, and so not drawn: {', '.join(without)}."] if without else []
    if (frame["avg_wait_s"] < LEAST_WAIT_S).any():
        notes.append(f"Mean waits below {LEAST_WAIT_S:.0f} s are drawn at {LEAST_WAIT_S:.0f} s.")
    return describe("fig5", frame, paper, rows=ours, notes=notes, alt=_alt(ours)), frame, figure


def _printed(paper: PaperResults) -> pd.DataFrame:
    """The paper's points, from its Table 2."""
    entries = paper.artefacts["table2"].entries
    traces = dict.fromkeys(key.rsplit(".", 1)[0] for key in entries)
    return pd.DataFrame(
        [
            {
                "trace": t,
                "type": entries[f"{t}.type"].text,
                "data": "",
                "wait_is": "",
                "row": "paper",
                **{c: paper.value("table2", t, c) for c in ("avg_wait_s", "avg_run_s", "alloc")},
            }
            for t in traces
        ]
    )


def _alt(ours: pd.DataFrame) -> str:
    points = [
        f"{r['trace']} ({r['type']}) waits {show(r['avg_wait_s'], 'seconds')} s, runs "
        f"{show(r['avg_run_s'], 'seconds')} s, allocates {show(r['alloc'], 'int')}"
        for _, r in ours.iterrows()
    ]
    return f"Two scatter plots over the mean wait. This run’s traces: {'; '.join(points)}."


@styled()
def _draw(frame: pd.DataFrame, papers: dict[str, str]) -> Figure:
    printed = where(frame, row="paper")
    lonely = {t: t for t in printed["trace"] if t not in papers.values()}
    colours = trace_colours({**papers, **lonely})
    figure = Figure(figsize=(WIDTH_IN, 3.5))
    axes = figure.subplots(1, 2)
    for axis, (column, label) in zip(axes, PANELS.items()):
        for _, row in where(frame, row="ours").iterrows():
            colour, paper = colours[row["trace"]], printed[printed["trace"] == papers[row["trace"]]]
            if len(paper):
                _point(axis, paper.iloc[0], column, colour)
                axis.plot(
                    [_wait(paper.iloc[0]), _wait(row)],
                    [paper[column].iloc[0], row[column]],
                    color=colour,
                    linewidth=0.8,
                    alpha=0.6,
                )
            _point(axis, row, column, colour, colour)
        for _, row in printed[printed["trace"].isin(lonely)].iterrows():
            _point(axis, row, column, colours[row["trace"]])
        axis.set(xscale="log", yscale="log", xlabel="Mean wait (s)", ylabel=label)
        axis.margins(0.12)
        for scale, steps in ((axis.xaxis, (1,)), (axis.yaxis, (1, 2, 5))):
            scale.set_major_locator(LogLocator(subs=steps))
            scale.set_major_formatter(FuncFormatter(_plain))
            scale.set_minor_locator(NullLocator())
    types = dict(zip(frame["trace"], frame["type"]))

    def handle(marker: str, colour: str, name: str, face: str) -> Line2D:
        return Line2D([], [], linestyle="none", marker=marker, color=colour, markerfacecolor=face, label=name)

    handles = [handle(MARKER[types[t]], c, t, c if t in papers else "none") for t, c in colours.items()]
    handles += [handle("o", MUTED, "CPU", MUTED), handle("s", MUTED, "GPU", MUTED), handle("s", MUTED, "paper", "none")]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 6))
    return figure


def _plain(value: float, _: object = None) -> str:
    """1,000 or 2 M: powers of ten written out."""
    return f"{value / 1e6:g} M" if value >= 1e6 else f"{value:,g}"


def _wait(row: pd.Series) -> float:
    return max(row["avg_wait_s"], LEAST_WAIT_S)


def _point(axis: Axes, row: pd.Series, column: str, colour: str, face: str = "none") -> None:
    # hollow ones are larger and on top, so that two at one place are both seen
    look = {"markerfacecolor": face, "markeredgewidth": 1.3}
    hollow = face == "none"
    marks(axis, [_wait(row)], [row[column]], MARKER[row["type"]], colour, 9 if hollow else 6, zorder=3 + hollow, **look)
