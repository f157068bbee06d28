"""When jobs arrive: over the day and over the week."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rltune.report import style
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.paper import PaperResults

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def arrivals(frame: pd.DataFrame, paper: PaperResults) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Arrivals by hour of the day and day of the week, relative to each trace's mean.

    ``frame``: trace, data, busiest and the columns of rltune.traces.statistics.arrivals.
    """
    if frame.empty:
        frame = pd.DataFrame(columns=["trace", "data", "busiest", "by", "bin", "relative"])
    figure = _draw(frame, style.trace_colours({t: paper.trace(t) for t in frame["trace"]}))
    peaks = {}
    for trace, rows in where(frame, by="hour").groupby("trace", sort=False):
        known = rows.dropna(subset=["relative"]).sort_values("relative").to_dict("records")
        peaks[trace] = known[-1], known[0]
    busiest = frame.drop_duplicates("trace").to_dict("records")
    return describe("arrivals", frame, busiest=busiest, peaks=peaks), frame, figure


@style.styled()
def _draw(frame: pd.DataFrame, colours: dict[str, str]) -> Figure:
    import seaborn as sns  # a second that other figures need not wait for

    figure = Figure(figsize=(style.WIDTH_IN, 3.1))
    axes = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for axis, by in zip(axes, ("hour", "weekday")):
        axis.axhline(1, color=style.INK, linewidth=0.9)
        if frame.empty:
            continue
        look = {"hue": "trace", "style": "trace", "palette": colours, "markers": True, "dashes": False}
        look |= {"estimator": None}
        sns.lineplot(where(frame, by=by), x="bin", y="relative", linewidth=1.3, legend=by == "hour", ax=axis, **look)
    axes[0].set_xticks(range(0, 24, 3), [f"{h}:00" for h in range(0, 24, 3)])
    axes[0].set(xlabel="Hour of the day", ylabel="Arrivals over the mean", ylim=(0, None))
    axes[1].set_xticks(range(7), DAYS)
    axes[1].set(xlabel="Day of the week", xlim=(-0.4, 6.4))
    if legend := axes[0].get_legend():
        legend.remove()
        style.legend_of(axes[0])
    return figure
