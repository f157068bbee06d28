"""Figure 6: waits come in bursts, batch after batch of jobs."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.style import WIDTH_IN, styled, trace_colours

ACROSS = 3


def fig6(batches: pd.DataFrame, paper: PaperResults) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Jobs above the median wait, and all waits together, in consecutive batches: a pair of panels a trace.

    ``batches``: trace, data, wait_is and the columns of rltune.traces.statistics_shape.batches. Raises ValueError when
    there are none.
    """
    if batches.empty:
        raise ValueError("no GPU trace has a wait, recorded or simulated")
    figure = _draw(batches, {t: paper.trace(t) for t in batches["trace"]})
    each = batches.drop_duplicates("trace")
    notes = [
        f"{r['trace']}: waits {r['wait_is']}; median {show(r['median_wait_s'], 'seconds')} s; "
        f"{show(r['of_batches'], 'int')} batches in all."
        for _, r in each.iterrows()
    ]
    facts = {
        "jobs": " or ".join(map(str, sorted(set(batches["jobs"])))),
        "most": int(batches.groupby("trace")["batch"].count().max()),
        "ranges": "; ".join(_ranges(t, g) for t, g in batches.groupby("trace", sort=False)),
    }
    return describe("fig6", batches, paper, notes=notes, **facts), batches, figure


def _ranges(trace: str, rows: pd.DataFrame) -> str:
    return (
        f"{trace}: {rows['above'].min()} to {rows['above'].max()} jobs of a batch above the median, "
        f"{show(rows['wait_h'].min(), 'number')} to {show(rows['wait_h'].max(), 'number')} hours of wait"
    )


@styled()
def _draw(batches: pd.DataFrame, papers: dict[str, str]) -> Figure:
    traces, colours = list(dict.fromkeys(batches["trace"])), trace_colours(papers)
    across = min(ACROSS, len(traces))
    down = -(-len(traces) // across)
    figure = Figure(figsize=(WIDTH_IN, 3.6 * down))
    axes = figure.subplots(2 * down, across, squeeze=False)
    pairs = [axes[2 * (i // across) : 2 * (i // across) + 2, i % across] for i in range(across * down)]
    for i, trace in enumerate(traces):
        rows, (upper, lower) = where(batches, trace=trace), pairs[i]
        for axis, column in ((upper, "above"), (lower, "wait_h")):
            axis.bar(rows["batch"], rows[column], width=1.0, color=colours[trace], linewidth=0)
            axis.set_xlim(rows["batch"].min() - 0.5, rows["batch"].max() + 0.5)
            axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        simulated = rows["wait_is"].iloc[0].startswith("simulated")
        upper.set_title(f"{trace}\n(simulated waits)" if simulated else trace)
        upper.set_ylim(0, 1.03 * rows["jobs"].iloc[0])
        upper.tick_params(labelbottom=False)
        lower.set_ylim(0, max(1.05 * rows["wait_h"].max(), 1e-3))
        lower.set_xlabel("Batch")
        lower.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
        if i % across == 0:
            upper.set_ylabel("Jobs above\nthe median wait")
            lower.set_ylabel("Total wait (h)")
    for pair in pairs[len(traces) :]:
        for axis in pair:
            axis.set_visible(False)
    return figure
