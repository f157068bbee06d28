"""The traces in pictures: how they differ, how waits come, when jobs arrive, how long they run and how large they are."""

from itertools import product

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

from rltune.report import style
from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.figures.series import lines
from rltune.report.paper import PaperResults

PANELS = {"avg_run_s": "Mean run time (s)", "alloc": "Allocated GPUs or CPUs (per 30 days)"}
MARKER = {"CPU": "o", "GPU": "s"}
LEAST_WAIT_S = 1.0
"""Shorter mean waits are drawn here, since the axis is logarithmic."""


def fig5(statistics: pd.DataFrame, paper: PaperResults) -> Drawing:
    """Mean run time and allocated resources against mean wait: a point a trace, ours and the paper's.

    ``statistics`` as for Table 2. The frame has one row a point: trace, type, data, row (ours | paper), avg_wait_s,
    avg_run_s, alloc, wait_is. Traces without any wait are left out and noted.
    """
    columns = ["trace", "type", "data", "avg_wait_s", "avg_run_s", "alloc", "wait_is"]
    ours = statistics[statistics["avg_wait_s"].notna()][columns].assign(row="ours")
    printed = _printed(paper)
    frame = pd.concat([ours, printed], ignore_index=True)
    figure = _draw_fig5(frame, {t: paper.trace(t, data) for t, data in zip(ours["trace"], ours["data"])})
    facts = {
        "ours": ours.to_dict("records"),
        "lacking": sorted(set(statistics["trace"]) - set(ours["trace"])),
        "least_wait_s": LEAST_WAIT_S,
    }
    return describe("fig5", frame, paper, rows=ours, **facts), frame, figure


def _printed(paper: PaperResults) -> pd.DataFrame:
    """The paper's points, from its Table 2."""
    entries = paper.artefacts["table2"].entries
    rows = []
    for trace in dict.fromkeys(key.rsplit(".", 1)[0] for key in entries):
        values = {c: paper.value("table2", trace, c) for c in ("avg_wait_s", "avg_run_s", "alloc")}
        about = {"trace": trace, "type": entries[f"{trace}.type"].text, "data": "", "wait_is": "", "row": "paper"}
        rows.append(about | values)
    return pd.DataFrame(rows)


@style.styled()
def _draw_fig5(frame: pd.DataFrame, papers: dict[str, str]) -> Figure:
    """``papers``: ours → the paper's name of it, "" for none."""
    unmatched = {t: t for t in where(frame, row="paper")["trace"] if t not in papers.values()}
    colours = style.trace_colours({**papers, **unmatched})
    figure, axes = style.panels([""] * len(PANELS), 2, 3.0)
    for axis, (column, name) in zip(axes, PANELS.items()):
        for trace, colour in colours.items():
            both = [where(frame, row="ours", trace=trace), where(frame, row="paper", trace=papers.get(trace, trace))]
            points = pd.concat(both)
            waits = points["avg_wait_s"].clip(lower=LEAST_WAIT_S)
            axis.plot(waits, points[column], color=colour, linewidth=0.8, alpha=0.6)
            for wait, (_, row) in zip(waits, points.iterrows()):
                # hollow ones are larger and on top, so that both are seen where they coincide
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


@style.styled()
def fig6(batches: pd.DataFrame, paper: PaperResults) -> Drawing:
    """Jobs above the median wait, and all waits together, in consecutive batches: a pair of panels a GPU trace; where there
    is none, a CPU trace.

    ``batches``: trace, data, type, wait_is and the columns of rltune.traces.statistics.batches.
    """
    gpu = where(batches, type="GPU")
    batches = gpu if len(gpu) else batches
    colours = style.trace_colours({t: paper.trace(t, data) for t, data in zip(batches["trace"], batches["data"])})
    titles, parts = [], dict(list(batches.groupby("trace", sort=False)))
    for trace, rows in parts.items():
        simulated = rows["wait_is"].iloc[0].startswith("simulated")
        titles += [f"{trace}{' (simulated waits)' * simulated}", ""]
    figure, axes = style.panels(titles, 2, 1.7, 0.3)
    names = {"above": "Jobs above\nthe median wait", "wait_h": "Total wait (h)"}
    for axis, ((trace, rows), (column, name)) in zip(axes, product(parts.items(), names.items())):
        look = {"discrete": True, "color": colours[str(trace)], "alpha": 1, "linewidth": 0}
        sns.histplot(rows, x="batch", weights=column, ax=axis, **look)
        axis.set_xlim(rows["batch"].min() - 0.5, rows["batch"].max() + 0.5)
        axis.set(xlabel="Batch", ylabel=name)
        axis.yaxis.set_major_formatter(style.PLAIN)
    ranges = batches.groupby("trace", sort=False)[["above", "wait_h"]].agg(["min", "max"])
    facts = {
        "most": batches["trace"].value_counts().max(),
        "ranges": dict(zip(ranges.index, ranges.to_numpy().tolist())),
        "traces": batches.drop_duplicates("trace").to_dict("records"),
    }
    return describe("fig6", batches, paper, **facts), batches, figure


DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@style.styled()
def arrivals(frame: pd.DataFrame, paper: PaperResults) -> Drawing:
    """Arrivals by hour of the day and day of the week, relative to each trace's mean.

    ``frame``: trace, data, busiest and the columns of rltune.traces.statistics.arrivals.
    """
    if frame.empty:
        frame = pd.DataFrame(columns=["trace", "data", "busiest", "by", "bin", "relative"])
    colours = style.trace_colours({t: paper.trace(t, data) for t, data in zip(frame["trace"], frame["data"])})
    figure, axes = style.panels(["", ""], 2, 3.1, 0.0, sharey=True, width_ratios=(3, 2))
    for axis, by in zip(axes, ("hour", "weekday")):
        axis.axhline(1, color=style.INK, linewidth=0.9)
        if len(frame):
            look = {"marked": True, "linewidth": 1.3, "legend": by == "hour"}
            lines(axis, where(frame, by=by), "bin", "relative", "trace", colours, **look)
    axes[0].set_xticks(range(0, 24, 3), [f"{h}:00" for h in range(0, 24, 3)])
    axes[0].set(xlabel="Hour of the day", ylabel="Arrivals over the mean", ylim=(0, None))
    axes[1].set_xticks(range(7), DAYS)
    axes[1].set(xlabel="Day of the week", xlim=(-0.4, 6.4))
    if len(frame):
        style.legend_of(axes[0])
    peaks = {}
    for trace, rows in where(frame, by="hour").groupby("trace", sort=False):
        known = rows.dropna(subset=["relative"]).sort_values("relative").to_dict("records")
        peaks[trace] = known[-1], known[0]
    busiest = frame.drop_duplicates("trace").to_dict("records")
    return describe("arrivals", frame, busiest=busiest, peaks=peaks), frame, figure


TICKS_S = {1: "1 s", 60: "1 min", 3600: "1 h", 86_400: "1 d", 30 * 86_400: "30 d"}


@style.styled()
def distributions(run_times: pd.DataFrame, sizes: pd.DataFrame, paper: PaperResults) -> Drawing:
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
    colours = style.trace_colours({t: paper.trace(t, data) for t, data in zip(frame["trace"], frame["data"])})
    cpu = sorted(set(frame.loc[frame["type"] == "CPU", "trace"]))
    figure, axes = style.panels([""] * 4, 2, 2.3, 0.0, sharex="col", sharey=True)
    for axis, (share, of) in zip(axes, product(("jobs", "work"), ("run_s", "size"))):
        look = {"marked": of == "size", "linewidth": 1.4, "legend": False}
        lines(axis, where(frame, of=of), "at_most", share, "trace", colours, dashed=cpu, **look)
    axes[0].set(xscale="log", ylabel="Share of the jobs", ylim=(0, 1.02))
    axes[2].set(ylabel=f"Share of the {'GPU- or CPU-time' if cpu else 'GPU-time'}", xlabel="Run time, at most")
    style.fixed_ticks(axes[0].xaxis, TICKS_S, TICKS_S)
    axes[0].yaxis.set_major_formatter(style.PERCENT)
    axes[1].set_xscale("log", base=2)
    largest = int(where(frame, of="size")["at_most"].max())
    style.fixed_ticks(axes[1].xaxis, [2**k for k in range(0, largest.bit_length(), 1 + (largest > 256))])
    axes[3].set_xlabel("GPUs (CPUs), at most" if cpu else "GPUs, at most")
    style.legend(figure, [style.handle(t, c, line="--" if t in cpu else "-") for t, c in colours.items()])
    return describe("distributions", frame), frame, figure
