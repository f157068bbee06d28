"""How a table of comparisons is shown: its columns, its caption, what one must know before believing it."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.studies import UTILISATION, Study
from rltune.report.tables.common import SETTING_TITLE, constant_settings, data_labels, varying
from rltune.report.tables.holm import holm_note
from rltune.report.verdict import RULE

BASE, STRONG = "Against its base policy", "Against the strongest heuristic"
CHOSEN, CHANCE = "Against the one picked on validation", "Against a random order"
OVER_SPAN = "The same over the submission span"
TESTED = {
    "p": "holm",
    "over_strong_p": "holm_strong",
    "over_random_p": "holm_random",
    "over_picked_p": "holm_picked",
    "over_span_p": "holm_span",
}
"""Columns of p-values, one family a table → columns of what Holm's correction makes of them."""


def artefact_of(
    study: Study,
    cells: pd.DataFrame,
    frame: pd.DataFrame,
    paper: PaperResults,
    confidence: float,
    bootstrap: int,
    left: str,
    source: str,
) -> Artefact:
    """The table of a study; ``cells``: those in it; ``left``: what was left out, a sentence or ""."""
    level = f"{100 * confidence:.0f} %"
    return Artefact(
        study.numbers,
        "table",
        f"{study.title}: RLTune, its base policy and the strongest heuristic",
        paper_ref=paper.ref(study.paper) if study.paper else "",
        caption=f"{study.title} over disjoint windows of test jobs, each from an idle cluster. Brackets: {level} "
        "interval of the relative improvement (moving-block bootstrap over time, paired by window); negative is worse.",
        data=data_labels(cells),
        source=source,
        columns={c: v for c, v in _columns(study, cells, frame).items() if c in frame} if len(frame) else {},
        notes=tuple(n for n in _notes(study, cells, frame, paper, confidence, bootstrap, left) if n),
    )


def _columns(study: Study, cells: pd.DataFrame, frame: pd.DataFrame) -> dict[str, Column]:
    unit, form, less = study.unit, study.format, study.less
    seeds = len(frame) and frame["seeds"].max() > 1
    survives = "p-value after Holm’s correction over this table."
    return {
        "trace_title": Column("Trace"),
        "base": Column("Base policy"),
        **{c: Column(SETTING_TITLE[c].capitalize()) for c in varying(cells) if c != "seed"},
        "sequence_jobs": Column("Window", "jobs", "int"),
        "base_mean": Column("Base", unit, form, BASE),
        "rltune_mean": Column("RLTune", unit, form, BASE),
        "improvement": Column(less, "", "percent", BASE, "low", "high"),
        "holm": Column("Holm p", "", "p", BASE, help=survives),
        "paper_says": Column("Paper", "", "text", BASE),
        "verdict": Column("Verdict", "", "text", BASE),
        **(
            {
                "seeds": Column("Seeds", "", "int", BASE, help="Trainings of the same setting."),
                "seed_low": Column("Worst seed", "", "percent", BASE),
                "seed_high": Column("Best seed", "", "percent", BASE),
            }
            if seeds
            else {}
        ),
        "span_mean": Column("Base", unit, form, OVER_SPAN),
        "span_rltune": Column("RLTune", unit, form, OVER_SPAN),
        "over_span": Column(less, "", "percent", OVER_SPAN, "over_span_low", "over_span_high"),
        "learned": Column(
            "Learned",
            "",
            "text",
            CHANCE,
            help="On validation windows the agent beats both its base policy and a random order; one "
            "that starts from a heuristic, that too.",
        ),
        "random_mean": Column("Random", unit, form, CHANCE),
        "over_random": Column(less, "", "percent", CHANCE, "over_random_low", "over_random_high"),
        "strong": Column("Heuristic", "", "text", STRONG),
        "strong_mean": Column("Mean", unit, form, STRONG),
        "over_strong": Column(less, "", "percent", STRONG, "over_strong_low", "over_strong_high"),
        "holm_strong": Column("Holm p", "", "p", STRONG, help=survives),
        "shows_strong": Column("RLTune is", "", "text", STRONG),
        "picked": Column("Heuristic", "", "text", CHOSEN),
        "picked_mean": Column("Mean", unit, form, CHOSEN),
        "over_picked": Column(less, "", "percent", CHOSEN, "over_picked_low", "over_picked_high"),
        "best_fit_mean": Column("Base with best-fit", unit, form, help="The base policy with best-fit placement."),
        **(
            {
                "way": Column(
                    "Its own way",
                    "",
                    "text",
                    help="What the agent chose, on training rows, to do otherwise "
                    "than its cell says: whose order it starts from, reservations, placement, locality.",
                )
            }
            if len(frame) and frame["way"].any()
            else {}
        ),
        "windows": Column("Windows", "", "int", help="Disjoint windows of the test part."),
        **(
            {}
            if study == UTILISATION
            else {
                "base_median": Column("Base, median", unit, form, help="Median over windows."),
                "rltune_median": Column("RLTune, median", unit, form, help="Median over windows."),
                "worst_tenth_share": Column(
                    "Worst tenth",
                    "of the base policy’s total",
                    "percent",
                    help="Share of the base policy’s total that the worst tenth of windows has.",
                ),
            }
        ),
    }


