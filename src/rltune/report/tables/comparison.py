"""RLTune against its base policy and against the strongest heuristic, with intervals, beside the paper's figures."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rltune.evaluation.compare import Comparison, compare, picked_baseline, strong_baseline
from rltune.report.artefact import Artefact, Column
from rltune.report.format import NBSP, show
from rltune.report.paper import PaperEntry, PaperResults
from rltune.report.style import POLICY_TITLE, scheduler_title
from rltune.report.tables.common import (
    SETTING_TITLE, constant_settings, data_labels, lengths, pro_cells, varying, where,
)
from rltune.report.verdict import RULE, direction, verdict

AGENT = {"role": "rltune"}
NAN = float("nan")


def comparison(
    cells: pd.DataFrame, windows: pd.DataFrame, histories: pd.DataFrame, paper: PaperResults, *,
    bootstrap: int, confidence: float, seed: int, source: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """One row a cell × window length: base, agent, improvement with interval, paper, verdict, random order, heuristics.

    ``cells`` and ``windows`` as `report.read` gives them; where both kinds are there, only cells of RLTune proper
    (engineered features, look-ahead placement) are used. Improvements and their intervals are fractions, means are
    over windows. What is compared is wait, whatever the agents were trained for.
    """
    chosen = pro_cells(cells)
    rows = []
    for _, cell in chosen.iterrows():
        own = where(windows, cell=cell["cell"])
        for n in lengths(own):
            row = _row(cell, own, n, paper, bootstrap, confidence, seed)
            rows.append({**row, "learned": _learned(where(histories, cell=cell["cell"]))})
    frame = pd.DataFrame(rows)
    return _artefact(chosen, frame, paper, confidence, source), frame


def _row(
    cell: pd.Series, windows: pd.DataFrame, n: int, paper: PaperResults, bootstrap: int, confidence: float, seed: int
) -> dict[str, Any]:
    metric = "wait"
    rows_n = where(windows, sequence_jobs=n)

    def against(theirs: dict[str, Any]) -> Comparison:
        return compare(windows, metric, n, AGENT, theirs, bootstrap, confidence, seed)

    base = against({"role": "base"})
    row: dict[str, Any] = {
        **{k: cell[k] for k in ("trace_title", "trace", "data", "policy", *SETTING_TITLE, "cell")},
        "base": POLICY_TITLE.get(cell["policy"], cell["policy"]),
        "sequence_jobs": n,
        "windows": base.windows,
        "base_mean": base.theirs_mean,
        "rltune_mean": base.ours_mean,
        "base_median": base.theirs_median,
        "rltune_median": base.ours_median,
        "improvement": base.improvement,
        "low": base.low,
        "high": base.high,
        "worst_tenth_share": base.worst_tenth_share,
        "shows": direction(base.low, base.high, base.windows),
    }
    row["way"] = _way(cell, where(rows_n, role="rltune").iloc[0])
    entry = _printed(cell, paper)
    row["paper"] = NAN if entry is None or entry.value is None else entry.value
    row["paper_says"] = "" if entry is None else entry.text or show(entry.value, "percent").replace(NBSP, " ")
    row["verdict"] = verdict(None if entry is None else entry.value, base.low, base.high, base.windows)
    for name, role in (("best_fit", "base_best_fit"), ("random", "random")):
        if (rows_n["role"] == role).any():
            row |= _side(name, against({"role": role}))
    if (rows_n["role"] == "baseline").any():
        best = strong_baseline(windows, metric, n)
        rivals = where(rows_n, role="baseline")[["policy", "blocking", "placement"]].drop_duplicates()
        row |= {"strong": _title(best), **_side("strong", against(best)), "rivals": len(rivals)}
    if (picked := picked_baseline(windows, metric, n)) is not None:
        row |= {"picked": _title(picked), **_side("picked", against(picked))}
    return row


def _side(name: str, c: Comparison) -> dict[str, Any]:
    """The columns of RLTune against one opponent."""
    return {f"{name}_mean": c.theirs_mean, f"over_{name}": c.improvement, f"over_{name}_low": c.low,
            f"over_{name}_high": c.high, f"shows_{name}": direction(c.low, c.high, c.windows)}


def _way(cell: pd.Series, run: pd.Series) -> str:
    """What the agent chose to do otherwise than its cell says, as its test runs tell (rltune.agent.ways)."""
    chosen = scheduler_title(run["policy"], run["blocking"])
    other = [] if chosen == scheduler_title(cell["policy"], cell["blocking"]) else [f"from {chosen}"]
    return ", ".join(other + [run[k] for k in ("placement", "locality") if run[k] != cell[k]])


def _title(baseline: dict[str, str]) -> str:
    return scheduler_title(baseline["policy"], baseline["blocking"])


def _learned(history: pd.DataFrame) -> str:
    """Whether the agent kept learned anything, and beats both its base policy and a random order on validation windows."""
    if not len(history):
        return ""
    kept = history[history["epoch"] == history["kept_epoch"].iloc[-1]]
    if not len(kept):
        return "no: kept the heuristic it started from"
    (best,) = kept["validation_rl"]
    return "yes" if best < kept[["validation_base", "validation_random"]].min().min() else "no"


def _printed(cell: pd.Series, paper: PaperResults) -> PaperEntry | None:
    """The paper's figure for this cell: Figure 12 is about wait without backfilling."""
    if cell["metric"] != "wait" or cell["blocking"] != "none":
        return None
    return paper.find("fig12", cell["paper_trace"], cell["policy"], "wait")


def _artefact(
    cells: pd.DataFrame, frame: pd.DataFrame, paper: PaperResults, confidence: float, source: str
) -> Artefact:
    level = f"{100 * confidence:.0f} %"
    base, strong = "Against its base policy", "Against the strongest heuristic"
    chosen, chance = "Against the one picked on validation", "Against a random order"
    columns = {
        "trace_title": Column("Trace"),
        "base": Column("Base policy"),
        **{c: Column(SETTING_TITLE[c].capitalize(), "", "plain-int" if c == "seed" else "text")
           for c in varying(cells)},
        "sequence_jobs": Column("Window", "jobs", "int"),
        "base_mean": Column("Base", "s", "seconds", base),
        "rltune_mean": Column("RLTune", "s", "seconds", base),
        "improvement": Column("Less wait", "", "percent", base, "low", "high"),
        "paper_says": Column("Paper", "", "text", base),
        "verdict": Column("Verdict", "", "text", base),
        "learned": Column("Learned", "", "text", chance,
                          help="On validation windows the agent beats both its base policy and a random order; one that starts "
                          "from a heuristic, that too."),
        "random_mean": Column("Random", "s", "seconds", chance),
        "over_random": Column("Less wait", "", "percent", chance, "over_random_low", "over_random_high"),
        "strong": Column("Heuristic", "", "text", strong),
        "strong_mean": Column("Mean", "s", "seconds", strong),
        "over_strong": Column("Less wait", "", "percent", strong, "over_strong_low", "over_strong_high"),
        "shows_strong": Column("RLTune is", "", "text", strong),
        "picked": Column("Heuristic", "", "text", chosen),
        "picked_mean": Column("Mean", "s", "seconds", chosen),
        "over_picked": Column("Less wait", "", "percent", chosen, "over_picked_low", "over_picked_high"),
        "best_fit_mean": Column("Base with best-fit", "s", "seconds", help="The base policy with best-fit placement."),
        **({"way": Column("Its own way", "", "text", help="What the agent chose, on training rows, to do otherwise than "
                          "its cell says: whose order it starts from, reservations, placement, locality.")}
           if frame["way"].any() else {}),
        "windows": Column("Windows", "", "int", help="Disjoint windows of the test part."),
        "worst_tenth_share": Column("Worst tenth", "of base wait", "percent",
                                    help="Share of the base policy’s total wait that the worst tenth of windows has."),
    }
    rivals = int(frame["rivals"].max()) if "rivals" in frame and frame["rivals"].notna().any() else 0
    notes = (
        "“Against its base policy” reproduces the paper’s comparison. A base policy that blocks is easily beaten, "
        "so this alone does not show that scheduling got better; the strongest heuristic does.",
        *([f"The strongest heuristic is the best of {rivals} on the same test windows, chosen in hindsight: harder to "
           "beat than anything an operator could have picked beforehand. The one picked on validation windows is such a "
           "pick."] if rivals else []),
        "A random order, drawn anew at every decision (mean of several runs), is what not staying blocked is worth "
        "without any learning.",
        "The intervals are over windows of one training run; another training seed would move the figures as well.",
        "Base policy and RLTune share placement, locality, backfilling and run-time estimates"
        + (", but for what the agent chose itself, which the last columns say." if frame["way"].any() else "."),
        f"Verdicts: {RULE}",
        "RLTune is “open” where the interval covers zero: no difference is shown.",
        constant_settings(cells),
    )
    return Artefact(
        "fig12-numbers", "table", "Mean wait: RLTune, its base policy and the strongest heuristic",
        paper_ref=paper.ref("fig12"),
        caption=f"Mean wait over disjoint windows of test jobs, each from an idle cluster. Brackets: {level} interval "
        "of the relative improvement (moving-block bootstrap over time, paired by window); negative is worse.",
        data=data_labels(cells), source=source,
        columns={c: v for c, v in columns.items() if c in frame}, notes=tuple(n for n in notes if n),
    )
