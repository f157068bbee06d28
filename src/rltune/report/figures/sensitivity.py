"""What the number of features is worth: the same training with seven, eight and nine, and with other sets."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rltune.evaluation.intervals import Intervals
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import (
    NAN,
    about,
    best_measured,
    compared,
    constant_settings,
    distinct_names,
    gain,
    seeds_note,
    where,
)
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.style import (
    INK,
    PERCENT,
    WIDTH_IN,
    dot,
    hide_rest,
    rows_of_dots,
    scheduler_title,
    styled,
    trace_colours,
)
from rltune.report.tables.ablation import OTHER, OURS, of_the_same_seed, side_by_side
from rltune.report.tables.peers import METRICS

EIGHT = "engineered"
"""The paper's eight."""


def sensitivity(
    cells: pd.DataFrame,
    windows: pd.DataFrame,
    groups: Sequence[Sequence[str]],
    widths: Mapping[str, int],
    paper: PaperResults,
    by: Intervals,
) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Improvement over the base policy by feature set, with interval; a panel a group, a row a set.

    ``groups``: names of cells that differ in their features and seeds only (rltune.config.comparisons.by_features);
    ``widths``: number of features of each set. The frame has at the window length with the most windows `improvement`
    over the base policy of the metric the cells are trained for, over all seeds, and `eight_over`, how much better the
    paper's eight are than this set, over the seeds that both have; `panel` is what its panel is called. Raises
    ValueError when there is no group.
    """
    if not groups:
        raise ValueError("no sensitivity: the run has no cells that differ in their feature set only")
    rows: list[dict[str, Any]] = []
    for number, names in enumerate(groups):
        members = cells[cells["cell"].isin(names)]
        metric = members["metric"].iloc[0] if members["metric"].iloc[0] in METRICS else "wait"
        eight = where(members, features=EIGHT)
        for features, seeds in members.groupby("features", sort=False):
            cell, each = seeds.iloc[0], [where(windows, cell=name) for name in seeds["cell"]]
            for n in sorted(each[0]["sequence_jobs"].unique()):
                found = compared(by, each, metric, int(n), {"role": "rltune"}, {"role": "base"})
                row = {
                    "group": number,
                    **about(cell),
                    "seed": ", ".join(map(str, seeds["seed"])),
                    "count": widths[cell["features"]],
                    "measure": METRICS[metric],
                    "sequence_jobs": int(n),
                    **{k: getattr(found, k) for k in ("seeds", "windows", "improvement", "low", "high")},
                    **dict.fromkeys(("eight_over", "eight_over_low", "eight_over_high"), NAN),
                }
                pairs = of_the_same_seed(eight, seeds)
                if features != EIGHT and len(pairs):
                    over = compared(by, side_by_side(windows, pairs), metric, int(n), OURS, OTHER)
                    row |= gain("eight_over", over, prefix="eight_over_")
                rows.append(row)
    frame = best_measured(pd.DataFrame(rows)).sort_values(["group", "count", "features"]).reset_index(drop=True)
    titles = [
        f"{r['trace_title']}, {scheduler_title(r['policy'], r['backfill'])}, {r['measure'].split(',')[0].lower()}"
        for _, r in frame.iterrows()
    ]
    frame["panel"] = distinct_names(frame, titles, without=("features", "seed"))
    used = cells[cells["cell"].isin([name for names in groups for name in names])]
    figure = _draw(frame, {t: paper.trace(t) for t in frame["trace_title"]})
    dots = [f"{r['panel']}, {_label(r)}: {show(r['improvement'], 'percent')}" for _, r in frame.iterrows()]
    entry = paper.find("sensitivity", "statement")
    artefact = describe(
        "sensitivity",
        frame,
        paper,
        rows=used,
        n=frame["sequence_jobs"].max(),
        statement={"where": paper.where("sensitivity", "statement"), "text": entry.text} if entry else None,
        seeds=seeds_note(frame),
        shared_settings=constant_settings(used, without=["features", "seed"]),
        dots="; ".join(dots),
    )
    return artefact, frame, figure


def _label(row: pd.Series) -> str:
    return f"{row['count']} · {row['features']}"


@styled()
def _draw(frame: pd.DataFrame, traces: dict[str, str]) -> Figure:
    numbers = list(dict.fromkeys(frame["group"]))
    across = min(2, len(numbers))
    down = -(-len(numbers) // across)
    most = int(frame.groupby("group").size().max())
    figure = Figure(figsize=(WIDTH_IN, (0.75 + 0.26 * most) * down + 0.3))
    axes = figure.subplots(down, across, squeeze=False, sharex=True)
    colours = trace_colours(traces)
    for axis, number in zip(axes.flat, numbers):
        rows = where(frame, group=number).reset_index(drop=True)
        axis.axvline(0, color=INK, linewidth=0.9)
        for y, row in rows.iterrows():
            dot(axis, y, row["improvement"], row["low"], row["high"], colours[row["trace_title"]])
        axis.set_title(textwrap.fill(rows["panel"].iloc[0], 32, break_on_hyphens=False))
        axis.set_yticks(range(len(rows)), [_label(r) for _, r in rows.iterrows()])
        rows_of_dots(axis, len(rows))
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.xaxis.set_major_formatter(PERCENT)
    hide_rest(axes, len(numbers))
    figure.supxlabel("Better than its base policy (negative: worse)", fontsize=9)
    figure.supylabel("Features", fontsize=9)
    return figure
