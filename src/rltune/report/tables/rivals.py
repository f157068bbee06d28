"""What tables of RLTune against one other scheduler after another share: a row a metric and opponent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from rltune.evaluation.compare import compare
from rltune.report.artefact import Column
from rltune.report.paper import PaperResults
from rltune.report.verdict import verdict

NAN = float("nan")
TESTED = {"p": "holm"}
METRICS = {"wait": "Wait, s", "bsld": "Bounded slowdown", "jct": "JCT, s", "utilisation": "Utilisation, share"}
"""Metrics in the paper's order, with their units."""
PRINTED = {
    "wait": ("wait_s", 1.0),
    "bsld": ("bsld", 1.0),
    "jct": ("jct_s", 1.0),
    "utilisation": ("utilisation_pct", 0.01),
}
"""Metric → key of the paper's figure, and what it is multiplied by."""


def printed(paper: PaperResults, artefact: str, metric: str, *who: str) -> float:
    """The paper's figure of a metric, in our unit; NaN where it has none. ``who``: the key before the metric's."""
    key, factor = PRINTED[metric]
    entry = paper.find(artefact, *who, key)
    return NAN if entry is None or entry.value is None else factor * entry.value


def improvement(metric: str, ours: float, theirs: float) -> float:
    """How much better ours is, as a fraction of theirs; of utilisation more is better."""
    if pd.isna(ours) or pd.isna(theirs) or theirs == 0:
        return NAN
    return ours / theirs - 1 if metric == "utilisation" else 1 - ours / theirs


def rival_row(
    windows: pd.DataFrame | Sequence[pd.DataFrame],
    metric: str,
    n: int,
    ours: str,
    theirs: str,
    paper: tuple[float, float],
    *,
    bootstrap: int,
    confidence: float,
    seed: int,
) -> dict[str, Any]:
    """One metric of RLTune against one opponent on the same windows of n jobs.

    ``windows``: a table, or one a training seed; ``ours`` and ``theirs`` are values of the column ``who``; ``paper``:
    its figures of theirs and ours, NaN for none.
    """
    found = compare(windows, metric, n, {"who": ours}, {"who": theirs}, bootstrap, confidence, seed)
    return {
        "measure": METRICS[metric],
        "p": found.p,
        "seeds": found.seeds,
        "theirs_mean": found.theirs_mean,
        "ours_mean": found.ours_mean,
        **judged(metric, found.improvement, found.low, found.high, found.windows, *paper),
    }


def judged(
    metric: str, value: float, low: float, high: float, windows: int, paper_theirs: float, paper_ours: float
) -> dict[str, Any]:
    """An improvement with its interval beside the paper's two figures and what follows from them, and the verdict."""
    claimed = improvement(metric, paper_ours, paper_theirs)
    return {
        # + 0.0: nobody is better by minus nothing
        "improvement": value + 0.0,
        "low": low + 0.0,
        "high": high + 0.0,
        "windows": windows,
        "paper_theirs": paper_theirs,
        "paper_ours": NAN if pd.isna(paper_theirs) else paper_ours,
        "paper_improvement": claimed,
        "verdict": verdict(None if pd.isna(claimed) else claimed, low, high, windows),
    }


def rival_columns(confidence: float, frame: pd.DataFrame, measured: str = "Windows") -> dict[str, Column]:
    """How the columns of `rival_row` are shown; the paper's only where it has any figure."""
    paper = "The paper"
    columns = {
        "measure": Column("Metric"),
        "theirs_mean": Column("Theirs", "", "number"),
        "ours_mean": Column("RLTune", "", "number"),
        "improvement": Column(
            "RLTune is better by",
            "",
            "percent",
            "",
            "low",
            "high",
            f"Fraction of theirs, {100 * confidence:.0f} % interval; negative: worse.",
        ),
        "holm": Column("Holm p", "", "p", help="p-value after Holm’s correction over this table."),
        "paper_theirs": Column("Theirs", "", "number", paper),
        "paper_ours": Column("RLTune", "", "number", paper),
        "paper_improvement": Column("Better by", "", "percent", paper, help="What its two figures make."),
        "verdict": Column("Verdict", "", "text", paper),
        "windows": Column(measured, "", "int"),
        **(
            {"seeds": Column("Seeds", "", "int", help="Trainings of the same setting.")}
            if len(frame) and frame["seeds"].max() > 1
            else {}
        ),
    }
    beside = len(frame) and frame["paper_improvement"].notna().any()
    return {name: column for name, column in columns.items() if beside or column.group != paper}
