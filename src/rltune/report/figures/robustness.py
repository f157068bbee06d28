"""What worse run-time estimates cost agents and heuristics."""

import math
from itertools import product
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from rltune.config.comparisons import HOME
from rltune.evaluation.intervals import Improvement, Intervals
from rltune.report import style
from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.common import varying, where
from rltune.report.figures.series import INTERVAL, lines, with_interval
from rltune.report.style import policy_title, scheduler_title
from rltune.report.transferred import SAME_AGENT, less, waits

SIDES = {"share": "Mean wait / FIFO’s", "more": "More wait than\nwith exact estimates"}
LEAST = {"share": 0.0, "more": -0.1}
"""Where the axes begin, or lower."""
COLOURS = {
    "agent": (style.BLUE, style.SKY, style.INK),
    "heuristic": (style.MUTED, style.VERMILION, style.PURPLE, style.ORANGE, style.GREEN),
}
HIGHEST = 2.0
"""Panels end here: a share of FIFO's wait, or more wait as a fraction, beyond this is off the drawing."""
REFERENCE = ("fifo", "none")
"""(Policy, backfill) that uses no estimates."""


def robustness(cells: pd.DataFrame, runs: pd.DataFrame, by: Intervals) -> Drawing:
    """Lines over the spread of the estimates, a column of panels a trace; bands are intervals.

    ``cells`` as `report.read` gives them, ``runs`` as `evaluation.studies.transfer.under_noise` does. The frame has a row a
    trace × scheduler × sigma: ``mean_s``; ``share`` of the wait of REFERENCE, with ``share_low`` and ``share_high``;
    ``more``, the wait beyond the same scheduler's with exact estimates, a fraction of that, with its interval. Agents
    that differ by seed are one scheduler.
    """
    titles = cells.drop_duplicates(HOME).set_index(HOME)["trace_title"]
    several = runs["locality"].nunique() > 1
    rows: list[dict[str, Any]] = []
    for (trace, cluster, locality), found in runs.groupby([*HOME, "locality"], sort=False):
        trained = where(cells, trace=trace, cluster=cluster, locality=locality)
        about = {"trace_title": titles[trace, cluster] + f", {locality}" * several, "data": trained["data"].iloc[0]}
        reference = where(found, cell="", policy=REFERENCE[0], backfill=REFERENCE[1])
        for kind, name, results in _schedulers(trained, found):
            exact = waits(where(results, sigma=0.0))
            for sigma, at in results.groupby("sigma"):
                ours = waits(at)
                share = less(ours, waits(where(reference, sigma=sigma)), by)
                more = less(ours, exact, by) if sigma else Improvement(0.0, 0.0, 0.0)
                row = {**about, "kind": kind, "scheduler": name, "sigma": sigma}
                row |= {"sequence_jobs": int(at["sequence_jobs"].iloc[0]), "windows": len(ours)}
                row |= {"mean_s": ours.to_numpy().mean()}
                row |= {"share": 1 - share.gain, "share_low": 1 - share.high, "share_high": 1 - share.low}
                rows.append(row | {"more": -more.gain, "more_low": -more.high, "more_high": -more.low})
    frame = pd.DataFrame(rows)
    largest = float(frame["sigma"].max())
    artefact = describe(
        "robustness",
        frame,
        reference=scheduler_title(*REFERENCE),
        factor=math.exp(largest),
        trained=", ".join(dict.fromkeys(cells.loc[cells["cell"].isin(runs["cell"]), "estimate"])),
        highest=HIGHEST,
        off=bool((frame[["share", "more"]] > HIGHEST).any().any()),
        largest=largest,
    )
    return artefact, frame, _draw(frame)


def _schedulers(cells: pd.DataFrame, runs: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """(agent or heuristic, title, its rows) of one workload, agents first."""
    differ = [c for c in varying(cells) if c != "seed"]
    found = []
    for _, group in cells.groupby(SAME_AGENT, sort=False):
        cell, results = group.iloc[0], runs[runs["cell"].isin(group["cell"])]
        named = [policy_title(cell["policy"]), *(str(cell[c]) for c in differ)]
        if len(results):
            found.append(("agent", f"RLTune, trained on {', '.join(named)}", results))
    for rule, results in where(runs, cell="").groupby(["policy", "backfill"], sort=False):
        found.append(("heuristic", scheduler_title(*rule), results))
    return found


@style.styled()
def _draw(frame: pd.DataFrame) -> Figure:
    # two names next to each other fit the legend
    frame = frame.assign(scheduler=frame["scheduler"].map(lambda name: fill(name, 46)))
    traces = list(frame["trace_title"].unique())
    colours: dict[str, str] = {}
    for kind, some in COLOURS.items():
        names = frame.loc[frame["kind"] == kind, "scheduler"].unique()
        # one colour further where the markers begin again, so that no two agents look the same
        colours |= {name: some[(i + i // len(style.MARKERS)) % len(some)] for i, name in enumerate(names)}
    dashed = set(frame.loc[frame["kind"] == "heuristic", "scheduler"])
    titles, above_in = [*traces, *[""] * len(traces)], 0.3 + 0.12 * sum(name.count("\n") + 1 for name in colours)
    figure, axes = style.panels(titles, len(traces), 2.0, above_in, sharex=True, sharey="row")
    for axis, (value, trace) in zip(axes, product(SIDES, traces), strict=True):
        of_trace = with_interval(where(frame, trace_title=trace), value, f"{value}_low", f"{value}_high")
        look = {"marked": True, "markersize": 5.5, "linewidth": 1.5, "legend": axis is axes[0]}
        look |= {"err_kws": {"alpha": 0.1, "linewidth": 0}, "sort": False, **INTERVAL}
        lines(axis, of_trace, "sigma", value, "scheduler", colours, dashed=dashed, **look)
    for axis, (value, name) in zip(axes[:: len(traces)], SIDES.items(), strict=True):
        values = frame[value].dropna()  # the lines, and a little of the bands
        low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
        margin = 0.15 * max(high - low, 0.1)
        axis.set(ylabel=name, ylim=(min(LEAST[value], max(low - margin, -1.0)), min(high + margin, HIGHEST)))
    axes[-1].yaxis.set_major_formatter(style.PERCENT)
    axes[0].set_xticks(sorted(frame["sigma"].unique()))
    axes[0].xaxis.set_major_formatter(style.PLAIN)
    figure.supxlabel("Spread of the estimates (σ)")
    style.legend_of(axes[0], 2)
    return figure
