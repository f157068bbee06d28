"""Table 9: RLTune beside the schedulers it is compared with, on ten batches of jobs."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.paper import PaperResults
from rltune.report.style import POLICY_TITLE, scheduler_title
from rltune.report.tables.common import data_labels, where
from rltune.report.tables.holm import holm_note, with_holm
from rltune.report.tables.rivals import METRICS, NAN, TESTED, printed, rival_columns, rival_row
from rltune.report.verdict import RULE

TITLE = {
    "fifo": "FIFO",
    "schedinspector": "SchedInspector",
    "rlscheduler": "RLScheduler",
    "linear": "Linear score",
    "rltune": "RLTune",
}
"""Schedulers in the order of the paper's table, the linear score added."""
IN_PAPER = ("fifo", "schedinspector", "rlscheduler", "rltune")
ABSENT = "not in this configuration"
MEANS = {"wait_s": "wait", "bsld": "bsld", "jct_s": "jct", "utilisation": "utilisation"}


def named(cells: pd.DataFrame, batches: pd.DataFrame) -> pd.DataFrame:
    """The windows of rltune.evaluation.studies.learners.batches with what they are called: ``trace_title``, ``paper_trace``,
    ``data``, and ``title``, a scheduler's name, with its preset where a trace has several of its kind."""
    about = cells.drop_duplicates(["trace", "cluster"])[["trace", "cluster", "trace_title", "paper_trace", "data"]]
    frame = batches.merge(about, on=["trace", "cluster"], how="left")
    kinds = frame.groupby(["trace_title", "who"])["preset"].transform("nunique")

    def title(row: pd.Series, several: int) -> str:
        if row["who"] == "strong":
            return f"Best heuristic: {scheduler_title(row['policy'], row['backfill'])}"
        return TITLE[row["who"]] + (f", {row['preset']}" if several > 1 else "")

    titles = [title(row, several) for (_, row), several in zip(frame.iterrows(), kinds)]
    return frame.assign(title=titles).rename(columns={"who": "kind"})


def table9(
    cells: pd.DataFrame, batches: pd.DataFrame, paper: PaperResults, source: str = ""
) -> tuple[Artefact, pd.DataFrame]:
    """One row a trace × scheduler with its means, the paper's rows below; a scheduler that the run lacks is marked.

    ``batches``: of rltune.evaluation.studies.learners.batches, of all traces. ``row``: ours, paper or missing.
    """
    frame = named(cells, batches)
    rows: list[dict[str, Any]] = []
    for trace, group in frame.groupby("trace_title", sort=False):
        same = {"trace_title": trace, "data": group["data"].iloc[0]}
        for kind in TITLE:
            mine = where(group, kind=kind)
            rows += [{**same, **_ours(one)} for _, one in mine.groupby("title", sort=False)]
            if mine.empty:
                rows.append({**same, "row": "missing", "title": TITLE[kind], "remark": ABSENT})
        rows += [{**same, **_ours(one)} for _, one in where(group, kind="strong").groupby("title", sort=False)]
        rows += [{**same, **row} for row in _paper_rows(paper, group["paper_trace"].iloc[0])]
    table = pd.DataFrame(rows)
    sizes = frame.groupby("trace_title", sort=False).agg(n=("window", "nunique"), jobs=("sequence_jobs", "max"))
    counted = ", ".join(f"{trace} {int(r['n'])} of {int(r['jobs'])} jobs" for trace, r in sizes.iterrows())
    mean = "Mean"
    return Artefact(
        "table9",
        "table",
        "Schedulers side by side",
        paper_ref=paper.ref("table9"),
        caption=f"Means over disjoint, evenly spread batches of the test part, each from an idle cluster: {counted}. "
        "All schedulers of a trace are given the same estimates and locality; an agent that chose its own way in "
        "training goes by that instead. The best heuristic is that which waits least on these batches, in hindsight, "
        "of all orders and backfill rules of the run.",
        data=data_labels(frame),
        source=source,
        columns={
            "trace_title": Column("Trace"),
            "title": Column("Scheduler"),
            "wait_s": Column("Wait", "s", "seconds", mean),
            "bsld": Column("BSLD", "", "number", mean),
            "jct_s": Column("JCT", "s", "seconds", mean),
            "utilisation": Column("Utilisation", "", "percent", mean, help="Of GPUs × makespan."),
            "utilisation_span": Column("until the last submission", "", "percent", mean),
            "time_s": Column("Time", "s", "number", help="To schedule all batches."),
            "base": Column("Base policy"),
            "backfill": Column("Backfilling", help="That it ran with."),
            "placement": Column("Placement", help="That it ran with."),
            "preset": Column("Preset"),
            "remark": Column("Remark"),
        },
        notes=(
            "Of RLTune, an own way is whose order it starts from, for whom nodes are reserved, and whether it goes by "
            "its beliefs about run times in place of the estimates; with some presets also placement and locality.",
            "Time is the clock’s for all batches, run side by side on one core: simulator, observations, network and "
            "placement model, the engine compiled beforehand. It is no measurement on the paper’s hardware.",
            "The paper’s utilisation has a denominator that it does not state; it cannot be made again, and its "
            "figures stand here as printed. It prints one time a scheduler, not one a trace.",
            "The paper’s rows are not all from the same jobs: see its contradictions below.",
        ),
    ), table


