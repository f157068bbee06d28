"""Table 8 and the numbers of Figure 17: RLTune against QSSF, with EASY backfilling and estimates from history."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rltune.config.comparisons import for_metric
from rltune.report.artefact import Artefact, Column
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.style import POLICY_TITLE
from rltune.report.tables.carried import SAME_AGENT
from rltune.report.tables.common import SETTING_TITLE, constant_settings, data_labels, lengths, varying, where
from rltune.report.tables.comparison_words import seeds_note
from rltune.report.tables.holm import holm_note, with_holm
from rltune.report.tables.rivals import METRICS, NAN, TESTED, judged, printed, rival_columns, rival_row
from rltune.report.verdict import RULE

AGAINST = {
    "qssf": "QSSF",
    "qssf_best_fit": "QSSF, best-fit",
    "fifo_easy": "FIFO + EASY",
    "saf_lognormal": "SAF + EASY, lognormal-1",
}
"""Opponents, as rltune.evaluation.studies.learners names them."""
WHO = ("trace_title", "trace", "data", "policy", *SETTING_TITLE, "cell")
ORDER = "QSSF orders by the smallest GPU time predicted from earlier jobs alone; RLTune is told the same predictions."


def table8(
    cells: pd.DataFrame,
    windows: pd.DataFrame,
    paper: PaperResults,
    *,
    bootstrap: int,
    confidence: float,
    seed: int,
    source: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """One row a trace × window length × opponent × metric. ``windows``: of rltune.evaluation.studies.learners.qssf_windows.

    Of each metric the agents trained for it are shown; where a run has none, those trained for wait. Agents that differ
    by their seed are one row.
    """
    used = cells[cells["cell"].isin(windows["cell"])]
    rows: list[dict[str, Any]] = []
    for _, group in used.groupby(["trace_title", "estimate"], sort=False):
        for n in lengths(windows[windows["cell"].isin(group["cell"])]):
            for theirs, title in AGAINST.items():
                for metric in METRICS:
                    names = [cell.cell for cell in for_metric(list(group.itertuples()), metric)]
                    for _, alike in group[group["cell"].isin(names)].groupby(SAME_AGENT, sort=False):
                        cell = alike.iloc[0]
                        each = [where(windows, cell=name) for name in alike["cell"]]
                        if not (each[0]["who"] == theirs).any():
                            continue
                        own = pd.concat(each)
                        rows.append(
                            {
                                **{name: cell[name] for name in WHO},
                                "base": POLICY_TITLE.get(cell["policy"], cell["policy"]),
                                "sequence_jobs": n,
                                "against": title,
                                "reserves": ", ".join(where(own, who="rltune")["backfill"].unique()),
                                **rival_row(
                                    each,
                                    metric,
                                    n,
                                    "rltune",
                                    theirs,
                                    tuple(
                                        _printed(paper, cell["paper_trace"], who, metric) for who in (theirs, "rltune")
                                    ),
                                    bootstrap=bootstrap,
                                    confidence=confidence,
                                    seed=seed,
                                ),
                            }
                        )
    frame = with_holm(pd.DataFrame(rows), TESTED)
    settings = [c for c in varying(used) if c not in ("metric", "seed")]
    columns = {
        "trace_title": Column("Trace"),
        **{c: Column(SETTING_TITLE[c].capitalize()) for c in settings if c in frame},
        "sequence_jobs": Column("Window", "jobs", "int"),
        "against": Column("Against"),
        **rival_columns(confidence, frame),
        "metric": Column("Agent trained for"),
        "base": Column("Agent’s base policy"),
        "reserves": Column("Agent’s backfilling", help="An agent may choose to reserve for more jobs than EASY does."),
    }
    return Artefact(
        "table8",
        "table",
        "RLTune against QSSF, with backfilling",
        paper_ref=paper.ref("table8"),
        caption=f"Means over disjoint test windows, each from an idle cluster. {ORDER} FIFO + EASY is told them too, "
        "for its reservations. SAF + EASY by lognormal-1 estimates, which know the true run time but for a blur, shows "
        "what better predictions could be worth to QSSF. Brackets: interval, paired by window.",
        data=data_labels(used),
        source=source,
        columns=columns,
        notes=tuple(
            n
            for n in (
                "All but “QSSF, best-fit” place jobs as RLTune’s cell does.",
                "Where a metric has no agent trained for it, the one trained for wait is shown.",
                "Utilisation is GPU time over GPUs × makespan; the paper divides by something larger that it does not "
                "state, so of its figures only the ratio can be compared.",
                seeds_note(frame),
                holm_note(frame, TESTED, "over these opponents", confidence, bootstrap),
                f"Verdicts: {RULE}",
                constant_settings(used, without=["metric", "seed"]),
            )
            if n
        ),
    ), frame


def _printed(paper: PaperResults, trace: str, who: str, metric: str) -> float:
    """The paper's Table 8, which is about Philly."""
    return printed(paper, "table8", metric, who) if trace == "Philly" else NAN


