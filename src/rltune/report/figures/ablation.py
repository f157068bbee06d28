"""Like Figure 10: how the variants of RLTune learn, and what they win over their base policy, side by side."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import constant_settings, distinct_names, where
from rltune.report.figures.curves import HOW_TO_READ, curve, draw
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.style import (
    BLUE,
    INK,
    MUTED,
    ORANGE,
    PERCENT,
    PURPLE,
    SKY,
    VERMILION,
    WIDTH_IN,
    label,
    legend_above,
    name_ticks,
    percent_ticks,
    rows_only,
    scheduler_title,
    styled,
    upright_in,
)
from rltune.report.tables.ablation import PARTS, paper_ref, variant_title, with_variants

COLOUR = {"naive": ORANGE, "naive, whole nodes": VERMILION, "pro": BLUE}
BETWEEN = (SKY, PURPLE, MUTED)
LOWEST = -2.0
"""Bars and intervals that go below are cut here, the bars' values written in them."""


def ablation(variants: pd.DataFrame, paper: PaperResults) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Bars of improvement over base with intervals: a panel a window length, a group a setting, a bar a variant.

    ``variants`` is the frame of `tables.ablation`, which is also this figure's, with `setting`, what a group is called.
    Raises ValueError when it is empty.
    """
    if variants.empty:
        raise ValueError("no ablation: the run has no setting in which pro can be compared with another variant")
    frame = variants.assign(setting=_settings(variants, variants["measure_title"]))
    figure = _draw(frame)
    bars = [
        f"{r['setting']}, windows of {r['sequence_jobs']}, {r['variant']} {show(r['improvement'], 'percent')}"
        for _, r in frame.iterrows()
    ]
    own = paper_ref(frame, paper)
    artefact = describe(
        "fig10",
        frame,
        paper_ref=own,
        own=own,
        measures=", ".join(dict.fromkeys(frame["measure_title"])),
        cut=(frame["improvement"] < LOWEST).any(),
        bars="; ".join(bars),
    )
    return artefact, frame, figure


def ablation_training(
    cells: pd.DataFrame, histories: pd.DataFrame, paper: PaperResults
) -> tuple[Artefact, pd.DataFrame, Figure]:
    """Training curves of the variants that `tables.ablation` compares: a panel a setting, a line a variant.

    The frame has one row an epoch, as `figures.training`'s. Raises ValueError when no setting has two variants.
    """
    chosen = with_variants(cells)
    if chosen.empty:
        raise ValueError("no ablation: the run has no setting in which pro can be compared with another variant")
    chosen = chosen.assign(
        panel=_settings(chosen, chosen["metric"]),
        line=[variant_title(f, p) for f, p in zip(chosen["features"], chosen["placement"])],
    )
    frame = pd.concat(
        [
            curve(cell, where(histories, cell=cell["cell"])).assign(panel=cell["panel"], line=cell["line"])
            for _, cell in chosen.iterrows()
        ],
        ignore_index=True,
    )
    titles = list(dict.fromkeys(chosen["panel"]))
    figure = draw(frame, {divmod(i, 2): title for i, title in enumerate(titles)}, _colours(frame["line"]))
    last = frame.groupby("cell", sort=False).agg({"panel": "last", "line": "last", "training": "last"})
    artefact = describe(
        "fig10-training",
        frame,
        rows=chosen,
        paper_ref=paper_ref(chosen, paper),
        how_to_read=HOW_TO_READ,
        shared_settings=constant_settings(chosen),
        last="; ".join(f"{r['panel']}, {r['line']} {show(r['training'], 'percent')}" for _, r in last.iterrows()),
    )
    return artefact, frame, figure


def _settings(rows: pd.DataFrame, measures: pd.Series) -> list[str]:
    """Trace, base policy and its backfill rule, the measure where there are several, and what else tells settings
    apart; `measures`: what each row is about, in words."""
    several = measures.nunique() > 1
    return distinct_names(
        rows,
        [
            f"{r['trace_title']}, {scheduler_title(r['policy'], r['backfill'])}" + (f", {measure}" if several else "")
            for (_, r), measure in zip(rows.iterrows(), measures, strict=True)
        ],
        without=(*PARTS, "seed"),
    )


def _colours(lines: pd.Series) -> dict[str, str]:
    """Variant → its colour, the same in every figure."""
    names = list(dict.fromkeys(lines))
    between = iter(BETWEEN * len(names))
    return {name: COLOUR.get(name) or next(between) for name in names}


@styled()
def _draw(frame: pd.DataFrame) -> Figure:
    sizes = list(dict.fromkeys(frame["sequence_jobs"]))
    variants = list(dict.fromkeys(frame["variant"]))
    colours = _colours(frame["variant"])
    places = {setting: i for i, setting in enumerate(dict.fromkeys(frame["setting"]))}
    width = 0.7 / len(variants)
    upright = upright_in(places, (WIDTH_IN - 0.8) / (len(places) * len(sizes)))
    figure = Figure(figsize=(WIDTH_IN, 3.1 + upright))
    axes = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    for axis, n in zip(axes, sizes):
        for k, variant in enumerate(variants):
            rows = where(frame, sequence_jobs=n, variant=variant)
            x = rows["setting"].map(places) + (k - (len(variants) - 1) / 2) * width
            errors = [
                (rows["improvement"] - rows["low"]).clip(lower=0),
                (rows["high"] - rows["improvement"]).clip(lower=0),
            ]
            axis.bar(
                x,
                rows["improvement"],
                width * 0.92,
                color=colours[variant],
                label=variant,
                yerr=errors,
                error_kw={"ecolor": INK, "elinewidth": 1.1, "capsize": 2.5},
            )
            look = {"ha": "center", "va": "bottom", "rotation": 90, "color": "white"}
            for at, value in zip(x, rows["improvement"]):
                if value < LOWEST:
                    label(axis, percent_ticks(value), (at, LOWEST), (0, 3), 7, **look)
        axis.axhline(0, color=INK, linewidth=0.9)
        axis.set_title(f"Windows of {show(n, 'int')} jobs")
        name_ticks(axis, places, upright > 0, 7 if len(places) > 3 else None)
        rows_only(axis)
        axis.yaxis.set_major_formatter(PERCENT)
    if (frame["low"].fillna(frame["improvement"]) < LOWEST).any():
        axes[0].set_ylim(LOWEST, 1.05)  # all panels share it
    wait = set(frame["measure"]) == {"wait"}
    axes[0].set_ylabel("Less mean wait than base" if wait else "Better than base")
    legend_above(figure, axes[0], len(variants))
    return figure
