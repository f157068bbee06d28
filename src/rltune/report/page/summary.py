"""The facts of the page’s summary.

The sentences are in templates/summary.html.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from rltune.config.context import Run
from rltune.report.artefact import Saved
from rltune.report.common import best_measured
from rltune.report.format import from_to, show
from rltune.report.page.opponents import Rows, column_of
from rltune.report.studies import STUDIES
from rltune.report.verdict import ABSENT, FAILS, HOLDS, MATCHES, TOO_FEW, UNDECIDED

TABLE = "claims"
Claim = dict[Hashable, Any]
"""A row of the table of claims: its columns, and those that `claims` adds."""


def claims(there: dict[str, Saved]) -> tuple[list[Claim], list[Claim]]:
    """The claims of the paper that this run can say something of, a row a claim and setting, at the length of windows of
    which there are most; and those without a counterpart.

    The first have `index`, of the row in the CSV; `setting`, in words where a claim has several; `source`, the row that
    our number is from, where this page has it; `unlearned`, whether the agent says that it learned nothing.
    """
    if TABLE not in there:
        return [], []
    frame = there[TABLE].frame
    absent = frame["verdict"] == ABSENT
    known = frame[~absent]
    best = known[known["windows"] == known.groupby("key")["windows"].transform("max")].reset_index()
    several = best["key"].duplicated(keep=False)
    found = [
        {
            **row,
            "setting": f" ({row['preset']}, {row['estimate']}, seed {row['seed']})" if one_of_several else "",
            "source": there[row["artefact"]].frame.loc[int(row["row"])] if row["artefact"] in there else None,
            "unlearned": str(row["learned"]).startswith("no"),
        }
        for row, one_of_several in zip(best.to_dict("records"), several, strict=True)
    ]
    return found, frame[absent].to_dict("records")


OUTCOMES = {
    "Better than its base policy": ("shows", ("better",)),
    "Better than a random order": ("shows_random", ("better",)),
    "Better than the strongest heuristic": ("shows_strong", ("better",)),
    "Worse than the strongest heuristic": ("shows_strong", ("worse",)),
    "The paper’s figure holds or is matched": ("verdict", ("matches", "holds")),
}
"""Possible outcomes of a comparison → the column of a study's table that says so, and its words for it."""
UP_TO = "Abstract"
"""Where the paper prints its headlines, which repeat the best of its other claims."""
IN_SUMMARY = ("Recommendation", "RLTune", "What it learned", "Simulated and recorded")
"""Topics of a what-if analysis that stand in the summary."""


def comparisons(there: dict[str, Saved]) -> Rows:
    """Study → the best measured rows of its table; the index is that of its CSV."""
    frames = {study: there[study.numbers].frame for study in STUDIES if study.numbers in there}
    return {study: best_measured(frame) for study, frame in frames.items() if len(frame)}


def measured(rows: Rows) -> str:
    """The lengths of the best measured windows, in words."""
    return " or ".join(show(n, "int") for n in sorted({n for r in rows.values() for n in r["sequence_jobs"]}))


def scores(rows: Rows) -> dict[str, list[dict[str, int] | None]]:
    """Study's title → how many of its comparisons had each of OUTCOMES; None where nothing was compared."""
    return {s.title: [score({s: frame}, *outcome) for outcome in OUTCOMES.values()] for s, frame in rows.items()}


def score(rows: Rows, column: str, words: tuple[str, ...]) -> dict[str, int] | None:
    """``hits`` among the comparisons that were measured and have windows enough for a verdict, ``of`` how many."""
    shows = column_of(rows, column)
    known = shows[shows.notna() & ~shows.isin(["", TOO_FEW])]
    if known.empty:
        return None
    return {"hits": int(known.isin(words).sum()), "of": len(known)}


def facts(run: Run, there: dict[str, Saved], rows: Rows, claimed: list[Claim]) -> dict[str, Any]:
    """What the sentences of the summary need."""
    kinds: dict[str, list[str]] = {}
    for name in dict.fromkeys(c.trace for c in run.config.cells()):
        kinds.setdefault(run.traces[name].data, []).append(run.traces[name].title)
    single = [c for c in claimed if c["where"] != UP_TO]
    verdicts = {word: sum(c["verdict"] == word for c in single) for word in (MATCHES, HOLDS, UNDECIDED, FAILS)}
    verdicts[UNDECIDED] = len(single) - verdicts[MATCHES] - verdicts[HOLDS] - verdicts[FAILS]
    learned = column_of(rows, "learned")
    return {
        "agents": len(run.config.cells()),
        "kinds": kinds,
        "measured": measured(rows),
        "single": single,
        "verdicts": verdicts,
        "better": score(rows, *OUTCOMES["Better than its base policy"]),
        "random": score(rows, *OUTCOMES["Better than a random order"]),
        "strong_better": score(rows, *OUTCOMES["Better than the strongest heuristic"]),
        "strong_worse": score(rows, *OUTCOMES["Worse than the strongest heuristic"]),
        "idle": int(learned.astype(str).str.startswith("no").sum()),
        "trained": len(learned),
        "heuristics": from_to(column_of(rows, "heuristics")),
        **_others(there),
        "whatif": _whatif(there),
    }


def _others(there: dict[str, Saved]) -> dict[str, Any]:
    """The ablation, the GPU types, the load, the cost; None where they are not there."""
    found: dict[str, Any] = dict.fromkeys(("ablation", "gpu_types", "load", "cost"))
    if "gpu-types-numbers" in there:
        saved = there["gpu-types-numbers"]
        found["gpu_types"] = saved.artefact.notes[: saved.frame["workload"].nunique()]
    if "fig10-numbers" in there and len(frame := there["fig10-numbers"].frame):
        rows = best_measured(frame)
        naive = rows[rows["variant"].str.startswith("naive") & rows["pro_over_low"].notna()]
        better, worse = int((naive["pro_over_low"] > 0).sum()), int((naive["pro_over_high"] < 0).sum())
        found["ablation"] = {"better": better, "worse": worse, "of": len(naive)} if len(naive) else None
    if "loads" in there:
        frame = there["loads"].frame
        found["load"] = {"over": int((frame["load_test"] > 1).sum()), "of": len(frame)}
    if "costs" in there:
        frame = there["costs"].frame
        columns = ("training_s", "milp_asked", "milp_infeasible", "milp_limit", "milp_failure")
        found["cost"] = {c: show(frame[c].sum(), "int") for c in columns} | {"agents": len(frame)}
    return found


def _whatif(there: dict[str, Saved]) -> dict[str, str]:
    """Topic → sentence of the recommendation; empty where the analysis is not there."""
    if "whatif-recommendation" not in there:
        return {}
    frame = there["whatif-recommendation"].frame
    return {row["topic"]: row["text"] for _, row in frame.iterrows() if row["topic"] in IN_SUMMARY}
