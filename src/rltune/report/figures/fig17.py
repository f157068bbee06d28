"""Figure 17: how long jobs of one long sequence take under QSSF and under RLTune."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import constant_settings, where
from rltune.report.format import show, three_digits
from rltune.report.paper import PaperResults
from rltune.report.style import BLUE, INK, MUTED, ORANGE, PAPER, PERCENT, WIDTH_IN, styled

LOOKS: dict[str, tuple[str, str, Any]] = {"qssf": ("QSSF", ORANGE, (0, (4, 1.5))), "rltune": ("RLTune", BLUE, "solid")}
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
    twice = used["trace_title"].duplicated(keep=False)
    titles = {
        c["cell"]: f"{c['trace_title']}, {c['estimate']}" if twice[i] else c["trace_title"] for i, c in used.iterrows()
    }
    frame = pd.concat(
        [
            _curve(titles[cell], who, group["jct_s"].to_numpy())
            for (cell, who), group in jobs.groupby(["cell", "who"], sort=False)
        ],
        ignore_index=True,
    )
    means = {titles[c["cell"]]: _summary(c) for _, c in comparisons.iterrows()}
    figure = _draw(frame, means)
    artefact = describe(
        "fig17",
        frame,
        paper,
        rows=used,
        shared_settings=constant_settings(used),
        means="; ".join(f"{title}: {words}" for title, words in means.items()),
    )
    return artefact, frame, figure


def _curve(title: str, who: str, jct_s: np.ndarray) -> pd.DataFrame:
    share = np.linspace(0, 1, POINTS)
    return pd.DataFrame(
        {
            "trace_title": title,
            "who": who,
            "scheduler": LOOKS[who][0],
            "jobs": len(jct_s),
            "share": share,
            "jct_s": np.quantile(jct_s, share),
            "mean_s": jct_s.mean(),
        }
    )


def _summary(comparison: pd.Series) -> str:
    """One comparison in words: jobs, and how much better or worse."""
    word = "less" if comparison["improvement"] >= 0 else "more"
    return (
        f"{show(comparison['jobs'], 'int')} jobs, mean {show(comparison['theirs_mean'], 'seconds')} s with QSSF, "
        f"{show(abs(comparison['improvement']), 'percent')} {word} with RLTune"
    )


@styled()
def _draw(frame: pd.DataFrame, means: dict[str, str]) -> Figure:
    titles = list(dict.fromkeys(frame["trace_title"]))
    across = min(2, len(titles))
    down = -(-len(titles) // across)
    figure = Figure(figsize=(WIDTH_IN, 0.6 + 2.5 * down))
    axes = figure.subplots(down, across, sharey=True, squeeze=False)
    for axis, title in zip(axes.flat, titles):
        for who, (_, colour, line) in LOOKS.items():
            curve = where(frame, trace_title=title, who=who)
            axis.plot(np.maximum(curve["jct_s"], 1.0), curve["share"], color=colour, linestyle=line)
            axis.axvline(curve["mean_s"].iloc[0], color=colour, linestyle=line, linewidth=0.9)
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(numticks=9))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: _short(v)))
        axis.set_title(title)
        axis.text(
            0.98,
            0.04,
            means[title].replace(", ", "\n"),
            transform=axis.transAxes,
            ha="right",
            va="bottom",
            fontsize=7.5,
            color=INK,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.5},
        )
        axis.set_ylim(0, 1)
        axis.yaxis.set_major_formatter(PERCENT)
    for axis in axes.flat[len(titles) :]:
        axis.set_visible(False)
    figure.supxlabel("JCT (s)", fontsize=9)
    figure.supylabel("Jobs completed within", fontsize=9)
    handles = [Line2D([], [], color=colour, linestyle=line, label=name) for name, colour, line in LOOKS.values()]
    figure.legend(
        handles=[*handles, Line2D([], [], color=MUTED, linewidth=0.9, label="mean")],
        loc="outside upper center",
        ncols=3,
    )
    return figure


def _short(seconds: float) -> str:
    """A tick: 1, 10, 100, 1k, 10k, 1M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if seconds >= size:
            return f"{seconds / size:g}{letter}"
    return three_digits(seconds).rstrip("0").rstrip(".") if seconds < 1 else f"{seconds:g}"
