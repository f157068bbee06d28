"""What features and placement are worth: naive and pro RLTune, and the two variants between, where a run has them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rltune.config.cells import AXES
from rltune.evaluation.compare import compare
from rltune.report.artefact import Artefact, Column
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.style import POLICY_TITLE
from rltune.report.tables.common import (
    NAIVE, PRO, SETTING_TITLE, constant_settings, data_labels, lengths, varying, where,
)

NAN = float("nan")
PARTS = ("features", "placement")
SAME = [a for a in AXES if a not in PARTS]


def variant_title(features: str, placement: str) -> str:
    """`naive`, `pro`, or what the variant in between is made of."""
    for name, made_of in (("naive", NAIVE), ("pro", PRO)):
        if {"features": features, "placement": placement} == made_of:
            return name
    return f"{features} + {placement.replace('_', '-')}"


def ablation(
    cells: pd.DataFrame, windows: pd.DataFrame, paper: PaperResults, *,
    bootstrap: int, confidence: float, seed: int, source: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """One row a variant × window length, for every setting that has pro and at least one other variant.

    Each row has the variant's improvement over its own base, and pro's improvement over the variant on the same
    windows (empty for pro itself), both as fractions with intervals. Empty when no setting has two variants.
    """
    rows: list[dict[str, Any]] = []
    used = []
    for _, group in cells.groupby(SAME, sort=False):
        pro = where(group, **PRO)
        if len(group) < 2 or pro.empty:
            continue
        used += list(group["cell"])
        for _, cell in group.sort_values(list(PARTS), ascending=[False, True]).iterrows():
            for n in lengths(where(windows, cell=cell["cell"])):
                rows.append(_row(cell, pro.iloc[0], windows, n, bootstrap, confidence, seed))
    frame = pd.DataFrame(rows)
    if len(frame):
        frame = frame.sort_values("sequence_jobs", ascending=False, kind="stable", ignore_index=True)
    return _artefact(cells[cells["cell"].isin(used)], frame, paper, confidence, source), frame


def _row(
    cell: pd.Series, pro: pd.Series, windows: pd.DataFrame, n: int, bootstrap: int, confidence: float, seed: int
) -> dict[str, Any]:
    metric = "wait"
    own = where(windows, cell=cell["cell"])
    base = compare(own, metric, n, {"role": "rltune"}, {"role": "base"}, bootstrap, confidence, seed)
    row: dict[str, Any] = {
        **{k: cell[k] for k in ("trace_title", "trace", "data", "policy", *SETTING_TITLE, "cell")},
        "base": POLICY_TITLE.get(cell["policy"], cell["policy"]),
        "variant": variant_title(cell["features"], cell["placement"]),
        "sequence_jobs": n,
        "windows": base.windows,
        "base_mean": base.theirs_mean,
        "rltune_mean": base.ours_mean,
        "improvement": base.improvement,
        "low": base.low,
        "high": base.high,
        "pro_over": NAN,
        "pro_over_low": NAN,
        "pro_over_high": NAN,
    }
    if cell["cell"] != pro["cell"]:
        # the two agents ran on the same windows, so the comparison can be paired as that with a base is
        both = pd.concat([
            where(windows, cell=name, role="rltune").assign(variant=variant)
            for name, variant in ((pro["cell"], "pro"), (cell["cell"], "other"))
        ], ignore_index=True)
        over = compare(both, metric, n, {"variant": "pro"}, {"variant": "other"}, bootstrap, confidence, seed)
        row |= {"pro_over": over.improvement, "pro_over_low": over.low, "pro_over_high": over.high}
    return row


def _artefact(
    cells: pd.DataFrame, frame: pd.DataFrame, paper: PaperResults, confidence: float, source: str
) -> Artefact:
    key = ("Philly", "slurm-multifactor", "bsld", "pro_over_naive")
    printed = show(paper.value("fig10", *key), "percent")
    others = [c for c in varying(cells) if c not in PARTS] if len(cells) else []
    columns = {
        "trace_title": Column("Trace"),
        "base": Column("Base policy"),
        **{c: Column(SETTING_TITLE[c].capitalize(), "", "plain-int" if c == "seed" else "text") for c in others},
        "sequence_jobs": Column("Window", "jobs", "int"),
        "windows": Column("Windows", "", "int"),
        "variant": Column("Variant"),
        "features": Column("Features"),
        "placement": Column("Placement"),
        "base_mean": Column("Base", "s", "seconds", "Mean wait"),
        "rltune_mean": Column("RLTune", "s", "seconds", "Mean wait"),
        "improvement": Column("Less wait than base", "", "percent", "", "low", "high"),
        "pro_over": Column("Pro’s less wait than this", "", "percent", "", "pro_over_low", "pro_over_high"),
    }
    return Artefact(
        "ablation-numbers", "table", "Naive and pro RLTune in numbers", paper_ref=paper.ref("fig10"),
        caption="Naive sees raw features and places by best-fit; pro sees eight engineered features and places with "
        f"the look-ahead model. Brackets: {100 * confidence:.0f} % interval, paired by window; negative is worse.",
        data=data_labels(cells), source=source, columns=columns if len(frame) else {},
        notes=tuple(n for n in (
            f"The paper gives {printed} ({paper.where('fig10', *key)}) for BSLD over Slurm’s multifactor priority on "
            "Philly, where naive takes whole nodes. Ours is wait, with other base policies and best-fit for naive: the "
            "sizes are not comparable, the direction is.",
            constant_settings(cells) if len(cells) else "",
        ) if n),
    )
