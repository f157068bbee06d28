"""How long a decision takes, by the length of the queue (paper, Section 5.7)."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import NAN, where
from rltune.report.format import show
from rltune.report.paper import PaperResults

PARTS = {"inference": "Observation and network", "placement": "Placement model", "decision": "Whole decision"}


def latency(
    cells: pd.DataFrame, cell: str, decisions: pd.DataFrame, paper: PaperResults
) -> tuple[Artefact, pd.DataFrame]:
    """One row per queue length: median and 95th percentile of each part of a decision in ms, and the paper's figure.

    ``decisions``: queue, and inference_s, placement_s and decision_s of each decision (rltune.evaluation.studies.decision_time), of
    the agent of ``cell``. ``growth``: the median over that of the row of half the queue.
    """
    rows: list[dict[str, Any]] = []
    for queue, group in decisions.groupby("queue"):
        entry = paper.find("costs", "decision_s", int(str(queue)))
        row: dict[str, Any] = {"queue": int(str(queue)), "decisions": len(group)}
        for part in PARTS:
            for at, q in (("median", 0.5), ("p95", 0.95)):
                row[f"{part}_{at}_ms"] = 1000 * group[f"{part}_s"].quantile(q)
        rows.append({**row, "paper_s": NAN if entry is None or entry.value is None else entry.value})
    frame = pd.DataFrame(rows)
    half = {row["queue"]: row for row in rows}
    for ours, column in (("growth", "decision_median_ms"), ("paper_growth", "paper_s")):
        frame[ours] = [
            row[column] / half[row["queue"] // 2][column] if row["queue"] // 2 in half else NAN for row in rows
        ]
    used = where(cells, cell=cell)
    return describe(
        "latency",
        frame,
        paper,
        rows=used,
        cell=used.iloc[0],
        printed={k: show(paper.value("costs", k), "printed") for k in ("inference_ms", "solver_ms")},
        parts=PARTS,
    ), frame
