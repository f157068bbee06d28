"""What features and placement are worth: naive and pro RLTune, and the two variants between, where a run has them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rltune.config.cells import AXES
from rltune.evaluation.compare import compare
from rltune.report.artefact import Artefact, Column
from rltune.report.format import NBSP, show
from rltune.report.paper import PaperResults
from rltune.report.studies import PAPER_POLICY, STUDIES, main_part
from rltune.report.style import POLICY_TITLE
from rltune.report.tables.common import (
    NAIVE,
    NAIVE_PAPER,
    PRO,
    SETTING_TITLE,
    constant_settings,
    data_labels,
    lengths,
    varying,
    where,
)
from rltune.report.tables.comparison import way_of
from rltune.report.tables.comparison_words import seeds_note
from rltune.report.tables.holm import holm_note, with_holm
from rltune.report.verdict import RULE, verdict

NAN = float("nan")
PARTS = ("features", "placement")
TESTED = {"pro_over_p": "holm"}
SAME = [a for a in AXES if a not in (*PARTS, "seed")]
TITLES = {"naive": NAIVE, "naive, whole nodes": NAIVE_PAPER, "pro": PRO}
OURS, OTHER = {"who": "ours"}, {"who": "other"}
METRIC_TITLE = {study.metric: study.noun for study in STUDIES}


def variant_title(features: str, placement: str) -> str:
    """`naive`, `pro`, or what the variant in between is made of."""
    for name, made_of in TITLES.items():
        if {"features": features, "placement": placement} == made_of:
            return name
    return f"{features} + {placement.replace('_', '-')}"


def ablation(
    cells: pd.DataFrame,
    windows: pd.DataFrame,
    paper: PaperResults,
    *,
    bootstrap: int,
    confidence: float,
    seed: int,
    source: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """One row a variant × window length, for every setting that has pro and at least one other variant.

    Compared is the metric that the agents were trained for (`measure`; of a mix, its heaviest part). Each row has the
    variant's improvement over its own base, and pro's improvement over the variant on the same windows (empty for pro
    itself), both as fractions with intervals; seeds are pooled as in `tables.comparison`, for pro over the variant
    those that both have. The paper's figure and a verdict stand where the setting is its own: Philly, Slurm's
    multifactor priority, BSLD, and a naive variant on whole nodes. Empty when no setting has two variants.
    """
    rows: list[dict[str, Any]] = []
    used = compared(cells)
    for _, group in used.groupby(SAME, sort=False):
        pro = where(group, **PRO)
        for _, variant in group.groupby(list(PARTS), sort=False):
            for n in lengths(where(windows, cell=variant["cell"].iloc[0])):
                rows.append(_row(variant, pro, windows, n, paper, bootstrap, confidence, seed))
    frame = pd.DataFrame(rows)
    if len(frame):
        frame = frame.sort_values("sequence_jobs", ascending=False, kind="stable", ignore_index=True)
        frame = with_holm(frame, TESTED)
    return _artefact(used, frame, paper, confidence, bootstrap, source), frame


def compared(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of the settings that have pro and at least one other variant, naive first."""
    chosen = cells[(cells["agent"] == "rltune") & cells["features"].isin([PRO["features"], NAIVE["features"]])]
    used = [
        name
        for _, group in chosen.groupby(SAME, sort=False)
        if len(where(group, **PRO)) and len(group[list(PARTS)].drop_duplicates()) > 1
        for name in group.sort_values([*PARTS, "seed"], ascending=[False, True, True])["cell"]
    ]
    return chosen.set_index("cell", drop=False).loc[used].reset_index(drop=True)


def _row(
    variant: pd.DataFrame,
    pro: pd.DataFrame,
    windows: pd.DataFrame,
    n: int,
    paper: PaperResults,
    bootstrap: int,
    confidence: float,
    seed: int,
) -> dict[str, Any]:
    cell = variant.iloc[0]
    metric = main_part(cell["metric"])
    each = [where(windows, cell=name) for name in variant["cell"]]
    base = compare(each, metric, n, {"role": "rltune"}, {"role": "base"}, bootstrap, confidence, seed)
    row: dict[str, Any] = {
        **{k: cell[k] for k in ("trace_title", "trace", "paper_trace", "data", "policy", *SETTING_TITLE, "cell")},
        "seed": ", ".join(str(s) for s in variant["seed"]),
        "seeds": base.seeds,
        "measure": metric,
        "measure_title": METRIC_TITLE[metric],
        "base": POLICY_TITLE.get(cell["policy"], cell["policy"]),
        "variant": variant_title(cell["features"], cell["placement"]),
        "sequence_jobs": n,
        "windows": base.windows,
        "base_mean": base.theirs_mean,
        "rltune_mean": base.ours_mean,
        "improvement": base.improvement,
        "low": base.low,
        "high": base.high,
        **dict.fromkeys(("pro_over", "pro_over_low", "pro_over_high", "pro_over_p", "paper"), NAN),
        "paper_says": "",
        "verdict": "",
        "way": "; ".join(
            dict.fromkeys(
                way_of(own, where(table, sequence_jobs=n, role="rltune").iloc[0])
                for (_, own), table in zip(variant.iterrows(), each, strict=True)
            )
        ),
    }
    pairs = of_the_same_seed(pro, variant)
    if cell["cell"] in set(pro["cell"]) or pairs.empty:
        return row
    over = compare(side_by_side(windows, pairs), metric, n, OURS, OTHER, bootstrap, confidence, seed)
    row |= {"pro_over": over.improvement, "pro_over_low": over.low, "pro_over_high": over.high, "pro_over_p": over.p}
    entry = paper.find("fig10", *figure_key(cell)) if {k: cell[k] for k in PARTS} == NAIVE_PAPER else None
    if entry is not None and cell["backfill"] == "none":
        row |= {
            "paper": entry.value,
            "paper_says": show(entry.value, "percent").replace(NBSP, " "),
            "verdict": verdict(entry.value, over.low, over.high, over.windows),
        }
    return row


