"""How long jobs run and how many GPUs they ask for; and where the work is."""

from __future__ import annotations

from itertools import product

import pandas as pd
from matplotlib.figure import Figure

from rltune.report import style
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.format import show
from rltune.report.paper import PaperResults

TICKS_S = {1: "1 s", 60: "1 min", 3600: "1 h", 86_400: "1 d", 30 * 86_400: "30 d"}


def distributions(
    run_times: pd.DataFrame, sizes: pd.DataFrame, paper: PaperResults
) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Shares of jobs and of work that jobs of at most a run time, or of at most a size, have.

    ``run_times`` and ``sizes``: trace, data, type and the columns of the functions of those names in
    rltune.traces.statistics. The frame: trace, data, type, of (run_s | size), at_most, jobs and work, both
    shares of the trace's, cumulative.
    """
    key = ["trace", "data", "type"]
    summed = sizes.assign(**sizes.groupby("trace", sort=False)[["jobs", "work"]].cumsum().clip(upper=1.0))
    parts = {
        "run_s": run_times.rename(columns={"run_s": "at_most"}),
        "size": summed.rename(columns={"most": "at_most"}),
    }
    frame = pd.concat([part.assign(of=of) for of, part in parts.items()], ignore_index=True)
    frame = frame[[*key, "of", "at_most", "jobs", "work"]]
    figure = _draw(frame, style.trace_colours({t: paper.trace(t) for t in frame["trace"]}))
    return describe("distributions", frame, alt=_alt(frame)), frame, figure


def _alt(frame: pd.DataFrame) -> str:
    halves = []
    for trace, rows in where(frame, of="run_s").groupby("trace", sort=False):
        half = [show(rows.loc[rows[c] >= 0.5, "at_most"].min(), "seconds") for c in ("jobs", "work")]
        halves.append(
            f"{trace}: half of the jobs run at most {half[0]} s, half of the work is in jobs of at most {half[1]} s"
        )
    return f"Four charts of cumulative shares, one line a trace. {'; '.join(halves)}."


@style.styled()
def _draw(frame: pd.DataFrame, colours: dict[str, str]) -> Figure:
    import seaborn as sns  # a second that other figures need not wait for

    cpu = sorted(set(frame.loc[frame["type"] == "CPU", "trace"]))
    figure = Figure(figsize=(style.WIDTH_IN, 4.6))
    axes = figure.subplots(2, 2, sharex="col", sharey=True)
    dashes = {trace: (4, 2) if trace in cpu else "" for trace in colours}
    for axis, (share, of) in zip(axes.flat, product(("jobs", "work"), ("run_s", "size"))):
        look = {"hue": "trace", "style": "trace", "palette": colours, "dashes": dashes, "legend": False}
        look |= {"estimator": None}
        sns.lineplot(where(frame, of=of), x="at_most", y=share, markers=of == "size", linewidth=1.4, ax=axis, **look)
    axes[0, 0].set(xscale="log", ylabel="Share of the jobs", ylim=(0, 1.02))
    axes[1, 0].set(ylabel=f"Share of the {'GPU- or CPU-time' if cpu else 'GPU-time'}", xlabel="Run time, at most")
    style.fixed_ticks(axes[0, 0].xaxis, TICKS_S, TICKS_S)
    axes[0, 0].yaxis.set_major_formatter(style.PERCENT)
    axes[0, 1].set_xscale("log", base=2)
    largest = int(where(frame, of="size")["at_most"].max())
    style.fixed_ticks(axes[0, 1].xaxis, [2**k for k in range(0, largest.bit_length(), 1 + (largest > 256))])
    axes[1, 1].set_xlabel("GPUs (CPUs), at most" if cpu else "GPUs, at most")
    style.legend(figure, [style.handle(t, c, line="--" if t in cpu else "-") for t, c in colours.items()])
    return figure
