"""All comparisons at a glance: improvement over the base policy and over the strongest heuristic, with intervals."""

from collections.abc import Sequence

import pandas as pd

from rltune.metrics import METRICS
from rltune.report import style
from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.common import best_measured, distinct_names, scheduler_titles
from rltune.report.figures.series import LEFT_MOST, dots
from rltune.report.paper import PaperResults

SIDES = {
    "Over base policy": ("improvement", "low", "high"),
    "Over best heuristic": ("over_strong", "over_strong_low", "over_strong_high"),
}


@style.styled()
def improvements(comparisons: Sequence[pd.DataFrame], paper: PaperResults) -> Drawing:
    """Dots with intervals, a row a comparison at the length with the most windows; the paper's figure as a cross.

    ``comparisons``: the frames of `tables.comparison`, one a study, whose best measured rows are this figure's frame,
    with `label`, a row's name.
    """
    frame = pd.concat([best_measured(frame) for frame in comparisons], ignore_index=True)
    frame["label"] = _labels(frame)
    colours = style.trace_colours(dict(zip(frame["trace_title"], frame["paper_trace"])))
    figure, axes = style.panels(list(SIDES), 2, 0.24 * len(frame), 0.9, sharex=True, sharey=True)
    for axis, columns in zip(axes, SIDES.values()):
        dots(axis, frame, columns, list(frame["trace_title"].map(colours)))
        style.name_rows(axis, list(frame["label"]))
    style.marks(axes[0], frame["paper"], range(len(frame)), "x", style.PURPLE, 6.5, markeredgewidth=1.8, zorder=6)
    only = set(frame["measure"]) == {"wait"}
    figure.supxlabel("Less mean wait (negative: more)" if only else "Better (negative: worse)")
    if frame["paper"].notna().any():
        ours = style.handle("ours, with interval", style.MUTED, "o", "-")
        style.legend(figure, [ours, style.handle("the paper", style.PURPLE, "x", markeredgewidth=1.8)])
    cut = (frame[[end for value, low, _ in SIDES.values() for end in (value, low)]] < LEFT_MOST).any().any()
    return describe("improvements", frame, paper if only else None, only=only, cut=cut), frame, figure


def _labels(frame: pd.DataFrame) -> list[str]:
    """Names of the rows: trace, base policy and its backfill rule, the metric where there are several, and the
    settings in which rows differ that would have the same name."""
    several = frame["measure"].nunique() > 1
    names = [
        f"{r['trace_title']} · {setting}"
        + (f" · {METRICS[r['measure']].short.lower()}" if several else "")
        + (" (mix)" if r["metric"] != r["measure"] else "")
        for setting, (_, r) in zip(scheduler_titles(frame), frame.iterrows())
    ]
    return distinct_names(frame, names)
