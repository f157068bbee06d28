"""Figures 11, 13 and 16: how far the agent is from its base policy, epoch by epoch."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rltune.report.artefact import Artefact
from rltune.report.figures.curves import HOW_TO_READ, METRIC_SHORT, curve, draw
from rltune.report.paper import PaperResults
from rltune.report.studies import STUDIES, in_curves
from rltune.report.style import POLICY_TITLE, styled, trace_colours
from rltune.report.tables.common import SETTING_TITLE, constant_settings, data_labels, proper, varying, where

CURVES_TITLE = {
    "fig11": "Training curves", "fig13": "Training curves, slowdown and completion time",
    "fig16-training": "Training curves, Slurm multifactor", "training-utilisation": "Training curves, utilisation",
    "training-mixes": "Training curves, mixes of metrics",
}
PAPER_OF = {"fig11": "fig11", "fig13": "fig13", "fig16-training": "fig16"} | dict.fromkeys(
    ("training-utilisation", "training-mixes"), "")
"""Figure of curves → the paper's; "" where it draws none."""
METRIC_NOUN = {study.metric: study.noun for study in STUDIES}


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
    chosen = chosen.assign(panel=[_panel(m, p, chosen) for m, p in zip(chosen["metric"], chosen["policy"])])
    chosen = chosen.assign(line=_lines(chosen))
    frame = pd.concat([
        curve(cell, where(histories, cell=cell["cell"])).assign(panel=cell["panel"], line=cell["line"])
        for _, cell in chosen.iterrows()
    ], ignore_index=True)
    pairs = _panels(chosen)
    panels = dict(zip(_places([metric for metric, _ in pairs]), (_panel(*pair, chosen) for pair in pairs)))
    with styled():
        figure = draw(frame, panels, trace_colours(dict(zip(chosen["line"], chosen["paper_trace"]))))
    last = frame.groupby("cell", sort=False)["training"].last()
    titles = list(dict.fromkeys(chosen["line"]))
    metrics = ", ".join(dict.fromkeys(METRIC_NOUN.get(m, m) for m in chosen["metric"]))
    artefact = Artefact(
        name, "figure", CURVES_TITLE[name], paper_ref=PAPER_OF[name] and paper.ref(PAPER_OF[name]),
        caption=f"RLTune against its base policy in {metrics} on each epoch’s training sequences: "
        f"{HOW_TO_READ}",
        data=data_labels(chosen), source=source,
        notes=tuple(n for n in (
            "The paper scales each curve to −50 … +50, so only the direction of its curves can be compared "
            "with these." if PAPER_OF[name] else "",
            "Of utilisation, more is better: RLTune − base." if "utilisation" in set(chosen["metric"]) else "",
            left, constant_settings(chosen),
        ) if n),
        alt=f"Line charts, one panel a base policy ({', '.join(panels.values())}), one line an "
        f"agent ({', '.join(titles)}). "
        f"In the last epoch RLTune is better than its base in {int((last > 0).sum())} of {len(last)} curves.",
    )
    return artefact, frame, figure


def _lines(cells: pd.DataFrame) -> list[str]:
    """What each cell's line is called: its trace, and where a panel has several of one, what they differ in."""
    apart = {c for _, alike in cells.groupby(["panel", "trace_title"], sort=False) for c in varying(alike)}
    settings = [c for c in SETTING_TITLE if c in apart - {"seed", "metric"}]
    return [", ".join([str(cell["trace_title"]), *(str(cell[c]) for c in settings)]) for _, cell in cells.iterrows()]


def _panels(cells: pd.DataFrame) -> list[tuple[str, str]]:
    """(metric, base policy) of each panel, those of a metric together."""
    pairs = list(dict.fromkeys(cells[["metric", "policy"]].itertuples(index=False, name=None)))
    metrics = list(dict.fromkeys(m for m, _ in pairs))
    return sorted(pairs, key=lambda pair: metrics.index(pair[0]))


def _places(metrics: list[str]) -> list[tuple[int, int]]:
    """(row, column) of each panel; every metric begins a row of its own where there are several and they fit, as in
    the paper."""
    most = max(map(metrics.count, metrics))
    across = most if len(set(metrics)) > 1 and most <= 3 else min(2, len(metrics))
    places, row, column = [], 0, 0
    for before, metric in zip([metrics[0], *metrics], metrics):
        if column == across or before != metric:
            row, column = row + 1, 0
        places.append((row, column))
        column += 1
    return places


def _panel(metric: str, policy: str, cells: pd.DataFrame) -> str:
    """A panel's title."""
    name = POLICY_TITLE.get(policy, policy)
    return f"Base policy {name}" if cells["metric"].nunique() == 1 else f"{METRIC_SHORT.get(metric, metric)}, {name}"