def _notes(
    study: Study,
    cells: pd.DataFrame,
    frame: pd.DataFrame,
    paper: PaperResults,
    confidence: float,
    bootstrap: int,
    left: str,
) -> list[str]:
    rivals = int(frame["rivals"].max()) if "rivals" in frame and frame["rivals"].notna().any() else 0
    own = len(frame) and frame["way"].any()
    return [
        "“Against its base policy” reproduces the paper’s comparison. A base policy that blocks is easily beaten, "
        "so this alone does not show that scheduling got better; the strongest heuristic does.",
        _utilisation(paper) if study == UTILISATION else "",
        f"The strongest heuristic is the best of {rivals} on the same test windows, chosen in hindsight: harder to "
        "beat than anything an operator could have picked beforehand. The one picked on validation windows is such a "
        "pick."
        if rivals
        else "",
        "A random order, drawn anew at every decision (mean of several runs), is what not staying blocked is worth "
        "without any learning.",
        seeds_note(frame),
        holm_note(
            frame,
            TESTED,
            "over base policy, random order and heuristics" if rivals else "over the base policy",
            confidence,
            bootstrap,
        ),
        "Base policy and RLTune share placement, locality, backfilling and run-time estimates"
        + (", but for what the agent chose itself, which the last columns say." if own else "."),
        f"Verdicts: {RULE}",
        "RLTune is “open” where the interval covers zero: no difference is shown.",
        left,
        constant_settings(cells, without=("seed",)),
    ]


def _utilisation(paper: PaperResults) -> str:
    levels = ", ".join(
        f"{trace} {show(paper.value('table9', trace, 'fifo', 'utilisation_pct'), 'printed')} %"
        for trace in ("Philly", "Helios", "Alibaba")
    )
    return (
        "Utilisation is the GPU time in use over that of all GPUs from the first submission to the last completion, as "
        "the paper has it: one long job stretches that time and presses the level down, of any scheduler alike (the "
        f"paper’s levels under FIFO: {levels}, {paper.ref('table9')}). Over the submission span, the first to the last "
        "submission of a window, beside it, the level says how full the cluster was. Improvements are relative."
    )


def seeds_note(frame: pd.DataFrame) -> str:
    """What the intervals know of training seeds."""
    most = int(frame["seeds"].max()) if len(frame) else 1
    if most == 1:
        return (
            "One training seed a row: the intervals are over windows alone; another training seed would move the "
            "figures as well."
        )
    single = int((frame["seeds"] == 1).sum())
    return (
        "Where a setting was trained with several seeds, means are over all of them and the interval resamples "
        "seeds as well as windows."
        + (f" {single} of {len(frame)} rows have one seed: windows alone." if single else "")
    )
