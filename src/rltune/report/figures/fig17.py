"""Figure 17: how long jobs of one long sequence take under QSSF and under RLTune."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from rltune.report import style
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import distinct_names, where
from rltune.report.format import show
from rltune.report.paper import PaperResults

LOOKS: dict[str, tuple[str, str, Any]] = {
    "qssf": ("QSSF", style.ORANGE, (0, (4, 1.5))),
    "rltune": ("RLTune", style.BLUE, "solid"),
}
POINTS = 201
"""Of each curve, evenly spaced shares of the jobs."""


def fig17(
    cells: pd.DataFrame, jobs: pd.DataFrame, comparisons: pd.DataFrame, paper: PaperResults
) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Distribution of JCT, a panel a cell, a curve a scheduler; means as lines down and in words.

    ``jobs``: cell, who (rltune | qssf), jct_s. ``comparisons``: as for the table fig17-numbers. The frame has one row a
    point of a curve: `share` of the jobs that take at most `jct_s`, and the scheduler's `mean_s`.
    """
    used = cells[cells["cell"].isin(jobs["cell"])]
    titles = dict(zip(used["cell"], distinct_names(used, list(used["trace_title"]))))
    share, curves = np.linspace(0, 1, POINTS), []
    for (cell, who), jct_s in jobs.groupby(["cell", "who"], sort=False)["jct_s"]:
        about = {
            "trace_title": titles[cell],
            "who": who,
            "scheduler": LOOKS[who][0],
            "jobs": len(jct_s),
            "share": share,
        }
        curves.append(pd.DataFrame({**about, "jct_s": np.quantile(jct_s, share), "mean_s": jct_s.mean()}))
    frame = pd.concat(curves, ignore_index=True)
    means = {titles[c["cell"]]: _summary(c) for _, c in comparisons.iterrows()}
    artefact = describe(
        "fig17", frame, paper, cells=used, means="; ".join(f"{title}: {words}" for title, words in means.items())
    )
    return artefact, frame, _draw(frame, means)


def _summary(comparison: pd.Series) -> str:
    """One comparison in words: jobs, and how much better or worse."""
    word = "less" if comparison["improvement"] >= 0 else "more"
    return (
        f"{show(comparison['jobs'], 'int')} jobs, mean {show(comparison['theirs_mean'], 'seconds')} s with QSSF, "
        f"{show(abs(comparison['improvement']), 'percent')} {word} with RLTune"
    )


@style.styled()
def _draw(frame: pd.DataFrame, means: dict[str, str]) -> Figure:
    titles = list(dict.fromkeys(frame["trace_title"]))
    figure, axes = style.panels(titles, 2, 2.5, 0.6, sharey=True)
    for axis, title in zip(axes, titles):
        for who, (_, colour, line) in LOOKS.items():
            curve = where(frame, trace_title=title, who=who)
            axis.plot(np.maximum(curve["jct_s"], 1.0), curve["share"], color=colour, linestyle=line)
            axis.axvline(curve["mean_s"].iloc[0], color=colour, linestyle=line, linewidth=0.9)
        box = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.5}
        place = {"transform": axis.transAxes, "ha": "right", "va": "bottom", "bbox": box}
        axis.text(0.98, 0.04, means[title].replace(", ", "\n"), fontsize=7.5, **place)
        axis.set(xscale="log", ylim=(0, 1))
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
        axis.yaxis.set_major_formatter(style.PERCENT)
    figure.supxlabel("JCT (s)", fontsize=9)
    figure.supylabel("Jobs completed within", fontsize=9)
    handles = [style.handle(name, colour, line=line) for name, colour, line in LOOKS.values()]
    style.legend(figure, [*handles, style.handle("mean", style.MUTED, line="-", linewidth=0.9)])
    return figure
