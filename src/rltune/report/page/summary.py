"""The facts of the page’s summary.

The sentences are in templates/summary.html.
"""

from collections.abc import Hashable
from typing import Any

import pandas as pd

from rltune.config.context import Run
from rltune.evaluation.intervals import FEWEST
from rltune.report.artefact import Saved
from rltune.report.common import PRO, SETTINGS, best_measured
from rltune.report.format import from_to, show
from rltune.report.page.marks import by_label
from rltune.report.page.opponents import Rows, column_of
from rltune.report.studies import STUDIES
from rltune.report.tables.claims import SHOWN
from rltune.report.verdict import ABSENT, FAILS, HOLDS, MATCHES, TOO_FEW, UNDECIDED

TABLE = "claims"
Claim = dict[Hashable, Any]
"""A row of the table of claims: its columns, and those that `claims` adds."""


def claims(shown: dict[str, Saved]) -> tuple[list[Claim], list[Claim]]:
    """The claims of the paper that this run has a counterpart of, a row a claim and setting, at the window length with the
    most windows; and those without a counterpart.

    The first have `index`, of the row in the CSV; `setting`, what tells it from others of its claim; `source`, the row
    that our number is from, where the page shows it; `unlearned`, whether the agent learned nothing.
    """
    if TABLE not in shown:
        return [], []
    frame = shown[TABLE].frame
    absent = frame["verdict"] == ABSENT
    known = frame[~absent]
    ordered = known.sort_values(["windows", "sequence_jobs"], ascending=[False, True])
    length = known["key"].map(ordered.groupby("key")["sequence_jobs"].first())
    best = known[known["sequence_jobs"] == length].reset_index()
    found = [
        {
            **row,
            "setting": setting,
            "source": shown[row["artefact"]].frame.loc[int(row["row"])] if row["artefact"] in shown else None,
            "unlearned": str(row["learned"]).startswith("no"),
        }
        for row, setting in zip(best.to_dict("records"), _settings(best), strict=True)
    ]
    return found, frame[absent].to_dict("records")


def _settings(rows: pd.DataFrame) -> pd.Series:
    """` (Cluster 1, tuned)`: what tells each row from others of its claim; "" of the only one."""
    found = pd.Series("", rows.index)
    for _, same in rows.groupby("key"):
        differ = {c: "seed " if c == "seed" else "" for c in (*SHOWN, "against") if same[c].nunique() > 1}
        for i, row in same[list(differ)].iterrows():
            found[i] = f" ({', '.join(before + show(row[c]) for c, before in differ.items())})" if differ else ""
    return found


OUTCOMES = {
    "Better than its base policy": ("shows", ("better",)),
    "Better than a random order": ("shows_random", ("better",)),
    "Better than the strongest heuristic": ("shows_strong", ("better",)),
    "Worse than the strongest heuristic": ("shows_strong", ("worse",)),
    "The paper’s figure holds or is matched": ("verdict", ("matches", "holds")),
}
"""Possible outcomes of a comparison → the column of a study's table that has it, and its words for it."""
NAIVE_SETTING = ["trace_title", "policy", *(c for c in SETTINGS if c not in (*PRO, "seed"))]
"""Columns in which the variants of one setting agree."""
UP_TO = "Abstract"
"""The section with the paper's headlines, which repeat the best of its other claims."""
IN_SUMMARY = ("Recommendation", "RLTune", "What it learned", "Simulated and recorded")
"""Topics of a what-if analysis that stand in the summary."""


def comparisons(shown: dict[str, Saved]) -> Rows:
    """Study → the best measured rows of its table; the index is that of its CSV."""
    frames = {study: shown[study.numbers].frame for study in STUDIES if study.numbers in shown}
    return {study: best_measured(frame) for study, frame in frames.items() if len(frame)}


