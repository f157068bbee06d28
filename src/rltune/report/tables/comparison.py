"""RLTune against its base policy, a random order and the strongest heuristic, next to the paper’s figures; every heuristic."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from rltune.evaluation.compare import SPAN, Comparison, compare, picked_baseline, strong_baseline
from rltune.evaluation.intervals import Intervals
from rltune.report import common
from rltune.report.artefact import Table
from rltune.report.artefacts import describe
from rltune.report.common import lengths, setting_columns, where
from rltune.report.format import NBSP, from_to, show
from rltune.report.paper import PaperEntry, PaperResults
from rltune.report.studies import PAPER_POLICY, Study, cells_of
from rltune.report.style import policy_title, title_of
from rltune.report.transferred import SAME_AGENT
from rltune.report.verdict import direction, verdict

AGENT = {"role": "rltune"}
TESTED = {"p": "holm"} | {f"over_{name}_p": f"holm_{name}" for name in ("strong", "random", "picked", "span")}
"""Columns of p-values, one family per table → columns after Holm's correction."""


def comparison(
    cells: pd.DataFrame,
    windows: pd.DataFrame,
    histories: pd.DataFrame,
    paper: PaperResults,
    study: Study,
    by: Intervals,
) -> Table:
    """One row per setting × window length of a study: base, agent, improvement with interval, paper, verdict, opponents.

    ``cells`` and ``windows`` as `report.read` gives them; used are the study's cells of RLTune proper
    (`report.studies`, `common.without_variants`). A setting trained with several seeds is one row: `seeds` of them, the
    interval over seeds and windows, `seed_low` and `seed_high` the least and most improvement of one; `cell` is the
    first. Improvements and their intervals are fractions, means are over windows. `holm`, `holm_strong` and so on are
    p-values after Holm's correction over all comparisons of the table.
    """
    chosen, left = common.without_variants(cells_of(study, cells))
    rows = []
    for _, group in chosen.groupby(SAME_AGENT, sort=False):
        each = [where(windows, cell=name) for name in group["cell"]]
        learned = learned_in([where(histories, cell=name) for name in group["cell"]])
        rows += [_row(group, each, n, study, paper, by) | {"learned": learned} for n in common.lengths(each[0])]
    frame = common.with_holm(pd.DataFrame(rows), TESTED)
    return describe(
        study.numbers,
        frame,
        paper,
        cells=chosen,
        without=["seed"],
        study=study,
        heuristics=from_to(frame["heuristics"]),
        holm=common.holm_note(frame, TESTED, "over base policy, random order and heuristics", by.bootstrap),
        left=left,
    ), frame


def _row(
    group: pd.DataFrame, each: Sequence[pd.DataFrame], n: int, study: Study, paper: PaperResults, by: Intervals
) -> dict[str, Any]:
    cell, metric = group.iloc[0], study.metric
    roles = set(where(each[0], sequence_jobs=n)["role"])

    def against(theirs: Mapping[str, Any], metric: str = metric) -> Comparison:
        return compare(each, metric, n, AGENT, theirs, by)

    base = against({"role": "base"})
    same = ("windows", "seeds", "improvement", "low", "high", "p", "seed_low", "seed_high", "worst_tenth_share")
    row: dict[str, Any] = {
        **common.about(group),
        "measure": metric,
        "sequence_jobs": n,
        "base_mean": base.theirs_mean,
        "rltune_mean": base.ours_mean,
        "base_median": base.theirs_median,
        "rltune_median": base.ours_median,
        **{name: getattr(base, name) for name in same},
        "shows": direction(base.low, base.high, base.windows),
        "choice": choices(group, each, n),
        **against_paper(_printed(cell, study, paper), base),
    }
    if metric == "utilisation":
        row |= _side("span", over := against({"role": "base"}, SPAN)) | {"span_rltune": over.ours_mean}
    for name, role in (("best_fit", "base_best_fit"), ("random", "random")):
        if role in roles:
            row |= _side(name, against({"role": role}))
    best = strong_baseline(each[0], metric, n)
    tried = where(each[0], sequence_jobs=n, role="baseline")[["policy", "backfill", "placement"]]
    row |= {"strong": title_of(best), **_side("strong", against(best)), "heuristics": len(tried.drop_duplicates())}
    if (picked := picked_baseline(each[0], metric, n)) is not None:
        row |= {"picked": title_of(picked), **_side("picked", against(picked))}
    return row


