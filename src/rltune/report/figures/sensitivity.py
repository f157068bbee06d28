"""What the number of features is worth: the same training with seven, eight and nine, and with other sets."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from rltune.evaluation.compare import compare
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.style import INK, POLICY_TITLE, WIDTH_IN, scheduler_title, styled, trace_colours
from rltune.report.tables.ablation import OTHER, OURS, of_the_same_seed, side_by_side
from rltune.report.common import SETTING_TITLE, best_measured, constant_settings, data_labels, told_apart, where
from rltune.report.tables.comparison_words import seeds_note
from rltune.report.tables.opponents import METRICS, NAN

EIGHT = "engineered"
"""The paper's eight."""


def sensitivity(
    cells: pd.DataFrame,
    windows: pd.DataFrame,
    groups: Sequence[Sequence[str]],
    widths: Mapping[str, int],
    paper: PaperResults,
    *,
    bootstrap: int,
    confidence: float,
    seed: int,
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
                found = compare(each, metric, int(n), {"role": "rltune"}, {"role": "base"}, bootstrap, confidence, seed)
                row = {
                    "group": number,
                    **{k: cell[k] for k in ("trace_title", "trace", "data", "policy", *SETTING_TITLE, "cell")},
                    "seed": ", ".join(map(str, seeds["seed"])),
                    "seeds": found.seeds,
                    "base": POLICY_TITLE.get(cell["policy"], cell["policy"]),
                    "count": widths[cell["features"]],
                    "measure": METRICS[metric],
                    "sequence_jobs": int(n),
                    "windows": found.windows,
                    "improvement": found.improvement,
                    "low": found.low,
                    "high": found.high,
                    "eight_over": NAN,
                    "eight_over_low": NAN,
                    "eight_over_high": NAN,
                }
                pairs = of_the_same_seed(eight, seeds)
                if features != EIGHT and len(pairs):
                    over = compare(
                        side_by_side(windows, pairs), metric, int(n), OURS, OTHER, bootstrap, confidence, seed
                    )
                    row |= {"eight_over": over.improvement, "eight_over_low": over.low, "eight_over_high": over.high}
                rows.append(row)
    frame = best_measured(pd.DataFrame(rows)).sort_values(["group", "count", "features"]).reset_index(drop=True)
    titles = [
        f"{r['trace_title']}, {scheduler_title(r['policy'], r['backfill'])}, {r['measure'].split(',')[0].lower()}"
        for _, r in frame.iterrows()
    ]
    frame["panel"] = told_apart(frame, titles, without=("features", "seed"))
    used = cells[cells["cell"].isin([name for names in groups for name in names])]
    with styled():
        figure = _draw(frame, {t: paper.trace(t) for t in frame["trace_title"]})
    told = [f"{r['panel']}, {_label(r)}: {show(r['improvement'], 'percent')}" for _, r in frame.iterrows()]
    statement = paper.find("sensitivity", "statement")
    artefact = describe(
        "sensitivity",
        frame,
        paper,
        rows=used,
        max=frame["sequence_jobs"].max(),
        where=paper.where("sensitivity", "statement"),
        fact=statement.text,
        statement=statement,
        seeds_note=seeds_note(frame),
        constant_settings=constant_settings(used, without=["features", "seed"]),
        join="; ".join(told),
    )
    return artefact, frame, figure


def _label(row: pd.Series) -> str:
    return f"{row['count']} · {row['features']}"


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
            colour = colours[row["trace_title"]]
            if pd.notna(row["low"]):
                axis.plot([row["low"], row["high"]], [y, y], color=colour, linewidth=2.2, solid_capstyle="butt")
            axis.plot([row["improvement"]], [y], marker="o", color=colour, markersize=5.5, zorder=5)
        axis.set_title(textwrap.fill(rows["panel"].iloc[0], 32, break_on_hyphens=False))
        axis.set_yticks(range(len(rows)), [_label(r) for _, r in rows.iterrows()])
        axis.set_ylim(len(rows) - 0.4, -0.6)
        axis.grid(axis="y", visible=False)
        axis.tick_params(axis="y", length=0)
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: show(round(v, 6), "percent").replace(".0", "")))
    for hidden in range(len(numbers), axes.size):
        axes.flat[hidden].set_visible(False)
        axes.flat[hidden - across].tick_params(labelbottom=True)  # the lowest of its column now
    figure.supxlabel("Better than its base policy (negative: worse)", fontsize=9)
    figure.supylabel("Features", fontsize=9)
    return figure