def _ours(windows: pd.DataFrame) -> dict[str, Any]:
    first = windows.iloc[0]
    return {
        "row": "ours",
        "title": first["title"],
        **{c: windows[c].mean() for c in (*MEANS, "utilisation_span")},
        "time_s": windows["seconds"].sum(),
        "windows": len(windows),
        "sequence_jobs": int(first["sequence_jobs"]),
        "base": POLICY_TITLE.get(first["base"], first["base"]),
        "backfill": first["backfill"],
        "placement": first["placement"],
        "preset": first["preset"],
        "cell": first["cell"],
        "remark": "",
    }


def _paper_rows(paper: PaperResults, trace: str) -> list[dict[str, Any]]:
    if pd.isna(printed(paper, "table9", "wait", trace, "fifo")):
        return []
    rows = []
    for kind in IN_PAPER:
        time = paper.find("table9", kind, "time_s")
        rows.append(
            {
                "row": "paper",
                "title": f"{TITLE[kind]}, the paper",
                **{column: printed(paper, "table9", metric, trace, kind) for column, metric in MEANS.items()},
                "time_s": NAN if time is None else time.value,
                "remark": paper.ref("table9"),
            }
        )
    return rows


def table9_numbers(
    cells: pd.DataFrame,
    batches: pd.DataFrame,
    paper: PaperResults,
    *,
    bootstrap: int,
    confidence: float,
    seed: int,
    source: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """One row a trace × opponent × metric: how much better RLTune is, of several presets the first.

    Empty where no trace has an agent of RLTune's.
    """
    frame = named(cells, batches)
    rows: list[dict[str, Any]] = []
    for trace, group in frame.groupby("trace_title", sort=False):
        agents = where(group, kind="rltune")["title"].unique()
        if not len(agents):
            continue
        ours, n, paper_trace = agents[0], int(group["sequence_jobs"].iloc[0]), group["paper_trace"].iloc[0]
        windows = group.assign(who=group["title"])
        for theirs, rival in group.groupby("title", sort=False):
            kind = rival["kind"].iloc[0]
            for metric in METRICS if theirs != ours else ():
                rows.append(
                    {
                        "trace_title": trace,
                        "data": group["data"].iloc[0],
                        "against": theirs,
                        "agent": ours,
                        **rival_row(
                            windows,
                            metric,
                            n,
                            ours,
                            theirs,
                            tuple(
                                printed(paper, "table9", metric, paper_trace, who) if kind != "rltune" else NAN
                                for who in (kind, "rltune")
                            ),
                            bootstrap=bootstrap,
                            confidence=confidence,
                            seed=seed,
                        ),
                    }
                )
    table = with_holm(pd.DataFrame(rows), TESTED)
    return Artefact(
        "table9-numbers",
        "table",
        "RLTune against each of them",
        paper_ref=paper.ref("table9"),
        caption="How much better RLTune is than each scheduler on the same batches. Brackets: interval, paired by "
        "batch.",
        data=data_labels(frame),
        source=source,
        columns={
            "trace_title": Column("Trace"),
            "against": Column("Against"),
            **rival_columns(confidence, table, "Batches"),
        }
        if len(table)
        else {},
        notes=tuple(
            n
            for n in (
                "Ten batches are few: only large differences can be told from chance.",
                "One training seed an agent: the intervals are over batches alone.",
                holm_note(table, TESTED, "over these opponents", confidence, bootstrap),
                f"Verdicts: {RULE}",
            )
            if n
        ),
    ), table