def scores(rows: Rows) -> dict[str, list[dict[str, int] | None]]:
    """Study's title → how many of its comparisons had each of OUTCOMES; None where nothing was compared."""
    return {s.title: [score({s: frame}, *outcome) for outcome in OUTCOMES.values()] for s, frame in rows.items()}


def score(rows: Rows, column: str, words: tuple[str, ...]) -> dict[str, int] | None:
    """``hits`` among the ``of`` comparisons that were measured and have enough windows for a verdict."""
    shows = column_of(rows, column)
    known = shows[shows.notna() & ~shows.isin(["", TOO_FEW])]
    if known.empty:
        return None
    return {"hits": int(known.isin(words).sum()), "of": len(known)}


def over_both(rows: Rows) -> dict[str, int]:
    """Of the comparisons with a verdict, in how many the agent is better than both base policy and random order, and in
    how many worse than either."""
    shows = pd.concat([column_of(rows, "shows"), column_of(rows, "shows_random")], axis=1)
    shows = shows[~(shows.isna() | shows.isin(["", TOO_FEW])).any(axis=1)]
    yes, no = (shows == "better").all(axis=1), (shows == "worse").any(axis=1)
    return {"yes": int(yes.sum()), "no": int(no.sum()), "of": len(shows)}


def facts(run: Run, shown: dict[str, Saved], rows: Rows, claimed: list[Claim]) -> dict[str, Any]:
    """The facts in the sentences of the summary."""
    names = dict.fromkeys(c.trace for c in run.config.cells())
    single = [c for c in claimed if c["where"] != UP_TO]
    verdicts = {word: sum(c["verdict"] == word for c in single) for word in (MATCHES, HOLDS, UNDECIDED, FAILS)}
    verdicts[UNDECIDED] = len(single) - verdicts[MATCHES] - verdicts[HOLDS] - verdicts[FAILS]
    learned = column_of(rows, "learned")
    return {
        "agents": len(run.config.cells()),
        "kinds": by_label(run.traces[name] for name in names),
        "measured": " or ".join(show(n, "int") for n in sorted({n for r in rows.values() for n in r["sequence_jobs"]})),
        "single": single,
        "verdicts": verdicts,
        "scores": {name: score(rows, *outcome) for name, outcome in OUTCOMES.items()},
        "over_both": over_both(rows),
        "idle": int(learned.astype(str).str.startswith("no").sum()),
        "trained": len(learned),
        "heuristics": from_to(column_of(rows, "heuristics")),
        **_others(shown),
        "whatif": whatif_sentences(shown),
    }


def _others(shown: dict[str, Saved]) -> dict[str, Any]:
    """What pro gains over the naive variants, a row a setting, notes on GPU types, and the tables of loads and costs; None
    where missing."""
    found: dict[str, Any] = {name: shown[name].frame if name in shown else None for name in ("loads", "costs")}
    found |= {"naive": None, "gpu_types": None}
    if "gpu-types-numbers" in shown:
        saved = shown["gpu-types-numbers"]
        found["gpu_types"] = saved.artefact.notes[: saved.frame["workload"].nunique()]
    if "fig10-numbers" in shown and len(frame := shown["fig10-numbers"].frame):
        rows = best_measured(frame)
        measured = rows["pro_over_low"].notna() & (rows["windows"] >= FEWEST)
        naive = rows[rows["variant"].str.startswith("naive") & measured]
        least_and_most = {"pro_over_low": "min", "pro_over_high": "max"}
        found["naive"] = naive.groupby(NAIVE_SETTING, dropna=False).agg(least_and_most) if len(naive) else None
    return found


def whatif_sentences(shown: dict[str, Saved]) -> dict[str, str]:
    """Topic → sentence of the recommendation; empty where the analysis is missing."""
    if "whatif-recommendation" not in shown:
        return {}
    frame = shown["whatif-recommendation"].frame
    return dict(frame.loc[frame["topic"].isin(IN_SUMMARY), ["topic", "text"]].itertuples(index=False))
