"""Like Figure 10: how the variants of RLTune learn, and what they gain over their base policy."""

from itertools import cycle

import pandas as pd

from rltune.report import style
from rltune.report.artefact import Drawing
from rltune.report.artefacts import describe
from rltune.report.common import distinct_names, scheduler_titles, where, with_variants
from rltune.report.figures.series import LEFT_MOST, dots
from rltune.report.figures.training import curves, draw
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.tables.ablation import PARTS, paper_ref, variant_title

NONE = "no ablation: the run has no setting in which pro can be compared with another variant"
COLOURS = {"naive": style.ORANGE, "naive, whole nodes": style.VERMILION, "pro": style.BLUE}
BETWEEN = (style.SKY, style.PURPLE, style.MUTED)


@style.styled()
def ablation(variants: pd.DataFrame, paper: PaperResults) -> Drawing:
    """Improvement over base with intervals: a panel a window length, a row a setting and variant.

    ``variants`` is the frame of `tables.ablation`, which is also this figure's, with `setting`, what a group is called.
    Raises ValueError when it is empty.
    """
    if variants.empty:
        raise ValueError(NONE)
    frame = variants.assign(setting=_settings(variants, variants["measure_title"]))
    sizes = frame["sequence_jobs"].unique()
    colours = _colours(frame["variant"])
    named = frame[["setting", "variant"]].drop_duplicates(ignore_index=True)  # a position each, the same in every panel
    position = {(of["setting"], of["variant"]): y for y, of in named.iterrows()}
    titles = [f"Windows of {show(n, 'int')} jobs" for n in sizes]
    figure, axes = style.panels(titles, len(sizes), 0.2 * len(named), 1.1, sharex=True, sharey=True)
    for axis, n in zip(axes, sizes):
        rows = where(frame, sequence_jobs=n)
        y = [position[of] for of in zip(rows["setting"], rows["variant"], strict=True)]
        dots(axis, rows, ("improvement", "low", "high"), list(rows["variant"].map(colours)), y)
        style.name_rows(axis, list(named["setting"].where(~named["setting"].duplicated(), "")))
    only = set(frame["measure"]) == {"wait"}
    figure.supxlabel("Less mean wait than base (negative: more)" if only else "Better than base")
    style.legend(figure, [style.handle(name, colour, "o", "-") for name, colour in colours.items()])
    cut = (frame[["improvement", "low"]] < LEFT_MOST).any().any()
    return describe("fig10", frame, paper_ref=paper_ref(frame, paper), cut=cut), frame, figure


def ablation_training(cells: pd.DataFrame, histories: pd.DataFrame, paper: PaperResults) -> Drawing:
    """Training curves of the variants that `tables.ablation` compares: a panel a setting, a line a variant.

    The frame has one row an epoch, as `figures.training`'s. Raises ValueError when no setting has two variants.
    """
    chosen = with_variants(cells)
    if chosen.empty:
        raise ValueError(NONE)
    chosen = chosen.assign(
        panel=_settings(chosen, chosen["metric"]),
        line=[variant_title(f, p) for f, p in zip(chosen["features"], chosen["placement"])],
    )
    frame = curves(chosen, histories)
    figure = draw(frame, list(chosen["panel"].unique()), 2, _colours(frame["line"]))
    last = frame.drop_duplicates("cell", keep="last").to_dict("records")
    artefact = describe("fig10-training", frame, cells=chosen, paper_ref=paper_ref(chosen, paper), last=last)
    return artefact, frame, figure


def _settings(rows: pd.DataFrame, measures: pd.Series) -> list[str]:
    """Trace, base policy and its backfill rule, the measure where there are several, and what else distinguishes
    settings; `measures`: that of each row, in words."""
    several = measures.nunique() > 1
    parts = zip(rows["trace_title"], scheduler_titles(rows), measures, strict=True)
    names = [", ".join(part if several else part[:2]) for part in parts]
    return distinct_names(rows, names, without=(*PARTS, "seed"))


def _colours(lines: pd.Series) -> dict[str, str]:
    """Variant → its colour, the same in every figure."""
    between = cycle(BETWEEN)
    return {name: COLOURS.get(name) or next(between) for name in lines.unique()}
