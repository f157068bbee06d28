"""RLTune next to QSSF on one long sequence (Figure 17), and next to itself with other features."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import EngFormatter

from rltune.evaluation.compare import compare
from rltune.evaluation.intervals import Intervals
from rltune.report import common, style
from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.common import distinct_names, where
from rltune.report.figures.series import dots, lines
from rltune.report.paper import PaperResults
from rltune.report.tables.ablation import over_variant
from rltune.report.tables.peers import METRIC_TITLE
from rltune.report.templates import fill

NAMES = {"qssf": "QSSF", "rltune": "RLTune"}
COLOURS, DASHED = {"QSSF": style.ORANGE, "RLTune": style.BLUE}, ("QSSF",)
POINTS = 201
"""Of each curve, evenly spaced shares of the jobs."""


@style.styled()
def fig17(cells: pd.DataFrame, jobs: pd.DataFrame, comparisons: pd.DataFrame, paper: PaperResults) -> Drawing:
    """Distribution of JCT, a panel a cell, a curve a scheduler; means as lines down and in words.

    ``jobs``: cell, who (rltune | qssf), jct_s. ``comparisons``: as for the table fig17-numbers. The frame has one row a
    point of a curve: `share` of the jobs that take at most `jct_s`, and the scheduler's `mean_s`.
    """
    used = cells[cells["cell"].isin(jobs["cell"])]
    titles = dict(zip(used["cell"], distinct_names(used, list(used["trace_title"]))))
    share, curves = np.linspace(0, 1, POINTS), []
    for (cell, who), jct_s in jobs.groupby(["cell", "who"], sort=False)["jct_s"]:
        about = {"trace_title": titles[cell], "who": who, "scheduler": NAMES[who], "jobs": len(jct_s), "share": share}
        curves.append(pd.DataFrame({**about, "jct_s": np.quantile(jct_s, share), "mean_s": jct_s.mean()}))
    frame = pd.concat(curves, ignore_index=True)
    means = {titles[c["cell"]]: fill("fig17_mean.j2", **c) for _, c in comparisons.iterrows()}
    parts = dict(list(frame.groupby("trace_title", sort=False)))
    figure, axes = style.panels(list(parts), 2, 2.5, 0.6, sharey=True)
    for axis, (title, rows) in zip(axes, parts.items()):
        drawn = rows.assign(jct_s=rows["jct_s"].clip(lower=1.0))
        lines(axis, drawn, "jct_s", "share", "scheduler", COLOURS, dashed=DASHED, legend=axis is axes[0])
        for name, mean_s in rows.groupby("scheduler")["mean_s"].first().items():
            axis.axvline(mean_s, color=COLOURS[name], linestyle="--" if name in DASHED else "-", linewidth=0.9)
        box = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.5}
        at_right = {"transform": axis.transAxes, "ha": "right", "va": "bottom", "bbox": box}
        axis.text(0.98, 0.04, means[title].replace(", ", "\n"), fontsize=7.5, **at_right)
        axis.set(xscale="log", ylim=(0, 1))
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
        axis.yaxis.set_major_formatter(style.PERCENT)
    figure.supxlabel("JCT (s)")
    figure.supylabel("Jobs completed within")
    style.legend_of(axes[0])
    return describe("fig17", frame, paper, cells=used, means=means), frame, figure


EIGHT = "engineered"
"""The paper's eight features."""


@style.styled()
def sensitivity(
    cells: pd.DataFrame,
    windows: pd.DataFrame,
    groups: Sequence[Sequence[str]],
    widths: Mapping[str, int],
    paper: PaperResults,
    by: Intervals,
) -> Drawing:
    """Improvement over the base policy by feature set, with interval; a panel a group, a row a set.

    ``groups``: names of cells that differ in their features and seeds only (rltune.config.comparisons.by_features);
    ``widths``: number of features of each set. The frame has at the window length with the most windows `improvement`
    over the base policy of the metric the cells are trained for, over all seeds, and `eight_over`, how much better the
    paper's eight are than this set, over the seeds that both have; `panel` is the title of its panel.
    """
    rows: list[dict[str, Any]] = []
    for number, names in enumerate(groups):
        members = cells[cells["cell"].isin(names)]
        trained = members["metric"].iloc[0]
        metric = trained if trained in METRIC_TITLE else "wait"
        eight = where(members, features=EIGHT)
        for features, seeds in members.groupby("features", sort=False):
            each = [where(windows, cell=name) for name in seeds["cell"]]
            for n in common.lengths(each[0]):
                found = compare(each, metric, n, {"role": "rltune"}, {"role": "base"}, by)
                row = {
                    "group": number,
                    **common.about(seeds),
                    "count": widths[str(features)],
                    "measure": METRIC_TITLE[metric],
                    "sequence_jobs": n,
                    **{k: getattr(found, k) for k in ("seeds", "windows", "improvement", "low", "high")},
                    **dict.fromkeys(("eight_over", "eight_over_low", "eight_over_high"), common.NAN),
                }
                if over := over_variant(eight, seeds, windows, metric, n, by):
                    row |= common.gain("eight_over", over, prefix="eight_over_")
                rows.append(row)
    frame = common.best_measured(pd.DataFrame(rows)).sort_values(["group", "count", "features"], ignore_index=True)
    titles = [
        f"{trace}, {setting}, {measure.split(',')[0].lower()}"
        for trace, setting, measure in zip(frame["trace_title"], common.scheduler_titles(frame), frame["measure"])
    ]
    frame["panel"] = common.distinct_names(frame, titles, without=("features", "seed"))
    used = cells[cells["cell"].isin([name for names in groups for name in names])]
    colours = style.trace_colours(dict(zip(frame["trace_title"], frame["paper_trace"])))
    most = frame.groupby("group").size().max()
    titles = list(frame.drop_duplicates("group")["panel"])
    figure, axes = style.panels(titles, 2, 0.75 + 0.26 * most, 0.3, sharex=True)
    for axis, (_, rows) in zip(axes, frame.groupby("group", sort=False)):
        dots(axis, rows, ("improvement", "low", "high"), list(rows["trace_title"].map(colours)))
        style.name_rows(axis, list(rows["count"].astype(str) + " · " + rows["features"]))
    figure.supxlabel("Better than its base policy (negative: worse)")
    figure.supylabel("Features")
    return describe("sensitivity", frame, paper, cells=used, without=["features", "seed"]), frame, figure
