"""Agents on traces and clusters they were not trained on."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rltune.evaluation.intervals import NAN
from rltune.report.artefact import Artefact, Column
from rltune.report.paper import PaperResults
from rltune.report.style import POLICY_TITLE
from rltune.report.tables.carried import HOME, SAME_AGENT, less, waits
from rltune.report.tables.common import SETTING_TITLE, constant_settings, data_labels, varying, where
from rltune.report.tables.holm import holm_note, with_holm
from rltune.report.verdict import direction

RULES = ["backfill", "placement", "locality", "estimate"]
TESTED = {"p": "holm", "there_p": "there_holm", "over_there_p": "over_there_holm", "random_p": "random_holm"}


def transfer(
    cells: pd.DataFrame,
    runs: pd.DataFrame,
    paper: PaperResults,
    *,
    bootstrap: int,
    confidence: float,
    seed: int,
    source: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """One row an agent (its seeds together) × workload it was not trained on.

    ``cells`` as `report.read` gives them, ``runs`` as `evaluation.studies.transfer.across_traces` does. Of the agent, of the one
    trained there in the same way (``there_…``, empty where there is none) and of a random order (``random_…``): the
    improvement of mean wait over the base policy there, a fraction with interval; ``over_there``: over the agent
    trained there; ``shows``: what the interval over the base policy shows. Means in s.
    """
    judge = (bootstrap, confidence, seed)
    homes = cells.drop_duplicates(HOME).set_index(HOME)
    rows: list[dict[str, Any]] = []
    for _, group in cells.groupby(SAME_AGENT, sort=False):
        cell = group.iloc[0]
        same_rules = where(runs, **{k: cell[k] for k in RULES})
        for home, found in same_rules.groupby(HOME, sort=False):
            if home == (cell["trace"], cell["cluster"]):
                continue
            there = homes.loc[home]
            base = waits(where(found, role="base", policy=cell["policy"]))
            ours = waits(found[found["cell"].isin(group["cell"])])
            alike = {k: cell[k] for k in SAME_AGENT if k not in HOME}
            native = waits(found[found["cell"].isin(where(cells, **alike, **dict(zip(HOME, home)))["cell"])])
            rows.append(
                {
                    "trained": cell["trace_title"],
                    "trained_machine": cell["machine"],
                    "tested": there["trace_title"],
                    "tested_machine": there["machine"],
                    "data": there["data"],
                    "policy": cell["policy"],
                    "base": POLICY_TITLE.get(cell["policy"], cell["policy"]),
                    **{k: cell[k] for k in SETTING_TITLE if k not in ("seed", "cluster_title")},
                    "sequence_jobs": int(found["sequence_jobs"].iloc[0]),
                    "windows": len(base),
                    "seeds": len(group),
                    "base_mean": base.to_numpy().mean(),
                    "mean": ours.to_numpy().mean(),
                    **_gain("", ours, base, judge),
                    "there_mean": native.to_numpy().mean() if len(native) else NAN,
                    **_gain("there", native, base, judge),
                    **_gain("over_there", ours, native, judge),
                    **_gain("random", waits(where(found, role="random")), base, judge),
                }
            )
    frame = with_holm(pd.DataFrame(rows), TESTED)
    frame["shows"] = [direction(r["low"], r["high"], r["windows"]) for _, r in frame.iterrows()]
    return _artefact(cells, frame, paper, confidence, bootstrap, source), frame


def _gain(name: str, ours: pd.DataFrame, theirs: pd.DataFrame, judge: tuple[int, float, int]) -> dict[str, float]:
    """Columns ``name`` (``less`` where that is ""), ``name_low``, ``name_high`` and ``name_p``."""
    found = less(ours, theirs, *judge)
    before = f"{name}_" if name else ""
    return {name or "less": found.gain, f"{before}low": found.low, f"{before}high": found.high, f"{before}p": found.p}


def _artefact(
    cells: pd.DataFrame, frame: pd.DataFrame, paper: PaperResults, confidence: float, bootstrap: int, source: str
) -> Artefact:
    over = "Less wait than that base policy"
    columns = {
        "trained": Column("Trained on"),
        "tested": Column("Tested on"),
        "base": Column("Base policy", help="In training and in judging."),
        **{c: Column(SETTING_TITLE[c].capitalize()) for c in varying(cells) if c not in ("seed", "cluster_title")},
        "base_mean": Column("Its mean wait", "s", "seconds"),
        "less": Column("This agent", "", "percent", over, "low", "high"),
        "holm": Column("Holm p", "", "p", over, help="p-value after Holm’s correction over this table."),
        "shows": Column("Is", "", "text", over),
        "there": Column("The one trained there", "", "percent", over, "there_low", "there_high"),
        "random": Column("A random order", "", "percent", over, "random_low", "random_high"),
        "over_there": Column(
            "Than the one trained there", "", "percent", "Less wait", "over_there_low", "over_there_high"
        ),
        "windows": Column("Windows", "", "int", help="Disjoint windows of the test part."),
    }
    from_cpu = frame[(frame["trained_machine"] == "CPU") & (frame["tested_machine"] == "GPU")]
    says = paper.without_figures["cpu-transfer"]
    notes = (
        "Comparable: the schedules of a row, which have the same jobs, nodes, estimates and rules. Not comparable: "
        "rows of different traces, whose waits and room for improvement differ many times over.",
        "An agent sees shares of the cluster, ranks in the queue, and logarithms of seconds and GPUs on one scale for "
        "all traces. So it can be run anywhere, but what is a long job or a large one where it learned may be an "
        "ordinary one elsewhere. Where it chose placement, locality or reservations in training, those go with it.",
        "Where a random order gains as much, nothing of what was learned has carried over: it is worth leaving the "
        "base policy’s order, whatever for.",
        f"The paper, {says.where}: “{says.title}.” {_of_cpu(from_cpu)}",
        f"At most {int(frame['windows'].max())} windows of {frame['sequence_jobs'].max():,} jobs, evenly spread over "
        "the test part.",
        holm_note(frame, TESTED, "over base policies and other orders", confidence, bootstrap),
        constant_settings(cells, without=("cluster_title", "seed")),
    )
    return Artefact(
        "transfer",
        "table",
        "On traces it was not trained on",
        paper_ref=paper.ref("cpu-transfer"),
        caption="Every agent on the test windows of the other workloads, beside the agent trained there with the same "
        "base policy, and an order drawn at random. Brackets: "
        f"{100 * confidence:.0f} % interval, paired by window; negative is worse.",
        data=data_labels(frame),
        source=source,
        columns=columns,
        notes=tuple(n for n in notes if n),
    )


def _of_cpu(rows: pd.DataFrame) -> str:
    """What the rows of agents from CPU traces on GPU traces show, in a sentence."""
    if rows.empty:
        return "This run’s matrix has no such agent."
    counts = rows["shows"].value_counts()
    told = ", ".join(f"{shows} in {count}" for shows, count in counts.items())
    return f"Here, of {len(rows)} such pairs against the base policy there: {told}."
