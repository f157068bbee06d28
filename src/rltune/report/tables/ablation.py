"""Naive and pro RLTune, and the two variants between, where a run has them: the effect of features and placement."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rltune.config.cells import AXES
from rltune.evaluation.compare import compare
from rltune.evaluation.intervals import Intervals
from rltune.report import common
from rltune.report.artefact import Table
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.paper import PaperResults
from rltune.report.studies import PAPER_POLICY, STUDIES, main_part
from rltune.report.tables.comparison import against_paper, choices

PARTS = ("features", "placement")
TESTED = {"pro_over_p": "holm"}
SAME = [a for a in AXES if a not in (*PARTS, "seed")]
TITLES = {"naive": common.NAIVE, "naive, whole nodes": common.NAIVE_PAPER, "pro": common.PRO}
OURS, OTHER = {"who": "ours"}, {"who": "other"}
METRIC_TITLE = {study.metric: study.noun for study in STUDIES}


def variant_title(features: str, placement: str) -> str:
    """`naive`, `pro`, or what the variant in between is made of."""
    titles = {tuple(made_of.values()): title for title, made_of in TITLES.items()}
    return titles.get((features, placement), f"{features} + {placement.replace('_', '-')}")


def ablation(cells: pd.DataFrame, windows: pd.DataFrame, paper: PaperResults, by: Intervals) -> Table:
    """One row per variant × window length, for every setting that has pro and at least one other variant.

    Agents are compared in the metric they were trained for (`measure`; of a mix, its heaviest part). Each row has the
    variant's improvement over its own base, and pro's improvement over the variant on the same windows (empty for pro
    itself), both as fractions with intervals; seeds are pooled as in `tables.comparison`, for pro over the variant
    those that both have. The paper's figure and a verdict stand where the setting is its own: Philly, Slurm's
    multifactor priority, BSLD, and a naive variant on whole nodes. Empty when no setting has two variants.
    """
    used = with_variants(cells)
    rows = [
        _row(variant, where(group, **common.PRO), windows, n, paper, by)
        for _, group in used.groupby(SAME, sort=False)
        for _, variant in group.groupby(list(PARTS), sort=False)
        for n in common.lengths(where(windows, cell=variant["cell"].iloc[0]))
    ]
    frame = pd.DataFrame(rows)
    if len(frame):
        frame = frame.sort_values("sequence_jobs", ascending=False, kind="stable", ignore_index=True)
        frame = common.with_holm(frame, TESTED)
    measures = set(frame["measure"]) if len(frame) else set()
    study = next((s for s in STUDIES if measures == {s.metric}), None)
    less = study.less if study else "Better"
    return describe(
        "fig10-numbers",
        frame,
        paper,
        cells=used,
        without=("seed",),
        by=by,
        paper_ref=paper_ref(frame, paper),
        study=study,
        unit=study.unit if study else "",
        form=study.format if study else "number",
        less=less,
        over=f"Pro’s {less[0].lower()}{less[1:]}",
        settings=common.setting_columns(used, without=(*PARTS, "seed", "metric")),
        holm=common.holm_note(frame, TESTED, "of pro over another variant", by.confidence, by.bootstrap),
    ), frame


def with_variants(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of the settings that have pro and at least one other variant, naive first."""
    chosen = cells[
        (cells["agent"] == "rltune") & cells["features"].isin([common.PRO["features"], common.NAIVE["features"]])
    ]
    used = [
        name
        for _, group in chosen.groupby(SAME, sort=False)
        if len(where(group, **common.PRO)) and len(group[list(PARTS)].drop_duplicates()) > 1
        for name in group.sort_values([*PARTS, "seed"], ascending=[False, True, True])["cell"]
    ]
    return chosen.set_index("cell", drop=False).loc[used].reset_index(drop=True)


def _row(
    variant: pd.DataFrame, pro: pd.DataFrame, windows: pd.DataFrame, n: int, paper: PaperResults, by: Intervals
) -> dict[str, Any]:
    cell = variant.iloc[0]
    metric = main_part(cell["metric"])
    each = [where(windows, cell=name) for name in variant["cell"]]
    base = compare(each, metric, n, {"role": "rltune"}, {"role": "base"}, by)
    row: dict[str, Any] = {
        **common.about(variant),
        "measure": metric,
        "measure_title": METRIC_TITLE[metric],
        "variant": variant_title(cell["features"], cell["placement"]),
        "sequence_jobs": n,
        "base_mean": base.theirs_mean,
        "rltune_mean": base.ours_mean,
        **{k: getattr(base, k) for k in ("windows", "seeds", "improvement", "low", "high")},
        **dict.fromkeys(("pro_over", "pro_over_low", "pro_over_high", "pro_over_p"), common.NAN),
        **against_paper(None, base),
        "choice": choices(variant, each, n),
    }
    pairs = of_the_same_seed(pro, variant)
    if cell["cell"] in set(pro["cell"]) or pairs.empty:
        return row
    over = compare(side_by_side(windows, pairs), metric, n, OURS, OTHER, by)
    row |= common.gain("pro_over", over, prefix="pro_over_")
    in_paper = {k: cell[k] for k in PARTS} == common.NAIVE_PAPER and cell["backfill"] == "none"
    return row | against_paper(paper.find("fig10", *figure_key(cell)) if in_paper else None, over)


def of_the_same_seed(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """A row per seed that cells of both settings have: the columns of `ours`, and of `theirs` as `<column>_other`."""
    return ours.merge(theirs, on="seed", suffixes=("", "_other"))


def side_by_side(windows: pd.DataFrame, pairs: pd.DataFrame) -> list[pd.DataFrame]:
    """A table per row of :func:`of_the_same_seed`: the windows of both agents, with `who` (OURS, OTHER).

    They ran on the same windows, so they can be compared pair by pair, as an agent and its base policy are.
    """

    def runs(cell: str, who: dict[str, str]) -> pd.DataFrame:
        return where(windows, cell=cell, role="rltune").assign(**who)

    return [
        pd.concat([runs(mine, OURS), runs(other, OTHER)], ignore_index=True)
        for mine, other in zip(pairs["cell"], pairs["cell_other"], strict=True)
    ]


def figure_key(cell: pd.Series) -> tuple[str, ...]:
    """Where the paper's Figure 10 would print a figure for a setting like this."""
    return cell["paper_trace"], PAPER_POLICY.get(cell["policy"], cell["policy"]), cell["metric"], "pro_over_naive"


def paper_ref(frame: pd.DataFrame, paper: PaperResults) -> str:
    """Figure 10, where some setting is that of the paper; "" otherwise."""
    return paper.ref("fig10") if any(paper.find("fig10", *figure_key(row)) for _, row in frame.iterrows()) else ""
