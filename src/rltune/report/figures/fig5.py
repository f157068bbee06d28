"""Figure 5: how CPU and GPU traces differ in waits, run times and what they allocate."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

from rltune.report import style
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.paper import PaperResults

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
    facts = {
        "simulated": ours[ours["wait_is"].str.startswith("simulated")].to_dict("records"),
        "lacking": sorted(set(statistics["trace"]) - set(ours["trace"])),
        "short": (frame["avg_wait_s"] < LEAST_WAIT_S).any(),
        "least_wait_s": LEAST_WAIT_S,
    }
    return describe("fig5", frame, paper, rows=ours, **facts), frame, figure


def _printed(paper: PaperResults) -> pd.DataFrame:
    """The paper's points, from its Table 2."""
    entries = paper.artefacts["table2"].entries
    rows = []
    for trace in dict.fromkeys(key.rsplit(".", 1)[0] for key in entries):
        values = {c: paper.value("table2", trace, c) for c in ("avg_wait_s", "avg_run_s", "alloc")}
        rows.append(
            {"trace": trace, "type": entries[f"{trace}.type"].text, "data": "", "wait_is": "", "row": "paper", **values}
        )
    return pd.DataFrame(rows)


@style.styled()
def _draw(frame: pd.DataFrame, papers: dict[str, str]) -> Figure:
    """``papers``: ours → the paper's name of it, "" for none."""
    lonely = {t: t for t in where(frame, row="paper")["trace"] if t not in papers.values()}
    colours = style.trace_colours({**papers, **lonely})
    figure, axes = style.panels([""] * len(PANELS), 2, 3.0)
    for axis, (column, name) in zip(axes, PANELS.items()):
        for trace, colour in colours.items():
            both = [where(frame, row="ours", trace=trace), where(frame, row="paper", trace=papers.get(trace, trace))]
            points = pd.concat(both)
            waits = points["avg_wait_s"].clip(lower=LEAST_WAIT_S)
            axis.plot(waits, points[column], color=colour, linewidth=0.8, alpha=0.6)
            for wait, (_, row) in zip(waits, points.iterrows()):
                # hollow ones are larger and on top, so that two at one place are both seen
                hollow = row["row"] == "paper"
                look = {"mfc": "none" if hollow else colour, "mew": 1.3, "zorder": 3 + hollow}
                style.marks(axis, [wait], [row[column]], MARKER[row["type"]], colour, 9 if hollow else 6, **look)
        axis.set(xscale="log", yscale="log", xlabel="Mean wait (s)", ylabel=name)
        axis.margins(0.12)
        for scale in (axis.xaxis, axis.yaxis):
            scale.set_major_locator(LogLocator(subs=(1, 3)))
            scale.set_major_formatter(EngFormatter(sep=""))
            scale.set_minor_locator(NullLocator())
    types = dict(zip(frame["trace"], frame["type"]))
    handles = [style.handle(t, c, MARKER[types[t]], mfc=c if t in papers else "none") for t, c in colours.items()]
    handles += [style.handle(kind, style.MUTED, marker) for kind, marker in MARKER.items()]
    style.legend(figure, [*handles, style.handle("paper", style.MUTED, "s", mfc="none")])
    return figure
