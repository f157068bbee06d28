"""Figure 6: waits come in bursts, batch after batch of jobs."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rltune.report import style
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.paper import PaperResults


def fig6(batches: pd.DataFrame, paper: PaperResults) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Jobs above the median wait, and all waits together, in consecutive batches: a pair of panels a trace.

    ``batches``: trace, data, wait_is and the columns of rltune.traces.statistics.batches. Raises ValueError when
    there are none.
    """
    if batches.empty:
        raise ValueError("no GPU trace has a wait, recorded or simulated")
    figure = _draw(batches, style.trace_colours({t: paper.trace(t) for t in batches["trace"]}))
    ranges = batches.groupby("trace", sort=False)[["above", "wait_h"]].agg(["min", "max"])
    facts = {
        "jobs": " or ".join(map(str, sorted(set(batches["jobs"])))),
        "most": int(batches.groupby("trace")["batch"].count().max()),
        "ranges": dict(zip(ranges.index, ranges.to_numpy().tolist())),
        "traces": batches.drop_duplicates("trace").to_dict("records"),
    }
    return describe("fig6", batches, paper, **facts), batches, figure


@style.styled()
def _draw(batches: pd.DataFrame, colours: dict[str, str]) -> Figure:
    titles = []
    for trace, rows in batches.groupby("trace", sort=False):
        simulated = rows["wait_is"].iloc[0].startswith("simulated")
        titles += [f"{trace}{' (simulated waits)' * simulated}", ""]
    figure, axes = style.panels(titles, 2, 1.7, 0.3)
    for i, (trace, rows) in enumerate(batches.groupby("trace", sort=False)):
        names = {"above": "Jobs above\nthe median wait", "wait_h": "Total wait (h)"}
        for axis, (column, name) in zip(axes[2 * i : 2 * i + 2], names.items()):
            axis.bar(rows["batch"], rows[column], width=1.0, color=colours[str(trace)], linewidth=0)
            axis.set_xlim(rows["batch"].min() - 0.5, rows["batch"].max() + 0.5)
            axis.set(xlabel="Batch", ylabel=name)
            axis.yaxis.set_major_formatter(style.PLAIN)
    return figure
