"""When jobs arrive: over the day and over the week."""

from __future__ import annotations

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.format import NBSP, show
from rltune.report.paper import PaperResults
from rltune.report.style import INK, MARKERS, WIDTH_IN, styled, trace_colours

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def arrivals(frame: pd.DataFrame, paper: PaperResults) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Arrivals by hour of the day and day of the week, relative to each trace's mean.

    ``frame``: trace, data, busiest and the columns of rltune.traces.statistics_shape.arrivals.
    """
    if frame.empty:
        frame = pd.DataFrame(columns=["trace", "data", "busiest", "by", "bin", "relative"])
    figure = _draw(frame, {t: paper.trace(t) for t in frame["trace"]})
    busiest = [
        f"{r['trace']}: the busiest tenth of all hours has {show(r['busiest'], 'percent')} of the jobs (10{NBSP}% if "
        "evenly spread)."
        for _, r in frame.drop_duplicates("trace").iterrows()
    ]
    peaks = [_peak(trace, rows) for trace, rows in where(frame, by="hour").groupby("trace", sort=False)]
    return describe("arrivals", frame, notes=busiest, peaks="; ".join(peaks) or "None here"), frame, figure


def _peak(trace: str, rows: pd.DataFrame) -> str:
    known = rows.dropna(subset=["relative"])
    top, low = known.loc[known["relative"].idxmax()], known.loc[known["relative"].idxmin()]
    return (
        f"{trace}: most at {int(top['bin'])}:00 ({show(top['relative'], 'number')} times the mean), "
        f"fewest at {int(low['bin'])}:00 ({show(low['relative'], 'number')})"
    )


@styled()
def _draw(frame: pd.DataFrame, papers: dict[str, str]) -> Figure:
    colours, markers = trace_colours(papers), dict(zip(papers, MARKERS * len(papers)))
    figure = Figure(figsize=(WIDTH_IN, 3.1))
    axes = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for axis, by in zip(axes, ("hour", "weekday")):
        axis.axhline(1, color=INK, linewidth=0.9)
        rows = where(frame, by=by)
        if rows.empty:
            continue
        sns.lineplot(
            rows,
            x="bin",
            y="relative",
            hue="trace",
            style="trace",
            palette=colours,
            markers=markers,
            dashes=False,
            markersize=4.5,
            linewidth=1.3,
            markeredgewidth=0,
            legend=False,
            ax=axis,
        )
    axes[0].set_xticks(range(0, 24, 3), [f"{h}:00" for h in range(0, 24, 3)])
    axes[0].set(xlabel="Hour of the day", ylabel="Arrivals over the mean")
    axes[1].set_xticks(range(7), DAYS)
    axes[1].set(xlabel="Day of the week", xlim=(-0.4, 6.4))
    axes[0].set_ylim(0, None)
    handles = [Line2D([], [], color=c, marker=markers[t], markersize=4, label=t) for t, c in colours.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 6))
    return figure
