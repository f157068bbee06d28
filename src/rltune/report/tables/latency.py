"""How long a decision takes, by the length of the queue (paper, Section 5.7)."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.tables.common import data_labels, where
from rltune.report.tables.rivals import NAN

PARTS = {"inference": "Observation and network", "placement": "Placement model", "decision": "Whole decision"}


def latency(
    cells: pd.DataFrame, cell: str, decisions: pd.DataFrame, paper: PaperResults, source: str = ""
) -> tuple[Artefact, pd.DataFrame]:
    """One row a queue length: median and 95th percentile of each part of a decision in ms, beside the paper's figure.

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
    told = {k: show(paper.value("costs", k), "printed") for k in ("inference_ms", "solver_ms")}
    one = used.iloc[0]
    return Artefact(
        "latency",
        "table",
        "Time of a decision by the length of the queue",
        paper_ref=paper.ref("costs"),
        caption=f"All jobs of the queue submitted at one instant to the idle cluster, {one['cluster_title']}, jobs of "
        f"{one['trace_title']}; the decisions until one does not fit. One core; engine compiled, memory of placements "
        "empty.",
        data=data_labels(used),
        source=source,
        columns={
            "queue": Column("Queue", "jobs", "int"),
            "decisions": Column("Decisions", "", "int"),
            **{
                f"{part}_{at}_ms": Column(title, "ms", "number", group)
                for part, group in PARTS.items()
                for at, title in (("median", "Median"), ("p95", "95 %"))
            },
            "growth": Column("Ours", "×", "number", "Growth as the queue doubles"),
            "paper_growth": Column("The paper", "×", "number", "Growth as the queue doubles"),
            "paper_s": Column("The paper, whole decision", "s", "number"),
        },
        notes=(
            f"The paper reports {told['inference_ms']} ms for observation and network and {told['solver_ms']} ms for "
            "the solver, and seconds for a whole decision of the same queues; it does not say what the rest is.",
            "The network ranks the first 256 jobs of a queue, those behind keep the base policy’s order; that is why "
            "the time stops growing there.",
            "The placement model is not asked where the job has one place only, and mostly answers without its solver; "
            "such decisions count as they are.",
        ),
    ), frame