def fig17_numbers(
    cells: pd.DataFrame, comparisons: pd.DataFrame, paper: PaperResults, *, confidence: float, source: str = ""
) -> tuple[Artefact, pd.DataFrame]:
    """One row a cell: mean JCT of one long sequence under QSSF and RLTune.

    ``comparisons``: cell, and the fields of rltune.evaluation.studies.learners.LongComparison.
    """
    rows = []
    for _, one in comparisons.iterrows():
        cell = where(cells, cell=one["cell"]).iloc[0]
        entry = paper.find("fig17", cell["paper_trace"], "qssf", "jct")
        claimed = NAN if entry is None or entry.value is None else entry.value
        rows.append(
            {
                **{name: cell[name] for name in WHO},
                "base": POLICY_TITLE.get(cell["policy"], cell["policy"]),
                "paper_trace": cell["paper_trace"],
                "jobs": int(one["jobs"]),
                "sequence_jobs": int(one["jobs"]),
                "theirs_mean": one["theirs_mean"],
                "ours_mean": one["ours_mean"],
                # the paper prints the improvement alone: theirs is 1, ours what is left
                **judged("jct", one["improvement"], one["low"], one["high"], int(one["blocks"]), 1.0, 1 - claimed),
            }
        )
    frame = pd.DataFrame(rows).drop(columns=["paper_theirs", "paper_ours"])
    used = cells[cells["cell"].isin(frame["cell"])]
    columns = {
        "trace_title": Column("Trace"),
        **{c: Column(SETTING_TITLE[c].capitalize()) for c in varying(used) if c != "seed"},
        "jobs": Column("Jobs", "", "int"),
        "theirs_mean": Column("QSSF", "s", "seconds", "Mean JCT"),
        "ours_mean": Column("RLTune", "s", "seconds", "Mean JCT"),
        "improvement": Column("RLTune is better by", "", "percent", "Mean JCT", "low", "high"),
        "paper_improvement": Column("The paper", "", "percent"),
        "verdict": Column("Verdict"),
        "windows": Column("Blocks", "", "int", help="Stretches of consecutive jobs that are resampled."),
    }
    asked = show(paper.value("fig17", "jobs"), "int")
    return Artefact(
        "fig17-numbers",
        "table",
        "JCT of one long sequence in numbers",
        paper_ref=paper.ref("fig17"),
        caption=f"Mean job completion time of consecutive jobs of the test part, from an idle cluster. {ORDER} "
        f"Brackets: {100 * confidence:.0f} % interval, from blocks of consecutive jobs.",
        data=data_labels(used),
        source=source,
        columns=columns,
        notes=tuple(
            n
            for n in (
                f"The paper runs {asked} jobs of Philly; a test part that has fewer is run whole.",
                "One sequence is one course of events: where a backlog outlasts the blocks that are resampled together, "
                "the interval is too narrow, and on a cluster that is offered more work than it can do the backlog never "
                "ends.",
                f"Verdicts: {RULE}",
                constant_settings(used),
            )
            if n
        ),
    ), frame
