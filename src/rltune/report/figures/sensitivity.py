"""What the number of features is worth: the same training with seven, eight and nine, and with other sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from rltune.evaluation.compare import compare
from rltune.evaluation.intervals import Intervals
from rltune.report import common, style
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.paper import PaperResults
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
            each = [where(windows, cell=name) for name in seeds["cell"]]
            pairs = of_the_same_seed(eight, seeds)
            for n in common.lengths(each[0]):
                found = compare(each, metric, n, {"role": "rltune"}, {"role": "base"}, by)
                row = {
                    "group": number,
                    **common.about(seeds),
                    "count": widths[str(features)],
                    "measure": METRICS[metric],
                    "sequence_jobs": n,
                    **{k: getattr(found, k) for k in ("seeds", "windows", "improvement", "low", "high")},
                    **dict.fromkeys(("eight_over", "eight_over_low", "eight_over_high"), common.NAN),
                }
                if features != EIGHT and len(pairs):
                    over = compare(side_by_side(windows, pairs), metric, n, OURS, OTHER, by)
                    row |= common.gain("eight_over", over, prefix="eight_over_")
                rows.append(row)
    frame = common.best_measured(pd.DataFrame(rows)).sort_values(["group", "count", "features"], ignore_index=True)
    titles = [
        f"{trace}, {setting}, {measure.split(',')[0].lower()}"
        for trace, setting, measure in zip(frame["trace_title"], common.schedulers(frame), frame["measure"])
    ]
    frame["panel"] = common.distinct_names(frame, titles, without=("features", "seed"))
    used = cells[cells["cell"].isin([name for names in groups for name in names])]
    entry = paper.find("sensitivity", "statement")
    artefact = describe(
        "sensitivity",
        frame,
        paper,
        cells=used,
        without=["features", "seed"],
        n=frame["sequence_jobs"].max(),
        statement={"where": paper.where("sensitivity", "statement"), "text": entry.text} if entry else None,
        seeds=common.seeds_note(frame),
    )
    return artefact, frame, _draw(frame, style.trace_colours({t: paper.trace(t) for t in frame["trace_title"]}))


def _label(row: pd.Series) -> str:
    return f"{row['count']} · {row['features']}"


@style.styled()
def _draw(frame: pd.DataFrame, colours: Mapping[str, str]) -> Figure:
    most = frame.groupby("group").size().max()
    titles = list(frame.drop_duplicates("group")["panel"])
    figure, axes = style.panels(titles, 2, 0.75 + 0.26 * most, 0.3, sharex=True)
    for axis, (_, rows) in zip(axes, frame.groupby("group", sort=False)):
        style.dots(axis, rows, ("improvement", "low", "high"), list(rows["trace_title"].map(colours)))
        style.name_rows(axis, [_label(r) for _, r in rows.iterrows()])
    figure.supxlabel("Better than its base policy (negative: worse)", fontsize=9)
    figure.supylabel("Features", fontsize=9)
    return figure
