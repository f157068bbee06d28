"""Every improvement the paper prints, with what this run measured in its place and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.paper import PaperResults
from rltune.report.studies import JCT, PAPER_POLICY, STUDIES, UTILISATION, WAIT, Study
from rltune.report.style import POLICY_TITLE
from rltune.report.tables.ablation import figure_key
from rltune.report.tables.common import best_measured, data_labels
from rltune.report.verdict import ABSENT, HOLDS, MATCHES, RULE, verdict

NAN = float("nan")
HEADLINES: dict[str, Study] = {"wait": WAIT, "jct": JCT, "utilisation": UTILISATION}
"""Key of an entry of the abstract → where its counterpart is sought."""
ON_SLURM = {"makespan": "Shorter makespan", "utilisation": UTILISATION.less, "wait": WAIT.less}
"""Key of an entry of Section 5.6 → the claim."""
STUDY_OF = {study.paper: study for study in STUDIES}
POLICY_OF = {theirs: ours for ours, theirs in PAPER_POLICY.items()}
SHOWN = ("trace_title", "preset", "estimate", "seed", "sequence_jobs", "windows", "data")
"""What of a comparison is told of it."""


def verdicts(
    numbers: Mapping[str, pd.DataFrame],
    variants: pd.DataFrame,
    paper: PaperResults,
    *,
    table7: pd.DataFrame | None = None,
    fig17: pd.DataFrame | None = None,
    deployment: pd.DataFrame | None = None,
    source: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """One row a relative improvement of the paper × setting of ours × window length; one without ours where none fits.

    ``numbers``: id → frame of `tables.comparison`, of the studies there are; ``variants``: frame of `tables.ablation`,
    which may be empty; ``table7``, ``fig17`` and ``deployment``: frames of `tables.table7`, `tables.fig17_numbers` and
    `tables.deployment_numbers`, where the run has them. Columns: `claim` in plain words, `where` in the paper, `paper`
    its figure, `ours` with `low` and `high` (all fractions), what of ours it is (`SHOWN`), `verdict`, and `artefact` and
    `row`: the id of the table it is from, and which row of its CSV, from 0.
    """
    rows: list[dict[str, Any]] = []
    for name, artefact in paper.artefacts.items():
        for key, entry in artefact.entries.items():
            if entry.value is None or entry.unit != "fraction":
                continue
            claim = {
                "claim": _claim(name, key, artefact.title),
                "where": entry.where or artefact.where,
                "paper": entry.value,
                "key": f"{name}: {key}",
            }
            found = _found(name, key, entry.value, numbers, variants, table7, fig17, deployment)
            rows += [claim | ours for ours in found] or [claim | _absent()]
    frame = pd.DataFrame(rows)
    frame = frame.assign(sort=frame["verdict"] == ABSENT).sort_values("sort", kind="stable", ignore_index=True)
    frame = frame.drop(columns="sort").astype({"sequence_jobs": "Int64", "windows": "Int64", "row": "Int64"})
    return _artefact(frame, source), frame


def _found(
    name: str,
    key: str,
    printed: float,
    numbers: Mapping[str, pd.DataFrame],
    variants: pd.DataFrame,
    table7: pd.DataFrame | None,
    fig17: pd.DataFrame | None,
    deployment: pd.DataFrame | None,
) -> list[dict[str, Any]]:
    """Our counterparts of one entry of the paper."""
    if name == "abstract" and key in HEADLINES:
        return _headline(printed, HEADLINES[key], numbers)
    if name == "table7":
        return _elsewhere(key, table7) or _at_home(printed, key, numbers.get(WAIT.numbers))
    if name == "fig17" and fig17 is not None:
        trace, _, _ = key.split(".")
        rows = fig17[fig17["paper_improvement"].notna() & (fig17["paper_trace"] == trace)]
        return [_ours(row, "fig17-numbers", ("improvement", "low", "high")) for _, row in rows.iterrows()]
    if name == "fig18" and deployment is not None:
        of_both = (deployment["ours"] == "rltune") & (deployment["theirs"] == "slurm")
        rows = deployment[of_both & (deployment["measure"] == key)]
        return [_ours(row, "deployment-numbers", ("gain", "low", "high")) for _, row in rows.iterrows()]
    if name == "fig10" and len(variants):
        own = pd.Series([".".join(figure_key(row)) == key for _, row in variants.iterrows()], index=variants.index)
        rows = variants[own & variants["paper"].notna()]
        return [
            _ours(row, "ablation-numbers", ("pro_over", "pro_over_low", "pro_over_high")) for _, row in rows.iterrows()
        ]
    study = STUDY_OF.get(name)
    if study is None or study.numbers not in numbers:
        return []
    frame = numbers[study.numbers]
    mine = [
        f"{row['paper_trace']}.{PAPER_POLICY.get(row['policy'], row['policy'])}.{study.metric}" == key
        for _, row in frame.iterrows()
    ]
    rows = frame[pd.Series(mine, index=frame.index, dtype=bool) & frame["paper"].notna()]
    return [_ours(row, study.numbers, ("improvement", "low", "high")) for _, row in rows.iterrows()]


def _headline(printed: float, study: Study, numbers: Mapping[str, pd.DataFrame]) -> list[dict[str, Any]]:
    """The most that any setting of the paper's kind gains, as the abstract's “up to” has it."""
    frame = best_measured(numbers.get(study.numbers, pd.DataFrame()))
    if not len(frame):
        return []
    fitting = frame[
        (frame["paper_trace"].fillna("") != "")
        & (frame["backfill"] == "none")
        & (frame["metric"] == study.metric)
        & frame["improvement"].notna()
    ]
    if not len(fitting):
        return []
    best = fitting.loc[fitting["improvement"].idxmax()]
    ours = _ours(best, study.numbers, ("improvement", "low", "high"))
    return [ours | {"verdict": verdict(printed, ours["low"], ours["high"], int(best["windows"]))}]


def _elsewhere(key: str, table7: pd.DataFrame | None) -> list[dict[str, Any]]:
    """Agents trained against one base policy and judged against another, or the same, as our own Table 7 has them."""
    trace, trained, tested, _ = key.split(".")
    if table7 is None or not {"paper_trace", f"{tested}_paper"} <= set(table7):
        return []
    rows = table7[(table7["paper_trace"] == trace) & (table7["policy"] == trained) & table7[f"{tested}_paper"].notna()]
    return [
        _ours(row.rename({f"{tested}_verdict": "verdict"}), "table7", (tested, f"{tested}_low", f"{tested}_high"))
        for _, row in rows.iterrows()
    ]


def _at_home(printed: float, key: str, frame: pd.DataFrame | None) -> list[dict[str, Any]]:
    """Agents judged against the very policy they were trained against: the diagonal of the table of transfer."""
    trace, trained, tested, metric = key.split(".")
    if trained != tested or frame is None:
        return []
    rows = frame[
        (frame["paper_trace"] == trace)
        & (frame["policy"] == tested)
        & (frame["metric"] == metric)
        & (frame["backfill"] == "none")
    ]
    return [
        _ours(row, WAIT.numbers, ("improvement", "low", "high"))
        | {"verdict": verdict(printed, row["low"], row["high"], int(row["windows"]))}
        for _, row in rows.iterrows()
    ]


def _ours(row: pd.Series, artefact: str, columns: tuple[str, str, str]) -> dict[str, Any]:
    value, low, high = (row[c] for c in columns)
    return {
        "ours": value,
        "low": low,
        "high": high,
        **{k: row.get(k) for k in SHOWN},
        "verdict": row["verdict"],
        "way": row.get("way") or "",
        "learned": row.get("learned") or "",
        "artefact": artefact,
        "row": row.name,
    }


def _absent() -> dict[str, Any]:
    return {
        "ours": NAN,
        "low": NAN,
        "high": NAN,
        **dict.fromkeys(SHOWN, None),
        "verdict": ABSENT,
        "way": "",
        "learned": "",
        "artefact": "",
        "row": None,
    }


def _claim(name: str, key: str, title: str) -> str:
    """An entry of the paper in words."""
    parts = key.split(".")
    if name in STUDY_OF:
        trace, policy, _ = parts
        return f"{STUDY_OF[name].less} than {_policy(policy)} on {trace}"
    if name == "fig10":
        return f"Lower slowdown of pro than of naive RLTune on {parts[0]}, {_policy(parts[1])} as base policy"
    if name == "abstract":
        return f"{HEADLINES[key].less} than the base policy, up to" if key in HEADLINES else f"{title}: {key}"
    if name == "table7":
        trace, trained, tested, _ = parts
        return f"Less wait than {_policy(tested)} on {trace}, trained against {_policy(trained)}"
    if name == "fig17":
        return f"{JCT.less} than QSSF on {parts[0]}, one long sequence"
    if name == "fig18" and key in ON_SLURM:
        return f"{ON_SLURM[key]} than Slurm on a cluster of its daemons"
    return f"{title}: {' '.join(parts)}"


def _policy(name: str) -> str:
    ours = POLICY_OF.get(name, name)
    return POLICY_TITLE.get(ours, ours)


def _artefact(frame: pd.DataFrame, source: str) -> Artefact:
    there = frame[frame["verdict"] != ABSENT]
    differ = [c for c in ("preset", "estimate", "seed") if there[c].nunique() > 1]
    single = there[~there["key"].str.startswith("abstract: ")]  # “up to” is one of the others again
    counts = single["verdict"].replace("", "no interval").value_counts()
    told = ", ".join(f"{word}: {n}" for word, n in sorted(counts.items()))
    absent = int((frame["verdict"] == ABSENT).sum())
    held = single[single["verdict"].isin([MATCHES, HOLDS])]
    unlearned = int(held["learned"].str.startswith("no").sum())
    chose = int((held["way"] != "").sum())
    titles = {"preset": "Training preset", "estimate": "Run-time estimates", "seed": "Seeds"}
    return Artefact(
        "verdicts",
        "table",
        "The paper’s claims and what this run found",
        caption="Every relative improvement that the paper prints (negative: worse), beside what was measured here in "
        "its place, with interval. "
        + (f"Verdicts: {told}; headlines, which repeat the best of the others, are not counted. " if told else "")
        + f"Claims without a counterpart: {absent}.",
        data=data_labels(there),
        source=source,
        columns={
            "claim": Column("Claim"),
            "where": Column("In the paper"),
            "paper": Column("Paper", "", "percent"),
            "ours": Column("Ours", "", "percent", "", "low", "high"),
            "verdict": Column("Verdict"),
            "trace_title": Column("Trace"),
            **{c: Column(titles[c]) for c in differ},
            "sequence_jobs": Column("Window", "jobs", "int"),
            "windows": Column("Windows", "", "int"),
            **(
                {"way": Column("Its own way", help="What the agent chose to do otherwise than its cell says.")}
                if there["way"].any()
                else {}
            ),
            "learned": Column(
                "Learned",
                help="Whether on validation windows it beats its base policy and a random "
                "order, and what it started from.",
            ),
            "data": Column("Data"),
            "artefact": Column("From"),
        },
        notes=tuple(
            n
            for n in (
                f"Verdicts: {RULE}",
                f"Of {len(held)} that hold or are matched, {unlearned} are of agents that learned nothing, and {chose} of "
                "agents that chose a heuristic’s order, or other rules than their base policy’s, to start from: those gains "
                "are that choice’s."
                if unlearned or chose
                else "",
                "A claim has a row for every length of windows and every way in which its agents were trained here. The "
                "verdict is on the very comparison that the paper makes, with a base policy that blocks: whether "
                "scheduling got better than simple heuristics is in the tables named on the right.",
                "“Up to” is the most of all settings here that are of the paper’s kind, at the best measured length: "
                "chosen in hindsight, so it flatters, here as there.",
                "Numbers of the paper that compare nothing with anything (its Tables 2, 4, 8 and 9, its costs) stand "
                "beside ours in tables of their own, where this run has them.",
            )
            if n
        ),
    )
