"""Figures 11, 13 and 16: how far agents are from their base policies, epoch by epoch."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rltune.metrics import METRICS
from rltune.report import style
from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.common import SETTING_TITLE, varying, where, without_variants
from rltune.report.figures.series import lines
from rltune.report.paper import PaperResults
from rltune.report.studies import in_curves
from rltune.report.style import policy_title, trace_colours


def normalised(base: pd.Series, agent: pd.Series, metric: str) -> pd.Series:
    """(base − agent) / the larger of the two in size, which is at least the metric's floor, as in the reward."""
    floor = METRICS[metric].floor if metric in METRICS else 1.0
    return (base - agent) / np.maximum(np.maximum(base.abs(), agent.abs()), floor)


def curves(cells: pd.DataFrame, histories: pd.DataFrame) -> pd.DataFrame:
    """One row a cell and epoch of training: `training`, `validation` and `random` (`normalised`, no unit), `difference`,
    that of training undivided, in the metric's unit, and the ``panel`` and ``line`` that the cell has."""
    frames = []
    for _, cell in cells.iterrows():
        history, metric = where(histories, cell=cell["cell"]).sort_values("epoch"), cell["metric"]
        columns = {
            **{k: cell[k] for k in ("trace_title", "policy", "metric", "seed", "cell", "data")},
            "epoch": history["epoch"],
            "training": normalised(history["base"], history["rl"], metric),
            "validation": normalised(history["validation_base"], history["validation_rl"], metric),
            "random": normalised(history["validation_base"], history["validation_random"], metric),
            "difference": history["base"] - history["rl"],
            **{k: cell[k] for k in ("panel", "line")},
        }
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


@style.styled()
def draw(frame: pd.DataFrame, panels: Sequence[str], across: int, colours: Mapping[str, str]) -> Figure:
    """The panels of these titles, so many in a row, each with the lines of the cells that it has.

    ``frame``: of :func:`curves`, with ``panel``, one of the titles, and ``line``, what a cell is drawn as, one of
    ``colours``: cells that differ by seed are lines of one name.
    """
    smooth = frame.groupby("cell")["training"].transform(lambda values: values.rolling(5, min_periods=1).mean())
    frame = frame.assign(smooth=smooth)
    figure, axes = style.panels(panels, across, 2.05, sharex=True, sharey=True)
    markers = dict(zip(colours, cycle(style.MARKERS)))
    for axis, panel in zip(axes, panels):
        rows = where(frame, panel=panel)
        axis.axhline(0, color=style.INK, linewidth=0.9)
        each = {"x": "epoch", "by": "line", "colours": colours, "units": "cell", "legend": False}
        lines(axis, rows, y="training", linewidth=0.8, alpha=0.4, **each)
        lines(axis, rows, y="smooth", **each)
        lines(axis, rows, y="random", linewidth=1.0, dashed=colours, **each)
        for line, seen in rows.dropna(subset=["validation"]).groupby("line", sort=False):
            look = {"marker": markers[line], "color": colours[line], "markersize": 4.5}
            axis.plot(seen["epoch"], seen["validation"], linestyle="none", mfc="none", mew=1.2, **look)
    axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.supxlabel("Epoch")
    figure.supylabel("gap to base (relative)")
    handles = [style.handle(name, colour, markers[name], "-", mfc="none") for name, colour in colours.items()]
    handles.append(style.handle("training", style.MUTED, line="-"))
    handles.append(style.handle("validation", style.MUTED, "o", mfc="none"))
    handles.append(style.handle("random order", style.MUTED, line="--", linewidth=1.0))
    style.legend(figure, handles, 6 if len(handles) < 7 else 4)
    return figure


def training(cells: pd.DataFrame, histories: pd.DataFrame, paper: PaperResults, name: str) -> Drawing:
    """Training curves of RLTune proper in one figure: a panel a metric × base policy × setting, a line
    a cell.

    The frame has one row an epoch: `training` and `validation`, both (base − RLTune) / the larger of the two means
    of the metric that the cell is trained for (no unit, above 0: RLTune is better), `difference` the same of training
    undivided, in the metric's unit (s of wait). Of utilisation, where more is better, base and RLTune change places; a
    mix has no unit, and its curves are its reward.
    """
    shown = [in_curves(name, m, p) for m, p in zip(cells["metric"], cells["policy"], strict=True)]
    chosen, left = without_variants(cells[np.array(shown, bool)].reset_index(drop=True))
    chosen = chosen.assign(panel=_panels(chosen), line=chosen["trace_title"])
    frame = curves(chosen, histories)
    panels = chosen.drop_duplicates("panel").sort_values("metric", key=lambda m: pd.factorize(m)[0], kind="stable")
    most = panels["metric"].value_counts().max()
    across = most if panels["metric"].nunique() > 1 and most <= 3 else 2  # as in the paper, a row for each metric
    colours = trace_colours(dict(zip(chosen["trace_title"], chosen["paper_trace"])))
    figure = draw(frame, list(panels["panel"]), across, colours)
    last = frame.groupby("cell", sort=False)["training"].last()
    facts = {
        "metrics": list(dict.fromkeys(METRICS[m].noun if m in METRICS else m for m in chosen["metric"])),
        "panels": list(panels["panel"]),
        "better": int((last > 0).sum()),
        "left": left,
    }
    return describe(name, frame, paper, cells=chosen, **facts), frame, figure


def _panels(cells: pd.DataFrame) -> list[str]:
    """The title of each cell's panel: its base policy, its metric where there are several, and the settings in which
    it differs from another cell of its trace, policy and metric; seeds share a panel."""
    several = cells["metric"].nunique() > 1
    titles = pd.Series("", cells.index, dtype=object)
    for (metric, policy), alike in cells.groupby(["metric", "policy"], sort=False):
        differ = {c for _, part in alike.groupby("trace_title", sort=False) for c in varying(part)} - {"seed", "metric"}
        name = policy_title(policy)
        short = METRICS[metric].short if metric in METRICS else metric
        first = f"{short}, {name}" if several else f"Base policy {name}"
        for i, cell in alike.iterrows():
            titles[i] = ", ".join([first, *(str(cell[c]) for c in SETTING_TITLE if c in differ)])
    return list(titles)
