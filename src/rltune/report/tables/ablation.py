"""Naive and pro RLTune, and the two variants between, where a run has them: the effect of features and placement."""

from typing import Any

import pandas as pd

from rltune.evaluation.compare import Comparison, compare
from rltune.evaluation.intervals import Intervals
from rltune.metrics import METRICS
from rltune.report import common
from rltune.report.artefact import Table
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.paper import PaperResults
from rltune.report.studies import PAPER_POLICY, STUDIES, main_part
from rltune.report.tables.comparison import against_paper, choices

PARTS = tuple(common.PRO)
TESTED = {"pro_over_p": "holm"}
TITLES = {"naive": common.NAIVE, "naive, whole nodes": common.NAIVE_PAPER, "pro": common.PRO}
OURS, OTHER = {"side": "ours"}, {"side": "other"}


def variant_title(features: str, placement: str) -> str:
    """`naive`, `pro`, or the features and placement of a variant in between."""
    titles = {tuple(variant.values()): title for title, variant in TITLES.items()}
    return titles.get((features, placement), f"{features} + {placement.replace('_', '-')}")


def ablation(cells: pd.DataFrame, windows: pd.DataFrame, paper: PaperResults, by: Intervals) -> Table:
    """One row per variant × window length, for every setting that has pro and at least one other variant.

    Agents are compared in the metric they were trained for (`measure`; of a mix, its heaviest part). Each row has the
    variant's improvement over its own base, and pro's improvement over the variant on the same windows (empty for pro
    itself), both as fractions with intervals; seeds are pooled as in `tables.comparison`, for pro over the variant
    those that both have. The paper's figure and a verdict stand where the setting is its own: Philly, Slurm's
    multifactor priority, BSLD, and a naive variant on whole nodes. Empty when no setting has two variants.
    """
    used = common.with_variants(cells)
    rows = [
        _row(variant, where(group, **common.PRO), windows, n, paper, by)
        for _, group in used.groupby(common.ABLATION_SETTING, sort=False)
        for _, variant in group.groupby(list(PARTS), sort=False)
        for n in common.lengths(where(windows, cell=variant["cell"].iloc[0]))
    ]
    rows = sorted(rows, key=lambda row: -row["sequence_jobs"])
    frame = common.with_holm(pd.DataFrame(rows), TESTED)
    measures = {row["measure"] for row in rows}
    study = next((s for s in STUDIES if measures == {s.metric}), None)
    less = study.less if study else "Better"
    return describe(
        "fig10-numbers",
        frame,
        paper,
        cells=used,
        without=("seed",),
        paper_ref=paper_ref(frame, paper),
        study=study,
        unit=study.unit if study else "",
        form=study.format if study else "number",
        less=less,
        over=f"Pro’s {less[0].lower()}{less[1:]}",
        settings=common.setting_columns(used, without=(*PARTS, "seed", "metric")),
        holm=common.holm_note(frame, TESTED, "of pro over another variant", by.bootstrap),
    ), frame


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
        "measure_title": METRICS[metric].noun,
        "variant": variant_title(cell["features"], cell["placement"]),
        "sequence_jobs": n,
        "base_mean": base.theirs_mean,
        "rltune_mean": base.ours_mean,
        **{k: getattr(base, k) for k in ("windows", "seeds", "improvement", "low", "high")},
        **dict.fromkeys(("pro_over", "pro_over_low", "pro_over_high", "pro_over_p"), common.NAN),
        **against_paper(None, base),
        "choice": choices(variant, each, n),
    }
    over = over_variant(pro, variant, windows, metric, n, by)
    if over is None:
        return row
    row |= common.gain("pro_over", over, prefix="pro_over_")
    in_paper = {k: cell[k] for k in PARTS} == common.NAIVE_PAPER and cell["backfill"] == "none"
    return row | against_paper(paper.find("fig10", *figure_key(cell)) if in_paper else None, over)


def over_variant(
    ours: pd.DataFrame, variant: pd.DataFrame, windows: pd.DataFrame, metric: str, n: int, by: Intervals
) -> Comparison | None:
    """Agents of one setting against those of another, over the seeds that both have; None where these are the same agents
    or have no seed in common.

    They ran on the same windows, so they can be compared pair by pair, as an agent and its base policy are.
    """
    agents = where(windows, role="rltune")
    pairs = ours.merge(variant, on="seed", suffixes=("", "_other"))
    if pairs.empty or (pairs["cell"] == pairs["cell_other"]).any():
        return None
    each = [
        pd.concat([where(agents, cell=cell).assign(**OURS), where(agents, cell=other).assign(**OTHER)])
        for cell, other in zip(pairs["cell"], pairs["cell_other"], strict=True)
    ]
    return compare(each, metric, n, OURS, OTHER, by)


def figure_key(cell: pd.Series) -> tuple[str, ...]:
    """The key that the paper's Figure 10 has, or would have, for this setting."""
    return cell["paper_trace"], PAPER_POLICY.get(cell["policy"], cell["policy"]), cell["metric"], "pro_over_naive"


def paper_ref(frame: pd.DataFrame, paper: PaperResults) -> str:
    """Figure 10, where some setting is that of the paper; "" otherwise."""
    return paper.ref("fig10") if any(paper.find("fig10", *figure_key(row)) for _, row in frame.iterrows()) else ""