def against_paper(entry: PaperEntry | None, found: Comparison) -> dict[str, Any]:
    """The paper's figure as a number and in words, and the verdict; empty where it has none."""
    value = common.NAN if entry is None or entry.value is None else entry.value
    return {
        "paper": value,
        "paper_says": "" if entry is None else entry.text or show(entry.value, "percent").replace(NBSP, " "),
        "verdict": verdict(value, found.low, found.high, found.windows),
    }


def _side(name: str, c: Comparison) -> dict[str, Any]:
    """The columns of RLTune against one opponent."""
    return {
        f"{name}_mean": c.theirs_mean,
        **common.gain(f"over_{name}", c, prefix=f"over_{name}_"),
        f"shows_{name}": direction(c.low, c.high, c.windows),
    }


def choices(cells: pd.DataFrame, each: Sequence[pd.DataFrame], n: int) -> str:
    """Where the agents of these cells chose something other than their cell's setting; "" where none did."""
    runs = [where(table, sequence_jobs=n, role="rltune").iloc[0] for table in each]
    found = dict.fromkeys(_choice(cell, run) for (_, cell), run in zip(cells.iterrows(), runs, strict=True))
    return "; ".join(choice or "none" for choice in found) if any(found) else ""


def _choice(cell: pd.Series, run: pd.Series) -> str:
    parts = [f"from {title_of(run)}"] if title_of(run) != title_of(cell) else []
    parts += [run[k] for k in ("placement", "locality") if run[k] != cell[k]]
    parts += ["order and type planned together"] if run["types"] == "joint" else []
    return ", ".join(parts + ([f"price {run['gpu_price']:g}"] if run["gpu_price"] else []))


def learned_in(histories: Sequence[pd.DataFrame]) -> str:
    """Whether the agents learned anything: one answer where all seeds agree, "no" where none did, else how many."""
    answers = [_one_learned(history) for history in histories]
    if len(set(answers)) == 1:
        return answers[0]
    return f"{answers.count('yes')} of {len(answers)} seeds" if "yes" in answers else "no"


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


def heuristics(cells: pd.DataFrame, windows: pd.DataFrame) -> Table:
    """One row per trace × window length × policy, a column per backfill rule: mean wait in s.

    ``cells`` and ``windows`` as `report.read` gives them; baselines are the same for all cells of a trace, cluster,
    estimate and locality. The frame has `policy`, `title`, `windows`, the backfill rules, `best` (the least of the
    row), `bound` (a lower bound on the mean wait of any schedule) and `over_bound`, best / bound, NaN where that is 0.
    The policy with the least wait of a trace and length has a star in its title.
    """
    keys = ["trace_title", "data", "estimate", "locality"]
    frames = []
    for values, group in cells.groupby(keys, sort=False):
        baselines = where(windows, cell=group["cell"].iloc[0], role="baseline", locality=values[-1])
        for n in lengths(baselines):
            same = dict(zip(keys, values, strict=True)) | {"sequence_jobs": n}
            frames.append(pd.DataFrame([same]).merge(_heuristics(where(baselines, sequence_jobs=n)), how="cross"))
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    settings = {c: v for c, v in setting_columns(cells).items() if c in ("estimate", "locality")}
    return describe("heuristics", frame, settings=settings), frame


def _heuristics(windows: pd.DataFrame) -> pd.DataFrame:
    means = windows.pivot_table(index="policy", columns="backfill", values="wait_s", sort=False)
    bound = float(windows.groupby("window")["bound_s"].first().mean())
    best = means.min(axis=1)
    titles = best.index.map(policy_title) + (best == best.min()).map({True: " ★", False: ""})
    named = pd.DataFrame({"title": titles, "windows": windows["window"].nunique()})
    over_bound = best / bound if bound > 0 else common.NAN
    return named.join(means.assign(best=best, bound=bound, over_bound=over_bound)).reset_index()
