"""Table 7: agents trained against one base policy, judged against the others."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rltune.evaluation.intervals import NAN
from rltune.report.artefact import Artefact, Column
from rltune.report.paper import PaperResults
from rltune.report.style import POLICY_TITLE
from rltune.report.tables.carried import SAME_AGENT, less, waits
from rltune.report.tables.common import SETTING_TITLE, constant_settings, data_labels, varying, where
from rltune.report.tables.holm import holm_note, with_holm
from rltune.report.verdict import RULE, verdict

RULES = ["trace", "cluster", "backfill", "placement", "locality", "estimate"]


def policies_of(paper: PaperResults) -> list[str]:
    """The base policies of the paper's table."""
    return list(dict.fromkeys(key.split(".")[1] for key in paper.artefacts["table7"].entries))


def table7(
    cells: pd.DataFrame,
    windows: pd.DataFrame,
    bases: pd.DataFrame,
    paper: PaperResults,
    *,
    bootstrap: int,
    confidence: float,
    seed: int,
    source: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """One row an agent (its seeds together), a group of columns a base policy B that it is judged against.

    ``cells`` and ``windows`` as `report.read` gives them, ``bases`` as `evaluation.studies.transfer.across_bases` does. Columns
    of B: ``B`` (less mean wait than B, a fraction), ``B_low``, ``B_high``, ``B_p`` and ``B_holm`` (the p-value, and
    after Holm's correction over the table), ``B_mean`` (of B, s), ``B_paper``, ``B_verdict``;
    besides ``trained`` (base policy in training), ``mean`` (of the agent, s), ``windows``, ``seeds``.
    """
    order = policies_of(paper)
    others = [p for p in dict.fromkeys(bases["policy"]) if p not in order]
    columns = [*order, *others]
    agents = windows[(windows["role"] == "rltune") & (windows["sequence_jobs"] == bases["sequence_jobs"].iloc[0])]
    rows: list[dict[str, Any]] = []
    for _, group in cells.groupby(SAME_AGENT, sort=False):
        cell = group.iloc[0]
        ours = waits(agents[agents["cell"].isin(group["cell"])])
        row: dict[str, Any] = {
            **{
                k: cell[k]
                for k in ("trace_title", "trace", "paper_trace", "data", "policy", *SETTING_TITLE)
                if k != "seed"
            },
            "trained": POLICY_TITLE.get(cell["policy"], cell["policy"]),
            "sequence_jobs": int(bases["sequence_jobs"].iloc[0]),
            "windows": len(ours),
            "seeds": len(group),
            "mean": ours.to_numpy().mean(),
        }
        mine = where(bases, **{k: cell[k] for k in RULES})
        for policy in columns:
            row |= _against(policy, cell, ours, waits(where(mine, policy=policy)), paper, bootstrap, confidence, seed)
        rows.append(row)
    frame = with_holm(pd.DataFrame(rows), _tested(columns))
    return _artefact(cells, frame, columns, paper, confidence, bootstrap, source), frame


def _against(
    policy: str,
    cell: pd.Series,
    ours: pd.DataFrame,
    theirs: pd.DataFrame,
    paper: PaperResults,
    bootstrap: int,
    confidence: float,
    seed: int,
) -> dict[str, Any]:
    """The columns of one base policy; empty where it was not run."""
    found = less(ours, theirs, bootstrap, confidence, seed)
    comparable = cell["metric"] == "wait" and cell["backfill"] == "none"
    entry = paper.find("table7", cell["paper_trace"], cell["policy"], policy, "wait") if comparable else None
    printed = entry.value if entry else None
    return {
        policy: found.gain,
        f"{policy}_low": found.low,
        f"{policy}_high": found.high,
        f"{policy}_p": found.p,
        f"{policy}_mean": theirs.to_numpy().mean() if len(theirs) else NAN,
        f"{policy}_paper": NAN if printed is None else printed,
        f"{policy}_verdict": verdict(printed, found.low, found.high, len(ours)),
    }


def _tested(policies: list[str]) -> dict[str, str]:
    """Columns of p-values → columns of what Holm's correction makes of them."""
    return {f"{p}_p": f"{p}_holm" for p in policies}


def _corrected(frame: pd.DataFrame, policies: list[str], confidence: float, bootstrap: int) -> str:
    note = holm_note(frame, _tested(policies), "over base policies", confidence, bootstrap)
    return f"{note} They are in the CSV." if note else ""


def _artefact(
    cells: pd.DataFrame,
    frame: pd.DataFrame,
    policies: list[str],
    paper: PaperResults,
    confidence: float,
    bootstrap: int,
    source: str,
) -> Artefact:
    shown = {
        "trace_title": Column("Trace"),
        "trained": Column("Trained on", help="Base policy that the agent was rewarded against."),
        **{c: Column(SETTING_TITLE[c].capitalize()) for c in varying(cells) if c != "seed"},
    }
    for policy in policies:
        group = f"Tested on {POLICY_TITLE.get(policy, policy)}"
        shown[policy] = Column("Less wait", "", "percent", group, f"{policy}_low", f"{policy}_high")
        if frame[f"{policy}_paper"].notna().any():
            shown[f"{policy}_paper"] = Column("Paper", "", "percent", group)
            shown[f"{policy}_verdict"] = Column("Verdict", "", "text", group)
    shown["windows"] = Column("Windows", "", "int", help="Disjoint windows of the test part.")
    seeds = int(frame["seeds"].max())
    notes = (
        "A row has one agent and the same schedules in all of its columns; only the base policy that they are measured "
        "against differs. So a row differs from another by what its agent learned, and a column from another by how "
        "good its base policy is.",
        f"Windows of {frame['sequence_jobs'].iloc[0]:,} jobs."
        + (f" Agents of up to {seeds} seeds: the intervals are over seeds too." if seeds > 1 else ""),
        _corrected(frame, policies, confidence, bootstrap),
        f"Verdict: {RULE}" if frame[[f"{p}_paper" for p in policies]].notna().any().any() else "",
        constant_settings(cells, without=["seed"] if seeds > 1 else ()),
    )
    return Artefact(
        "table7",
        "table",
        "Trained against one base policy, judged against another",
        paper_ref=paper.ref("table7"),
        caption="How much less the agent waits than each base policy under the backfilling, placement and estimates "
        "of its setting; what an agent chose itself in training goes with it and not with the base policies. A row a "
        "base policy it was trained on, a column one it is tested on. Brackets: "
        f"{100 * confidence:.0f} % interval, paired by window; negative is worse.",
        data=data_labels(frame),
        source=source,
        columns=shown,
        notes=tuple(n for n in notes if n),
    )
