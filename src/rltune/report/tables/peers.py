"""RLTune against other schedulers: QSSF (Table 8, Figure 17) and other learners (Table 9)."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pandas as pd

from rltune.config.comparisons import for_metric
from rltune.evaluation.compare import COLUMN, SPAN, Comparison, compare
from rltune.evaluation.intervals import Intervals
from rltune.report import common
from rltune.report.artefact import Table
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.paper import PaperResults
from rltune.report.style import policy_title
from rltune.report.transferred import SAME_AGENT
from rltune.report.verdict import ABSENT, verdict

TESTED = {"p": "holm"}
METRIC_TITLE = {"wait": "Wait, s", "bsld": "Bounded slowdown", "jct": "JCT, s", "utilisation": "Utilisation, share"}
"""Metrics in the paper's order, with their units."""
PRINTED = {"wait": "wait_s", "bsld": "bsld", "jct": "jct_s", "utilisation": "utilisation_pct"}
"""Metric → key of the paper's figure."""
AGAINST = {
    "qssf": "QSSF",
    "qssf_best_fit": "QSSF, best-fit",
    "fifo_easy": "FIFO + EASY",
    "saf_lognormal": "SAF + EASY, lognormal-1",
}
"""Opponents of Table 8, as its windows name them."""
LEARNERS = {
    "fifo": "FIFO",
    "schedinspector": "SchedInspector",
    "rlscheduler": "RLScheduler",
    "linear": "Linear score",
    "rltune": "RLTune",
}
"""Schedulers in the order of the paper's Table 9, the linear score added."""
UNLEARNED = ", learned nothing"
"""Behind the name of a learner whose training kept nothing."""
IN_PAPER = ("fifo", "schedinspector", "rlscheduler", "rltune")


def printed(paper: PaperResults, artefact: str, metric: str, *key: str) -> float:
    """The paper's figure of a metric, in our unit; NaN where it has none. ``key``: the part before the metric's."""
    return paper.number(artefact, *key, PRINTED[metric]) * (0.01 if metric == "utilisation" else 1.0)


def opponent_row(found: Comparison, paper: Sequence[float]) -> dict[str, Any]:
    """One metric of RLTune against one opponent; ``paper``: its figures of theirs and ours, NaN for none."""
    same = {k: getattr(found, k) for k in ("p", "seeds", "theirs_mean", "ours_mean")}
    return {"measure": METRIC_TITLE[found.metric], **same, **evaluated(found.metric, found, found.windows, *paper)}


def evaluated(metric: str, found: Any, windows: int, paper_theirs: float, paper_ours: float) -> dict[str, Any]:
    """The improvement in ``found`` with its interval, the paper's two figures, the improvement they imply, and the
    verdict."""
    ratio = paper_ours / paper_theirs
    claimed = ratio - 1 if metric == "utilisation" else 1 - ratio
    return {
        **{k: getattr(found, k) + 0.0 for k in ("improvement", "low", "high")},  # + 0.0: no minus zero
        "windows": windows,
        "paper_theirs": paper_theirs,
        "paper_ours": common.NAN if pd.isna(paper_theirs) else paper_ours,
        "paper_improvement": claimed,
        "verdict": verdict(claimed, found.low, found.high, windows),
    }


def _holm(frame: pd.DataFrame, by: Intervals) -> str:
    return common.holm_note(frame, TESTED, "over these opponents", by.bootstrap)


def table8(cells: pd.DataFrame, windows: pd.DataFrame, paper: PaperResults, by: Intervals) -> Table:
    """One row per trace × window length × opponent × metric. ``windows``: who, cell, backfill, and those of a window.

    Of each metric the agents trained for it are shown; where a run has none, those trained for wait. Agents that differ
    by their seed are one row.
    """
    used = cells[cells["cell"].isin(windows["cell"])]
    rows: list[dict[str, Any]] = []
    for _, group in used.groupby(["trace_title", "estimate"], sort=False):
        agents = {m: [c.cell for c in for_metric(list(group.itertuples()), m)] for m in METRIC_TITLE}
        lengths = common.lengths(windows[windows["cell"].isin(group["cell"])])
        for n, theirs, (metric, names) in product(lengths, AGAINST, agents.items()):
            for _, alike in group[group["cell"].isin(names)].groupby(SAME_AGENT, sort=False):
                each = [where(windows, cell=name) for name in alike["cell"]]
                if not (each[0]["who"] == theirs).any():
                    continue  # the opponent did not run
                row = {**common.about(alike), "sequence_jobs": n, "against": AGAINST[theirs]}
                row["reserves"] = ", ".join(where(pd.concat(each), who="rltune")["backfill"].unique())
                in_paper = alike["paper_trace"].iloc[0] == "Philly"
                figures = [printed(paper, "table8", metric, s) if in_paper else common.NAN for s in (theirs, "rltune")]
                found = compare(each, metric, n, {"who": "rltune"}, {"who": theirs}, by)
                rows.append(row | opponent_row(found, figures))
    frame = common.with_holm(pd.DataFrame(rows), TESTED)
    return describe("table8", frame, paper, cells=used, without=["metric", "seed"], holm=_holm(frame, by)), frame


