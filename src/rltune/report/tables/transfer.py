"""Agents against base policies (Table 7) and on traces and clusters that they were not trained with."""

from typing import Any

import pandas as pd

from rltune.config.comparisons import HOME, RULES
from rltune.evaluation.intervals import Intervals
from rltune.report import common
from rltune.report.artefact import Table
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.paper import PaperResults
from rltune.report.style import policy_title
from rltune.report.transferred import SAME_AGENT, less, waits
from rltune.report.verdict import direction, verdict

TESTED = {"p": "holm", "there_p": "there_holm", "over_there_p": "over_there_holm", "over_random_p": "over_random_holm"}


def policies_of(paper: PaperResults) -> list[str]:
    """The base policies of the paper's Table 7."""
    return list(dict.fromkeys(key.split(".")[1] for key in paper.artefacts["table7"].entries))


def table7(cells: pd.DataFrame, runs: pd.DataFrame, paper: PaperResults, by: Intervals) -> Table:
    """One row per agent (its seeds together), a group of columns per base policy B that it runs with.

    ``cells`` as `report.read` gives them, ``runs``: windows of every base policy, and of every agent with each. Columns of
    B: ``B`` (less mean wait than B, a fraction), ``B_low``, ``B_high``, ``B_p`` and ``B_holm`` (the p-value, and after
    Holm's correction over the table), ``B_agent`` and ``B_mean`` (of the agent and of B, s), ``B_paper``, ``B_verdict``;
    also ``trained`` (base policy in training), ``windows``, ``seeds``.
    """
    policies = list(dict.fromkeys([*policies_of(paper), *runs["policy"]]))
    n = int(runs["sequence_jobs"].iloc[0])
    rows: list[dict[str, Any]] = []
    for _, group in cells.groupby(SAME_AGENT, sort=False):
        cell = group.iloc[0]
        there = where(runs, **{k: cell[k] for k in (*HOME, *RULES)})
        agents, bases = there[there["cell"].isin(group["cell"])], where(there, role="base")
        row = {
            **{k: v for k, v in common.about(group).items() if k != "cell"},
            "trained": policy_title(cell["policy"]),
            "sequence_jobs": n,
            "windows": agents["first_job"].nunique(),
            "seeds": len(group),
        }
        for policy in policies:
            ours, theirs = (waits(where(rows_of, policy=policy)) for rows_of in (agents, bases))
            row |= _against(policy, cell, ours, theirs, paper, by)
        rows.append(row)
    tested = {f"{p}_p": f"{p}_holm" for p in policies}
    frame = common.with_holm(pd.DataFrame(rows), tested)
    seeds = int(frame["seeds"].max())
    return describe(
        "table7",
        frame,
        paper,
        cells=cells,
        without=["seed"] if seeds > 1 else (),
        n=n,
        seeds=seeds,
        policies={p: policy_title(p) for p in policies},
        printed=[p for p in policies if frame[f"{p}_paper"].notna().any()],
        settings=common.setting_columns(cells, without=["seed"]),
        holm=common.holm_note(frame, tested, "over base policies", by.bootstrap),
    ), frame


def _against(
    policy: str, cell: pd.Series, ours: pd.DataFrame, theirs: pd.DataFrame, paper: PaperResults, by: Intervals
) -> dict[str, Any]:
    """The columns of one base policy; empty where it was not run."""
    found = less(ours, theirs, by)
    comparable = cell["metric"] == "wait" and cell["backfill"] == "none"
    key = ("table7", cell["paper_trace"], cell["policy"], policy, "wait")
    printed = paper.number(*key) if comparable else common.NAN
    return {
        **found.columns(policy, p=True),
        f"{policy}_agent": _mean(ours),
        f"{policy}_mean": _mean(theirs),
        f"{policy}_paper": printed,
        f"{policy}_verdict": verdict(printed, found.low, found.high, len(ours)),
    }


def _mean(waits: pd.DataFrame) -> float:
    """Mean of `transferred.waits`; NaN of none."""
    return waits.to_numpy().mean() if len(waits) else common.NAN


def transfer(cells: pd.DataFrame, runs: pd.DataFrame, paper: PaperResults, by: Intervals) -> Table:
    """One row per agent (its seeds together) × workload it was not trained on.

    ``cells`` as `report.read` gives them, ``runs``: windows of every agent, base policy and a random order on every
    workload. Of the agent, and of the one trained there in the same setting (``there_…``, empty where there is none): the
    improvement of mean wait over the base policy there, a fraction with interval; ``over_there``, ``over_random``: of the
    agent over the one trained there, and over a random order; ``shows``: what the interval over the base policy shows. Means in s.
    """
    homes = cells.drop_duplicates(HOME).set_index(HOME)
    rows: list[dict[str, Any]] = []
    for _, group in cells.groupby(SAME_AGENT, sort=False):
        cell = group.iloc[0]
        for home, found in where(runs, **{k: cell[k] for k in RULES}).groupby(HOME, sort=False):
            if home == (cell["trace"], cell["cluster"]):
                continue
            tested = homes.loc[home]
            natives = where(cells, **{k: cell[k] for k in SAME_AGENT if k not in HOME}, **dict(zip(HOME, home)))
            base = waits(where(found, role="base", policy=cell["policy"]))
            ours, native = (waits(found[found["cell"].isin(agents["cell"])]) for agents in (group, natives))
            rows.append(
                {
                    "trained": cell["trace_title"],
                    "trained_machine": cell["machine"],
                    "tested": tested["trace_title"],
                    "tested_machine": tested["machine"],
                    "data": tested["data"],
                    "policy": cell["policy"],
                    "base": policy_title(cell["policy"]),
                    **{k: cell[k] for k in common.SETTING_TITLE if k not in ("seed", "cluster_title")},
                    "sequence_jobs": int(found["sequence_jobs"].iloc[0]),
                    "windows": len(base),
                    "seeds": len(group),
                    "base_mean": _mean(base),
                    "mean": _mean(ours),
                    "there_mean": _mean(native),
                    **common.gain("less", less(ours, base, by), "gain"),
                    **less(native, base, by).columns("there", p=True),
                    **less(ours, native, by).columns("over_there", p=True),
                    **less(ours, waits(where(found, role="random")), by).columns("over_random", p=True),
                }
            )
    frame = common.with_holm(pd.DataFrame(rows), TESTED)
    frame["shows"] = list(map(direction, frame["low"], frame["high"], frame["windows"]))
    return describe(
        "transfer",
        frame,
        paper,
        cells=cells,
        rows=frame,
        without=["seed", "cluster_title"],
        from_cpu=where(frame, trained_machine="CPU", tested_machine="GPU")["shows"],
        holm=common.holm_note(frame, TESTED, "over base policies and other orders", by.bootstrap),
    ), frame
