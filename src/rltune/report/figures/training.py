"""Figures 11, 13 and 16: how far the agent is from its base policy, epoch by epoch."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from rltune.report.artefact import Artefact
from rltune.report.paper import PaperResults
from rltune.report.studies import STUDIES, in_curves
from rltune.report.style import INK, MARKERS, MUTED, POLICY_TITLE, WIDTH_IN, styled, trace_colours
from rltune.report.tables.common import constant_settings, data_labels, proper, where

SMALLEST = {"utilisation": 1e-3}
"""Smaller values count as this in the normalised difference, as in the reward; of the other metrics it is 1."""
CURVES_TITLE = {
    "fig11": "Training curves", "fig13": "Training curves, slowdown and completion time",
    "fig16-training": "Training curves, Slurm multifactor", "training-utilisation": "Training curves, utilisation",
    "training-mixes": "Training curves, mixes of metrics",
}
PAPER_OF = {"fig11": "fig11", "fig13": "fig13", "fig16-training": "fig16"} | dict.fromkeys(
    ("training-utilisation", "training-mixes"), "")
"""Figure of curves → the paper's; "" where it draws none."""
METRIC_NOUN = {study.metric: study.noun for study in STUDIES}
METRIC_SHORT = {"wait": "Wait", "bsld": "Slowdown", "jct": "Completion time", "utilisation": "Utilisation"}


def training(
    cells: pd.DataFrame, histories: pd.DataFrame, paper: PaperResults, name: str = "fig11", source: str = ""
) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Training curves of RLTune proper in a figure of `studies.CURVES`: a panel a metric × base policy, a line a cell.

    The frame has one row an epoch: `training` and `validation`, both (base − RLTune) / the larger of the two means
    of the metric that the cell is trained for (no unit, above 0: RLTune is better), `difference` the same of training
    undivided, in the metric's unit (s of wait). Of utilisation, where more is better, base and RLTune change places; a
    mix has no unit, and its curves are its reward. Raises ValueError where no cell belongs to the figure.
    """
    mine = [in_curves(name, m, p) for m, p in zip(cells["metric"], cells["policy"], strict=True)]
    chosen, left = proper(cells[pd.Series(mine, index=cells.index, dtype=bool)].reset_index(drop=True))
    if chosen.empty:
        raise ValueError(f"no training curves for {name}: no agent was trained for what it shows")
    frame = pd.concat([_curve(cell, where(histories, cell=cell["cell"])) for _, cell in chosen.iterrows()],
                      ignore_index=True)
    with styled():
        figure = _draw(chosen, frame)
    last = frame.groupby("cell", sort=False)["training"].last()
    titles = list(dict.fromkeys(chosen["trace_title"]))
    panels = [_panel(m, p, chosen) for m, p in _panels(chosen)]
    metrics = ", ".join(dict.fromkeys(METRIC_NOUN.get(m, m) for m in chosen["metric"]))
    artefact = Artefact(
        name, "figure", CURVES_TITLE[name], paper_ref=PAPER_OF[name] and paper.ref(PAPER_OF[name]),
        caption=f"RLTune against its base policy in {metrics} on each epoch’s training sequences: (base − RLTune) "
        "over the larger of the two means, so above the line RLTune is better. Faint: each epoch; strong: mean of the "
        "last five. "
        "Markers: validation windows, the agent acting greedily; the checkpoint kept is the best of these. "
        "Dashed: a random order on the same validation windows; an agent at its height has learned nothing.",
        data=data_labels(chosen), source=source,
        notes=tuple(n for n in (
            "The paper scales each curve to −50 … +50, so only the direction of its curves can be compared "
            "with these." if PAPER_OF[name] else "",
            "Of utilisation, more is better: RLTune − base." if "utilisation" in set(chosen["metric"]) else "",
            left, constant_settings(chosen),
        ) if n),
        alt=f"Line charts, one panel a base policy ({', '.join(panels)}), one line a trace ({', '.join(titles)}). "
        f"In the last epoch RLTune is better than its base in {int((last > 0).sum())} of {len(last)} curves.",
    )
    return artefact, frame, figure


def _panels(cells: pd.DataFrame) -> list[tuple[str, str]]:
    """(metric, base policy) of each panel, those of a metric together."""
    pairs = list(dict.fromkeys(cells[["metric", "policy"]].itertuples(index=False, name=None)))
    metrics = list(dict.fromkeys(m for m, _ in pairs))
    return sorted(pairs, key=lambda pair: metrics.index(pair[0]))


def _places(metrics: list[str], across: int) -> tuple[list[tuple[int, int]], int]:
    """(row, column) of each panel, every metric beginning a row of its own; and how many rows."""
    places, row, column = [], 0, 0
    for before, metric in zip([metrics[0], *metrics], metrics):
        if column == across or before != metric:
            row, column = row + 1, 0
        places.append((row, column))
        column += 1
    return places, row + 1


def _panel(metric: str, policy: str, cells: pd.DataFrame) -> str:
    """A panel's title."""
    name = POLICY_TITLE.get(policy, policy)
    return f"Base policy {name}" if cells["metric"].nunique() == 1 else f"{METRIC_SHORT.get(metric, metric)}, {name}"


