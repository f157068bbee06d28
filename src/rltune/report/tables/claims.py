"""Every improvement that the paper states, with this run's result and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.artefacts import describe
from rltune.report.common import NAN, best_measured, policy_title
from rltune.report.paper import PaperResults
from rltune.report.studies import JCT, PAPER_POLICY, STUDIES, UTILISATION, WAIT, Study
from rltune.report.tables.ablation import figure_key
from rltune.report.verdict import ABSENT, HOLDS, MATCHES, verdict

HEADLINES: dict[str, Study] = {"wait": WAIT, "jct": JCT, "utilisation": UTILISATION}
"""Key of an entry of the abstract → where its counterpart is sought."""
ON_SLURM = {"makespan": "Shorter makespan", "utilisation": UTILISATION.less, "wait": WAIT.less}
"""Key of an entry of Section 5.6 → the claim."""
STUDY_OF = {study.paper: study for study in STUDIES}
POLICY_OF = {theirs: ours for ours, theirs in PAPER_POLICY.items()}
SHOWN = {"preset": "Training preset", "estimate": "Run-time estimates", "seed": "Seeds"}
COPIED = ("trace_title", *SHOWN, "sequence_jobs", "windows", "data")
"""Columns of a comparison that its claim has too."""
Row = dict[str, Any]


def claims(
    tables: Mapping[str, pd.DataFrame], variants: pd.DataFrame, paper: PaperResults
) -> tuple[Artefact, pd.DataFrame]:
    """One row per relative improvement of the paper × setting of ours × window length; one without ours if none fits.

    ``tables``: id → frame, of the studies' tables and of `table7`, `fig17-numbers` and `deployment-numbers`, as far as
    the run has them; ``variants``: frame of `tables.ablation`, which may be empty. Columns: `claim` in plain words,
    `where` in the paper, `paper` its figure, `ours` with `low` and `high` (all fractions), COPIED, `verdict`, and
    `artefact` and `row`: the id of the table it is from, and which row of its CSV, from 0.
    """
    tables = {**tables, "fig10-numbers": variants}
    rows: list[Row] = []
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
            absent = {"ours": NAN, "low": NAN, "high": NAN, **dict.fromkeys(COPIED), "verdict": ABSENT}
            absent |= {"choice": "", "learned": "", "artefact": "", "row": None}
            rows += [claim | ours for ours in _found(name, key, entry.value, tables) or [absent]]
    frame = pd.DataFrame(rows)
    frame = frame.assign(sort=frame["verdict"] == ABSENT).sort_values("sort", kind="stable", ignore_index=True)
    frame = frame.drop(columns="sort").astype({"sequence_jobs": "Int64", "windows": "Int64", "row": "Int64"})
    there = frame[frame["verdict"] != ABSENT]
    single = there[~there["key"].str.startswith("abstract: ")]  # “up to” repeats one of the others
    counts = single["verdict"].replace("", "no interval").value_counts()
    held = single[single["verdict"].isin([MATCHES, HOLDS])]
    return describe(
        "claims",
        frame,
        rows=there,
        counts=", ".join(f"{word}: {n}" for word, n in sorted(counts.items())),
        absent=len(frame) - len(there),
        held=len(held),
        unlearned=int(held["learned"].str.startswith("no").sum()),
        chose=int((held["choice"] != "").sum()),
        settings={c: Column(title) for c, title in SHOWN.items() if there[c].nunique() > 1},
        has_choice=there["choice"].any(),
    ), frame


def _found(name: str, key: str, printed: float, tables: Mapping[str, pd.DataFrame]) -> list[Row]:
    """Our counterparts of one entry of the paper."""
    parts, study = key.split("."), STUDY_OF.get(name)
    if name == "abstract" and key in HEADLINES:
        return _headline(printed, HEADLINES[key], tables)
    if name == "table7":
        return _transferred(parts, tables.get("table7")) or _diagonal(printed, parts, tables.get(WAIT.numbers))
    if name == "fig17" and "fig17-numbers" in tables:
        frame = tables["fig17-numbers"]
        return _rows("fig17-numbers", frame[frame["paper_improvement"].notna() & (frame["paper_trace"] == parts[0])])
    if name == "fig18" and "deployment-numbers" in tables:
        frame = tables["deployment-numbers"]
        both = (frame["ours"] == "rltune") & (frame["theirs"] == "slurm") & (frame["measure"] == key)
        return _rows("deployment-numbers", frame[both], "gain")
    if name == "fig10" and len(frame := tables["fig10-numbers"]):
        mine = [".".join(figure_key(row)) == key for _, row in frame.iterrows()]
        return _rows(
            "fig10-numbers", frame[pd.Series(mine, frame.index) & frame["paper"].notna()], "pro_over", "pro_over_"
        )
    if study is not None and len(frame := tables.get(study.numbers, pd.DataFrame())):
        mine = [
            f"{row['paper_trace']}.{PAPER_POLICY.get(row['policy'], row['policy'])}.{study.metric}" == key
            for _, row in frame.iterrows()
        ]
        return _rows(study.numbers, frame[pd.Series(mine, frame.index) & frame["paper"].notna()])
    return []


def _headline(printed: float, study: Study, tables: Mapping[str, pd.DataFrame]) -> list[Row]:
    """The best of any comparable setting, as the abstract's “up to” has it."""
    frame = best_measured(tables.get(study.numbers, pd.DataFrame()))
    if not len(frame):
        return []
    mine = (frame["paper_trace"].fillna("") != "") & (frame["backfill"] == "none") & (frame["metric"] == study.metric)
    fitting = frame[mine & frame["improvement"].notna()]
    return _again(printed, study.numbers, fitting.nlargest(1, "improvement"))


def _transferred(parts: list[str], table7: pd.DataFrame | None) -> list[Row]:
    """Agents trained with one base policy and evaluated against another, or the same, from our own Table 7."""
    trace, trained, tested, _ = parts
    if table7 is None or not {"paper_trace", f"{tested}_paper"} <= set(table7):
        return []
    rows = table7[(table7["paper_trace"] == trace) & (table7["policy"] == trained) & table7[f"{tested}_paper"].notna()]
    return _rows("table7", rows.rename(columns={f"{tested}_verdict": "verdict"}), tested, f"{tested}_")


def _diagonal(printed: float, parts: list[str], frame: pd.DataFrame | None) -> list[Row]:
    """Agents evaluated against the base policy they were trained with."""
    trace, trained, tested, metric = parts
    if trained != tested or frame is None:
        return []
    mine = (frame["paper_trace"] == trace) & (frame["policy"] == tested) & (frame["metric"] == metric)
    return _again(printed, WAIT.numbers, frame[mine & (frame["backfill"] == "none")])


def _again(printed: float, artefact: str, rows: pd.DataFrame) -> list[Row]:
    """The same with the verdict on another figure of the paper than the table's own."""
    return [
        row | {"verdict": verdict(printed, row["low"], row["high"], int(row["windows"]))}
        for row in _rows(artefact, rows)
    ]


def _rows(artefact: str, rows: pd.DataFrame, value: str = "improvement", prefix: str = "") -> list[Row]:
    """Rows of a table of ours as rows of this one."""
    return [
        {
            **{"ours": row[value], "low": row[f"{prefix}low"], "high": row[f"{prefix}high"]},
            **{k: row.get(k) for k in COPIED},
            "verdict": row["verdict"],
            **{k: row.get(k) or "" for k in ("choice", "learned")},
            "artefact": artefact,
            "row": row.name,
        }
        for _, row in rows.iterrows()
    ]


def _claim(name: str, key: str, title: str) -> str:
    """An entry of the paper in words."""
    parts = key.split(".")
    if name in STUDY_OF:
        return f"{STUDY_OF[name].less} than {_policy(parts[1])} on {parts[0]}"
    if name == "fig10":
        return f"Lower slowdown of pro than of naive RLTune on {parts[0]}, {_policy(parts[1])} as base policy"
    if name == "abstract" and key in HEADLINES:
        return f"{HEADLINES[key].less} than the base policy, up to"
    if name == "table7":
        return f"Less wait than {_policy(parts[2])} on {parts[0]}, trained with {_policy(parts[1])}"
    if name == "fig17":
        return f"{JCT.less} than QSSF on {parts[0]}, one long sequence"
    if name == "fig18" and key in ON_SLURM:
        return f"{ON_SLURM[key]} than Slurm on a cluster of Slurm daemons"
    return f"{title}: {' '.join(parts)}"


def _policy(name: str) -> str:
    return policy_title(POLICY_OF.get(name, name))