def fig17_numbers(cells: pd.DataFrame, comparisons: pd.DataFrame, paper: PaperResults) -> Table:
    """One row per cell: mean JCT of one long sequence under QSSF and RLTune.

    ``comparisons``: cell, and what rltune.evaluation.studies.learners.compare_long gives.
    """
    rows = []
    for _, one in comparisons.iterrows():
        cell = where(cells, cell=one["cell"]).iloc[0]
        claimed = paper.number("fig17", cell["paper_trace"], "qssf", "jct")
        rows.append(
            {
                **common.about(cell),
                "jobs": int(one["jobs"]),
                "sequence_jobs": int(one["jobs"]),
                "theirs_mean": one["theirs_mean"],
                "ours_mean": one["ours_mean"],
                # the paper prints the improvement alone: theirs is 1, ours what is left
                **evaluated("jct", one, int(one["blocks"]), 1.0, 1 - claimed),
            }
        )
    frame = pd.DataFrame(rows).drop(columns=["paper_theirs", "paper_ours"])
    used = cells[cells["cell"].isin(frame["cell"])]
    return describe("fig17-numbers", frame, paper, cells=used, clusters=set(used["cluster"])), frame


def named(cells: pd.DataFrame, batches: pd.DataFrame) -> pd.DataFrame:
    """The batches with ``trace_title``, ``paper_trace``, ``data``, and ``title``, a scheduler's name, with its preset
    where a trace has several of its kind, and UNLEARNED."""
    traces = cells.drop_duplicates(["trace", "cluster"])[["trace", "cluster", "trace_title", "paper_trace", "data"]]
    frame = batches.merge(traces, on=["trace", "cluster"], how="left")
    kinds = frame.groupby(["trace_title", "who"])["preset"].transform("nunique")
    learner = frame["who"].map(LEARNERS) + (", " + frame["preset"].astype(str)).where(kinds > 1, "")
    learner += pd.Series(UNLEARNED, frame.index).where(frame["unlearned"], "")
    heuristic = "Best heuristic: " + common.scheduler_titles(frame)
    return frame.assign(title=learner.mask(frame["who"] == "strong", heuristic)).rename(columns={"who": "kind"})


def table9(cells: pd.DataFrame, batches: pd.DataFrame, paper: PaperResults) -> Table:
    """One row per trace × scheduler with its means, then the paper's rows; a scheduler that the run lacks is marked.

    ``batches``: who, trace, cluster, preset, policy, backfill, placement, base, cell, and the columns of a window.
    ``row``: ours, paper or missing.
    """
    frame = named(cells, batches)
    rows: list[dict[str, Any]] = []
    for trace, group in frame.groupby("trace_title", sort=False):
        of_trace: list[dict[str, Any]] = []
        for kind in (*LEARNERS, "strong"):
            of_trace += [_means(one) for _, one in where(group, kind=kind).groupby("title", sort=False)]
            if kind not in set(group["kind"]) and kind in LEARNERS:
                of_trace.append({"row": "missing", "title": LEARNERS[kind], "remark": ABSENT})
        of_trace += _paper_rows(paper, group["paper_trace"].iloc[0])
        rows += [{"trace_title": trace, "data": group["data"].iloc[0], **row} for row in of_trace]
    sizes = frame.groupby("trace_title", sort=False).agg(windows=("window", "nunique"), jobs=("sequence_jobs", "max"))
    table = pd.DataFrame(rows)
    return describe("table9", table, paper, rows=frame, sizes=sizes.to_dict("index")), table


def _means(windows: pd.DataFrame) -> dict[str, Any]:
    first = windows.iloc[0]
    return {
        "row": "ours",
        "title": first["title"],
        **{COLUMN[m]: windows[COLUMN[m]].mean() for m in (*METRIC_TITLE, SPAN)},
        "time_s": windows["seconds"].sum(),
        "windows": len(windows),
        "sequence_jobs": int(first["sequence_jobs"]),
        "base": policy_title(first["base"]),
        **{k: first[k] for k in ("backfill", "placement", "preset", "cell")},
        "remark": "",
    }


def _paper_rows(paper: PaperResults, trace: str) -> list[dict[str, Any]]:
    if pd.isna(printed(paper, "table9", "wait", trace, "fifo")):
        return []
    return [
        {
            "row": "paper",
            "title": f"{LEARNERS[kind]}, the paper",
            **{COLUMN[m]: printed(paper, "table9", m, trace, kind) for m in METRIC_TITLE},
            "time_s": paper.number("table9", kind, "time_s"),
            "remark": paper.ref("table9"),
        }
        for kind in IN_PAPER
    ]


def table9_numbers(cells: pd.DataFrame, batches: pd.DataFrame, paper: PaperResults, by: Intervals) -> Table:
    """One row per trace × opponent × metric: how much better RLTune is, of several presets the first.

    Empty where no trace has an RLTune agent.
    """
    frame = named(cells, batches)
    rows: list[dict[str, Any]] = []
    for trace, group in frame.groupby("trace_title", sort=False):
        agents = where(group, kind="rltune")["title"].unique()
        if not len(agents):
            continue
        ours, n, paper_trace = agents[0], int(group["sequence_jobs"].iloc[0]), group["paper_trace"].iloc[0]
        cell = where(cells, cell=where(group, title=ours)["cell"].iloc[0]).iloc[0]
        same = {**common.about(cell), "sequence_jobs": n, "agent": ours}
        others = group[group["title"] != ours].groupby("title", sort=False)["kind"].first()
        for (theirs, kind), metric in product(others.items(), METRIC_TITLE):
            figures = [printed(paper, "table9", metric, paper_trace, s) for s in (kind, "rltune")]
            figures = [common.NAN] * 2 if kind == "rltune" else figures
            found = compare(group, metric, n, {"title": ours}, {"title": theirs}, by)
            rows.append({**same, "against": theirs, **opponent_row(found, figures)})
    table = common.with_holm(pd.DataFrame(rows), TESTED)
    return describe("table9-numbers", table, paper, rows=frame, holm=_holm(table, by)), table
