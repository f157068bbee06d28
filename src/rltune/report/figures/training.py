"""Figures 11, 13 and 16: how far the agent is from its base policy, epoch by epoch."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe, entry_of
from rltune.report.common import SETTING_TITLE, policy_title, proper, varying
from rltune.report.figures.curves import HOW_TO_READ, METRIC_SHORT, curves, draw
from rltune.report.paper import PaperResults
from rltune.report.studies import STUDIES, in_curves
from rltune.report.style import trace_colours

METRIC_NOUN = {study.metric: study.noun for study in STUDIES}


def training(
    cells: pd.DataFrame, histories: pd.DataFrame, paper: PaperResults, name: str
) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Training curves of RLTune proper in a figure of `studies.CURVES`: a panel a metric × base policy × setting, a line
    a cell.

    The frame has one row an epoch: `training` and `validation`, both (base − RLTune) / the larger of the two means
    of the metric that the cell is trained for (no unit, above 0: RLTune is better), `difference` the same of training
    undivided, in the metric's unit (s of wait). Of utilisation, where more is better, base and RLTune change places; a
    mix has no unit, and its curves are its reward. Raises ValueError where no cell belongs to the figure.
    """
    mine = [in_curves(name, m, p) for m, p in zip(cells["metric"], cells["policy"], strict=True)]
    chosen, left = proper(cells[pd.Series(mine, index=cells.index, dtype=bool)].reset_index(drop=True))
    if chosen.empty:
        raise ValueError(f"no training curves for {name}: no agent was trained for what it shows")
    chosen = chosen.assign(panel=_panels(chosen), line=chosen["trace_title"])
    frame = curves(chosen, histories)
    placed = chosen.drop_duplicates("panel").sort_values("metric", key=lambda m: pd.factorize(m)[0], kind="stable")
    panels = dict(zip(_places(list(placed["metric"])), placed["panel"]))
    figure = draw(frame, panels, trace_colours(dict(zip(chosen["trace_title"], chosen["paper_trace"]))))
    last = frame.groupby("cell", sort=False)["training"].last()
    titles = list(dict.fromkeys(chosen["trace_title"]))
    metrics = ", ".join(dict.fromkeys(METRIC_NOUN.get(m, m) for m in chosen["metric"]))
    artefact = describe(
        name,
        frame,
        paper,
        cells=chosen,
        metrics=metrics,
        how_to_read=HOW_TO_READ,
        in_paper=entry_of(name).paper,
        utilisation="utilisation" in set(chosen["metric"]),
        left=left,
        panels="; ".join(panels.values()),
        traces=", ".join(titles),
        better=int((last > 0).sum()),
        curves=len(last),
    )
    return artefact, frame, figure


def _panels(cells: pd.DataFrame) -> list[str]:
    """The title of each cell's panel: its base policy, its metric where there are several, and the settings in which
    it differs from another cell of its trace, policy and metric; seeds share a panel."""
    several = cells["metric"].nunique() > 1
    titles = pd.Series("", cells.index, dtype=object)
    for (metric, policy), alike in cells.groupby(["metric", "policy"], sort=False):
        apart = {c for _, mine in alike.groupby("trace_title", sort=False) for c in varying(mine)} - {"seed", "metric"}
        name = policy_title(policy)
        first = f"{METRIC_SHORT.get(metric, metric)}, {name}" if several else f"Base policy {name}"
        for i, cell in alike.iterrows():
            titles[i] = ", ".join([first, *(str(cell[c]) for c in SETTING_TITLE if c in apart)])
    return list(titles)


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
