"""How long jobs run and how many GPUs they ask for; and where the work is."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, PercentFormatter

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.style import COUNT, MARKERS, WIDTH_IN, styled, trace_colours

TICKS_S = {1: "1 s", 60: "1 min", 3600: "1 h", 86_400: "1 d", 30 * 86_400: "30 d"}


def distributions(
    run_times: pd.DataFrame, sizes: pd.DataFrame, paper: PaperResults
) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Shares of jobs and of work that jobs of at most a run time, or of at most a size, have.

    ``run_times`` and ``sizes``: trace, data, type and the columns of the functions of those names in
    rltune.traces.statistics_shape. The frame: trace, data, type, of (run_s | size), at_most, jobs and work, both
    shares of the trace's, cumulative.
    """
    key = ["trace", "data", "type"]
    summed = sizes.assign(**sizes.groupby("trace", sort=False)[["jobs", "work"]].cumsum().clip(upper=1.0))
    frame = pd.concat(
        [
            run_times.rename(columns={"run_s": "at_most"}).assign(of="run_s"),
            summed.rename(columns={"most": "at_most"}).assign(of="size"),
        ],
        ignore_index=True,
    )[[*key, "of", "at_most", "jobs", "work"]]
    figure = _draw(frame, {t: paper.trace(t) for t in frame["trace"]})
    return describe("distributions", frame, alt=_alt(frame)), frame, figure


def _alt(frame: pd.DataFrame) -> str:
    halves = []
    for trace, rows in where(frame, of="run_s").groupby("trace", sort=False):
        half = [show(rows.loc[rows[c] >= 0.5, "at_most"].min(), "seconds") for c in ("jobs", "work")]
        halves.append(
            f"{trace}: half of the jobs run at most {half[0]} s, half of the work is in jobs of at most {half[1]} s"
        )
    return f"Four charts of cumulative shares, one line a trace. {'; '.join(halves)}."


@styled()
def _draw(frame: pd.DataFrame, papers: dict[str, str]) -> Figure:
    colours, markers = trace_colours(papers), dict(zip(papers, MARKERS * len(papers)))
    dashed = {t for t, kind in zip(frame["trace"], frame["type"]) if kind == "CPU"}
    figure = Figure(figsize=(WIDTH_IN, 4.6))
    axes = figure.subplots(2, 2, sharex="col", sharey=True)
    for column, of in enumerate(("run_s", "size")):
        for axis, share in zip(axes[:, column], ("jobs", "work")):
            for trace, colour in colours.items():
                rows = where(frame, trace=trace, of=of)
                axis.plot(
                    rows["at_most"],
                    rows[share],
                    color=colour,
                    linestyle="--" if trace in dashed else "-",
                    marker=markers[trace] if of == "size" else None,
                    markersize=3.5,
                    linewidth=1.4,
                )
    axes[0, 0].set(xscale="log", ylabel="Share of the jobs")
    axes[0, 0].set_ylim(0, 1.02)
    axes[1, 0].set(ylabel=f"Share of the {'GPU- or CPU-time' if dashed else 'GPU-time'}", xlabel="Run time, at most")
    axes[0, 0].xaxis.set_major_locator(FixedLocator(list(TICKS_S)))
    axes[0, 0].xaxis.set_minor_locator(FixedLocator([]))
    axes[0, 0].xaxis.set_major_formatter(FuncFormatter(lambda v, _: TICKS_S.get(round(v), "")))
    axes[0, 0].yaxis.set_major_formatter(PercentFormatter(1.0))
    axes[0, 1].set_xscale("log", base=2)
    largest = int(where(frame, of="size")["at_most"].max())
    step = 1 + (largest > 256)
    axes[0, 1].xaxis.set_major_locator(FixedLocator([2**k for k in range(0, largest.bit_length(), step)]))
    axes[0, 1].xaxis.set_minor_locator(FixedLocator([]))
    axes[0, 1].xaxis.set_major_formatter(COUNT)
    axes[1, 1].set_xlabel("GPUs (CPUs), at most" if dashed else "GPUs, at most")
    handles = [
        Line2D([], [], color=c, linestyle="--" if t in dashed else "-", marker=markers[t], markersize=4, label=t)
        for t, c in colours.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 6))
    return figure