def of_the_same_seed(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """A row a seed that cells of both settings have: the columns of `ours`, and of `theirs` as `<column>_other`."""
    return ours.merge(theirs, on="seed", suffixes=("", "_other"))


def side_by_side(windows: pd.DataFrame, pairs: pd.DataFrame) -> list[pd.DataFrame]:
    """A table a row of :func:`of_the_same_seed`: the windows of both agents, told apart by `who` (OURS, OTHER).

    They ran on the same windows, so they can be compared pair by pair, as an agent and its base policy are.
    """
    return [
        pd.concat(
            [
                where(windows, cell=mine, role="rltune").assign(**OURS),
                where(windows, cell=other, role="rltune").assign(**OTHER),
            ],
            ignore_index=True,
        )
        for mine, other in zip(pairs["cell"], pairs["cell_other"], strict=True)
    ]


def figure_key(cell: pd.Series) -> tuple[str, ...]:
    """Where the paper's Figure 10 would print a figure for a setting like this."""
    return cell["paper_trace"], PAPER_POLICY.get(cell["policy"], cell["policy"]), cell["metric"], "pro_over_naive"


def paper_ref(frame: pd.DataFrame, paper: PaperResults) -> str:
    """Figure 10, where some setting is that of the paper; "" else."""
    own = any(paper.find("fig10", *figure_key(row)) for _, row in frame.iterrows())
    return paper.ref("fig10") if own else ""


def _artefact(
    cells: pd.DataFrame, frame: pd.DataFrame, paper: PaperResults, confidence: float, bootstrap: int, source: str
) -> Artefact:
    key = ("Philly", "slurm-multifactor", "bsld", "pro_over_naive")
    printed = show(paper.value("fig10", *key), "percent")
    others = [c for c in varying(cells) if c not in (*PARTS, "seed", "metric")] if len(cells) else []
    measures = set(frame["measure"]) if len(frame) else set()
    study = next((s for s in STUDIES if measures == {s.metric}), None)
    unit, form, less = (study.unit, study.format, study.less) if study else ("", "number", "Better")
    over = f"Pro’s {less[0].lower() + less[1:]}"
    columns = {
        "trace_title": Column("Trace"),
        "base": Column("Base policy"),
        **({} if study else {"measure_title": Column("Metric", help="Times are in seconds.")}),
        **{c: Column(SETTING_TITLE[c].capitalize()) for c in others},
        "sequence_jobs": Column("Window", "jobs", "int"),
        "windows": Column("Windows", "", "int"),
        "variant": Column("Variant"),
        "features": Column("Features"),
        "placement": Column("Placement"),
        "base_mean": Column("Base", unit, form, "Mean"),
        "rltune_mean": Column("RLTune", unit, form, "Mean"),
        "improvement": Column(f"{less} than base", "", "percent", "", "low", "high"),
        "pro_over": Column(f"{over} than this", "", "percent", "", "pro_over_low", "pro_over_high"),
        "holm": Column("Holm p", "", "p", help="Of pro over this variant, after Holm’s correction over this table."),
        **(
            {"way": Column("Its own way", "", "text", help="What the agent chose to do otherwise than its cell says.")}
            if len(frame) and frame["way"].any()
            else {}
        ),
        **(
            {"paper_says": Column("Paper", "", "text"), "verdict": Column("Verdict", "", "text")}
            if len(frame) and (frame["paper_says"] != "").any()
            else {}
        ),
    }
    return Artefact(
        "ablation-numbers",
        "table",
        "Naive and pro RLTune in numbers",
        paper_ref=paper_ref(frame, paper),
        caption="Naive sees raw features and places by best-fit (“whole nodes”: no two jobs share a node, as in the "
        "paper); pro sees eight engineered features and places with the look-ahead model. Compared is what the agents "
        f"were trained for. Brackets: {100 * confidence:.0f} % interval, paired by window; negative is worse.",
        data=data_labels(cells),
        source=source,
        columns=columns if len(frame) else {},
        notes=tuple(
            n
            for n in (
                f"The paper gives {printed} ({paper.where('fig10', *key)}) for BSLD over Slurm’s multifactor priority on "
                "Philly, where naive takes whole nodes. In any other setting only the direction can be compared with it.",
                f"Verdicts: {RULE}" if len(frame) and (frame["verdict"] != "").any() else "",
                "An agent that chose its own way starts from a heuristic of its choice; where it kept that, its features "
                "play no part."
                if len(frame) and frame["way"].any()
                else "",
                seeds_note(frame),
                holm_note(frame, TESTED, "of pro over another variant", confidence, bootstrap) if len(frame) else "",
                constant_settings(cells, without=("seed",)) if len(cells) else "",
            )
            if n
        ),
    )