def normalised(base: pd.Series, agent: pd.Series, metric: str = "wait") -> pd.Series:
    """(base − agent) / the larger of the two in size, at least a second of wait."""
    return (base - agent) / np.maximum(np.maximum(base.abs(), agent.abs()), SMALLEST.get(metric, 1.0))


def _curve(cell: pd.Series, history: pd.DataFrame) -> pd.DataFrame:
    history, metric = history.sort_values("epoch"), cell["metric"]
    return pd.DataFrame({
        **{k: cell[k] for k in ("trace_title", "policy", "metric", "seed", "cell", "data")},
        "epoch": history["epoch"],
        "training": normalised(history["base"], history["rl"], metric),
        "validation": normalised(history["validation_base"], history["validation_rl"], metric),
        "random": normalised(history["validation_base"], history["validation_random"], metric),
        "difference": history["base"] - history["rl"],
    })


def _draw(cells: pd.DataFrame, frame: pd.DataFrame) -> Figure:
    panels = _panels(cells)
    metrics = [metric for metric, _ in panels]
    most = max(map(metrics.count, metrics))
    # a row a metric where there are several and they fit, as the paper has it
    across = most if len(set(metrics)) > 1 and most <= 3 else min(2, len(panels))
    places, down = _places(metrics, across)
    figure = Figure(figsize=(WIDTH_IN, 0.5 + 2.05 * down))
    axes = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    traces = dict(zip(cells["trace_title"], cells["paper_trace"]))
    colours = trace_colours(traces)
    markers = dict(zip(traces, MARKERS))
    for place, (metric, policy) in zip(places, panels):
        axis = axes[place]
        axis.axhline(0, color=INK, linewidth=0.9)
        axis.set_title(_panel(metric, policy, cells))
        for _, cell in where(cells, policy=policy, metric=metric).iterrows():
            rows, trace = where(frame, cell=cell["cell"]), cell["trace_title"]
            axis.plot(rows["epoch"], rows["training"], color=colours[trace], linewidth=0.8, alpha=0.4)
            axis.plot(rows["epoch"], rows["training"].rolling(5, min_periods=1).mean(), color=colours[trace])
            seen = rows.dropna(subset=["validation"])
            axis.plot(seen["epoch"], seen["random"], color=colours[trace], linewidth=1.0, linestyle=(0, (2, 2)))
            axis.plot(seen["epoch"], seen["validation"], linestyle="none", marker=markers[trace], markersize=4.5,
                      markeredgecolor=colours[trace], markerfacecolor="none", markeredgewidth=1.2)
    for place in set(np.ndindex(*axes.shape)) - set(places):
        axes[place].set_visible(False)
    axes[0, 0].xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.supxlabel("Epoch", fontsize=9)
    figure.supylabel("gap to base (relative)", fontsize=9)
    handles = [Line2D([], [], color=colours[t], marker=markers[t], markerfacecolor="none", markersize=4.5, label=t)
               for t in traces]
    handles += [Line2D([], [], color=MUTED, label="training"),
                Line2D([], [], color=MUTED, linestyle="none", marker="o", markerfacecolor="none", markersize=4.5,
                       label="validation"),
                Line2D([], [], color=MUTED, linewidth=1.0, linestyle=(0, (2, 2)), label="random order")]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure
