"""RLTune against its base policy and against the strongest heuristic, with intervals, beside the paper's figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rltune.config.cells import AXES
from rltune.evaluation.compare import SPAN, Comparison, compare, picked_baseline, strong_baseline
from rltune.report.artefact import Artefact
from rltune.report.format import NBSP, show
from rltune.report.paper import PaperEntry, PaperResults
from rltune.report.studies import PAPER_POLICY, WAIT, Study, cells_of
from rltune.report.style import POLICY_TITLE, scheduler_title
from rltune.report.tables.common import SETTING_TITLE, lengths, proper, where
from rltune.report.tables.comparison_words import TESTED, artefact_of
from rltune.report.tables.holm import with_holm
from rltune.report.verdict import direction, verdict

AGENT = {"role": "rltune"}
NAN = float("nan")


def comparison(
    cells: pd.DataFrame,
    windows: pd.DataFrame,
    histories: pd.DataFrame,
    paper: PaperResults,
    study: Study = WAIT,
    *,
    bootstrap: int,
    confidence: float,
    seed: int,
    source: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """One row a setting × window length of a study: base, agent, improvement with interval, paper, verdict, opponents.

    ``cells`` and ``windows`` as `report.read` gives them; used are the cells of the study (`report.studies`), of these
    those of RLTune proper (`common.proper`). A setting trained with several seeds is one row: `seeds` of them, the
    interval over seeds and windows, `seed_low` and `seed_high` the least and most improvement of one; `cell` is the
    first. Improvements and their intervals are fractions, means are over windows. `holm`,
    `holm_strong` and so on are p-values after Holm's correction over all comparisons of the table.
    """
    chosen, left = proper(cells_of(study, cells))
    rows = []
    for _, group in chosen.groupby([a for a in AXES if a != "seed"], sort=False):
        each = [where(windows, cell=name) for name in group["cell"]]
        learned = learned_in([where(histories, cell=name) for name in group["cell"]])
        for n in lengths(each[0]):
            rows.append({**_row(group, each, n, study, paper, bootstrap, confidence, seed), "learned": learned})
    frame = with_holm(pd.DataFrame(rows), TESTED)
    return artefact_of(study, chosen, frame, paper, confidence, bootstrap, left, source), frame


def _row(
    group: pd.DataFrame,
    each: Sequence[pd.DataFrame],
    n: int,
    study: Study,
    paper: PaperResults,
    bootstrap: int,
    confidence: float,
    seed: int,
) -> dict[str, Any]:
    cell, metric = group.iloc[0], study.metric
    runs = where(each[0], sequence_jobs=n)

    def against(theirs: dict[str, Any], metric: str = metric) -> Comparison:
        return compare(each, metric, n, AGENT, theirs, bootstrap, confidence, seed)

    base = against({"role": "base"})
    row: dict[str, Any] = {
        **{k: cell[k] for k in ("trace_title", "trace", "paper_trace", "data", "policy", *SETTING_TITLE, "cell")},
        "seed": ", ".join(str(s) for s in group["seed"]),
        "seeds": base.seeds,
        "measure": metric,
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
        "p": base.p,
        "seed_low": base.seed_low,
        "seed_high": base.seed_high,
        "worst_tenth_share": base.worst_tenth_share,
        "shows": direction(base.low, base.high, base.windows),
    }
    row["way"] = "; ".join(
        dict.fromkeys(
            way_of(own, where(table, sequence_jobs=n, role="rltune").iloc[0])
            for (_, own), table in zip(group.iterrows(), each, strict=True)
        )
    )
    entry = _printed(cell, study, paper)
    row["paper"] = NAN if entry is None or entry.value is None else entry.value
    row["paper_says"] = "" if entry is None else entry.text or show(entry.value, "percent").replace(NBSP, " ")
    row["verdict"] = verdict(None if entry is None else entry.value, base.low, base.high, base.windows)
    if metric == "utilisation":
        row |= _side("span", over := against({"role": "base"}, SPAN)) | {"span_rltune": over.ours_mean}
    for name, role in (("best_fit", "base_best_fit"), ("random", "random")):
        if (runs["role"] == role).any():
            row |= _side(name, against({"role": role}))
    if (runs["role"] == "baseline").any():
        best = strong_baseline(each[0], metric, n)
        rivals = where(runs, role="baseline")[["policy", "backfill", "placement"]].drop_duplicates()
        row |= {"strong": _title(best), **_side("strong", against(best)), "rivals": len(rivals)}
    if (picked := picked_baseline(each[0], metric, n)) is not None:
        row |= {"picked": _title(picked), **_side("picked", against(picked))}
    return row


def _side(name: str, c: Comparison) -> dict[str, Any]:
    """The columns of RLTune against one opponent."""
    return {
        f"{name}_mean": c.theirs_mean,
        f"over_{name}": c.improvement,
        f"over_{name}_low": c.low,
        f"over_{name}_high": c.high,
        f"over_{name}_p": c.p,
        f"shows_{name}": direction(c.low, c.high, c.windows),
    }


def way_of(cell: pd.Series, run: pd.Series) -> str:
    """What the agent chose to do otherwise than its cell says, as its test runs tell (rltune.agent.scheduler_choice)."""
    chosen = scheduler_title(run["policy"], run["backfill"])
    other = [] if chosen == scheduler_title(cell["policy"], cell["backfill"]) else [f"from {chosen}"]
    return ", ".join(other + [run[k] for k in ("placement", "locality") if run[k] != cell[k]])


def _title(baseline: dict[str, str]) -> str:
    return scheduler_title(baseline["policy"], baseline["backfill"])


def learned_in(histories: Sequence[pd.DataFrame]) -> str:
    """Whether the agents kept learned anything: one answer where all seeds agree, else how many of them did."""
    answers = [_one_learned(history) for history in histories]
    if len(set(answers)) == 1:
        return answers[0]
    return f"{answers.count('yes')} of {len(answers)} seeds"


def _one_learned(history: pd.DataFrame) -> str:
    """Whether the agent kept learned anything, and on validation windows beats its base policy and a random order."""
    if not len(history):
        return ""
    kept = history[history["epoch"] == history["kept_epoch"].iloc[-1]]
    if not len(kept):
        return "no: kept the heuristic it started from"
    (best,) = kept["validation_rl"]
    return "yes" if best < np.nanmin(kept[["validation_base", "validation_random"]]) else "no"


def _printed(cell: pd.Series, study: Study, paper: PaperResults) -> PaperEntry | None:
    """The paper's figure for this setting: agents trained for this metric alone, without backfilling."""
    if not study.paper or cell["metric"] != study.metric or cell["backfill"] != "none":
        return None
    policy = PAPER_POLICY.get(cell["policy"], cell["policy"])
    return paper.find(study.paper, cell["paper_trace"], policy, study.metric)
