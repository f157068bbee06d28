"""Every improvement that the paper states, with this run's result and the verdict."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from rltune.report.artefact import Column, Table
from rltune.report.artefacts import describe
from rltune.report.common import best_measured, policy_title
from rltune.report.paper import PaperResults
from rltune.report.studies import JCT, PAPER_POLICY, STUDIES, UTILISATION, WAIT, Study
from rltune.report.tables.ablation import figure_key
from rltune.report.tables.peers import METRICS
from rltune.report.verdict import ABSENT, HOLDS, MATCHES, TOO_SLOW, verdict

HEADLINES: dict[str, Study] = {"wait": WAIT, "jct": JCT, "utilisation": UTILISATION}
"""Key of an entry of the abstract → where its counterpart is sought."""
RL_SCHEDULERS = ("RLScheduler", "SchedInspector")
ON_SLURM = {"makespan": "Shorter makespan", "utilisation": UTILISATION.less, "wait": WAIT.less}
"""Key of an entry of Section 5.6 → the claim."""
STUDY_OF = {study.paper: study for study in STUDIES}
POLICY_OF = {theirs: ours for ours, theirs in PAPER_POLICY.items()}
SHOWN = {"preset": "Training preset", "estimate": "Run-time estimates", "seed": "Seeds"}
COPIED = ("trace_title", *SHOWN, "sequence_jobs", "windows", "data")
"""Columns of a comparison that its claim has too."""


def claims(tables: Mapping[str, pd.DataFrame], variants: pd.DataFrame, paper: PaperResults) -> Table:
    """One row per relative improvement of the paper × setting of ours × window length; one without ours if none fits.

    ``tables``: id → frame, of the studies' tables and of `table7`, `fig17-numbers`, `table9-numbers` and
    `deployment-numbers`, as far as the run has them; ``variants``: frame of `tables.ablation`, which may be empty.
    Columns: `claim` in plain words, `where` in the paper, `paper` its figure, `ours` with `low` and `high` (all
    fractions), COPIED, `verdict`, and `artefact` and `row`: the id of the table it is from, and which row of its CSV,
    from 0.
    """
    printed = [
        {
            "claim": _claim(name, key, artefact.title),
            "where": entry.where or artefact.where,
            "paper": entry.value,
            "key": f"{name}: {key}",
        }
        for name, artefact in paper.artefacts.items()
        for key, entry in artefact.entries.items()
        if entry.value is not None and entry.unit == "fraction"
    ]
    ours = _ours({name: frame for name, frame in {**tables, "fig10-numbers": variants}.items() if len(frame)})
    frame = pd.DataFrame(printed).merge(ours, on="key", how="left")
    frame["verdict"] = [_verdict(row) for _, row in frame.iterrows()]
    frame = frame.sort_values("verdict", key=lambda v: v == ABSENT, kind="stable", ignore_index=True)
    frame = frame.astype({"sequence_jobs": "Int64", "windows": "Int64", "row": "Int64"})
    frame = frame.fillna({"choice": "", "learned": "", "artefact": ""})
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
    ), frame


def _verdict(row: pd.Series) -> str:
    if pd.isna(row["row"]):
        return ABSENT
    return TOO_SLOW if row["verdict"] == TOO_SLOW else verdict(row["paper"], row["low"], row["high"], row["windows"])


def _ours(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Our counterparts of the paper's entries, by the key of these."""
    found = [
        pd.DataFrame(columns=["key", "ours", "low", "high", *COPIED, "verdict", "choice", "learned", "artefact", "row"])
    ]
    columns = ["cell", "learned", "choice"]  # of an agent, where a table does not say it
    agents = [frame[columns] for frame in tables.values() if set(columns) <= set(frame)]
    agent = pd.concat([pd.DataFrame(columns=columns), *agents]).drop_duplicates("cell").set_index("cell")
    for study in STUDIES:
        if study.paper and study.numbers in tables:
            frame = tables[study.numbers]
            key = _key(study.paper, frame["paper_trace"], frame["policy"].replace(PAPER_POLICY), study.metric)
            found.append(_rows(study.numbers, frame[frame["paper"].notna()], key))
    for headline, study in HEADLINES.items():  # the best of any comparable setting, as the abstract’s “up to” has it
        if study.numbers in tables:
            frame = best_measured(tables[study.numbers])
            mine = (
                (frame["paper_trace"].fillna("") != "")
                & (frame["backfill"] == "none")
                & (frame["metric"] == study.metric)
            )
            best = frame[mine & frame["improvement"].notna()].nlargest(1, "improvement")
            found.append(_rows(study.numbers, best, f"abstract: {headline}"))
    if "fig10-numbers" in tables:
        frame = tables["fig10-numbers"]
        key = "fig10: " + pd.Series([".".join(figure_key(row)) for _, row in frame.iterrows()], frame.index)
        found.append(_rows("fig10-numbers", frame[frame["paper"].notna()], key, "pro_over", "pro_over_"))
    if "fig17-numbers" in tables:
        frame = tables["fig17-numbers"].join(agent, on="cell")
        known = frame[frame["paper_improvement"].notna()]
        found.append(_rows("fig17-numbers", known, _key("fig17", frame["paper_trace"], "qssf", "jct")))
    if "table9-numbers" in tables:
        frame = tables["table9-numbers"].join(agent, on="cell")
        frame = frame[frame["against"].str.startswith(RL_SCHEDULERS)]
        for headline in HEADLINES:
            best = frame[frame["measure"] == METRICS[headline]].nlargest(1, "improvement")
            found.append(_rows("table9-numbers", best, f"section7: {headline}"))
    if "deployment-numbers" in tables:
        frame = tables["deployment-numbers"]
        both = (frame["ours"] == "rltune") & (frame["theirs"] == "slurm")
        found.append(_rows("deployment-numbers", frame[both], "fig18: " + frame["measure"], "gain"))
    if "table7" in tables:
        frame = tables["table7"]
        for tested in (c.removesuffix("_paper") for c in frame if c.endswith("_paper")):
            key = _key("table7", frame["paper_trace"], frame["policy"], tested, "wait")
            known = frame[frame[f"{tested}_paper"].notna()]
            found.append(_rows("table7", known, key, tested, f"{tested}_"))
    done = pd.concat([part for part in found if len(part)] or found, ignore_index=True)
    if WAIT.numbers not in tables:
        return done
    # without a table 7 its diagonal: agents against the base policy that they were trained with
    frame = tables[WAIT.numbers]
    mine = frame[(frame["metric"] == "wait") & (frame["backfill"] == "none")]
    diagonal = _rows(WAIT.numbers, mine, _key("table7", mine["paper_trace"], mine["policy"], mine["policy"], "wait"))
    return pd.concat([done, diagonal[~diagonal["key"].isin(done["key"])]], ignore_index=True)


def _key(name: str, trace: pd.Series, *parts: pd.Series | str) -> pd.Series:
    """Keys of the paper's entries, `name: trace.part.part`. A column without any text was read back as NaN."""
    key = f"{name}: " + trace.astype("str")
    for part in parts:
        key = key + "." + part
    return key


def _rows(
    artefact: str, rows: pd.DataFrame, key: pd.Series | str, value: str = "improvement", prefix: str = ""
) -> pd.DataFrame:
    """Rows of a table of ours as rows of this one."""
    found = rows.reindex(columns=[*COPIED, "verdict", "choice", "learned"]).astype({"seed": object})
    numbers = {"ours": rows[value], "low": rows[f"{prefix}low"], "high": rows[f"{prefix}high"]}
    return found.assign(key=pd.Series(key, rows.index), **numbers, artefact=artefact, row=rows.index)


def _claim(name: str, key: str, title: str) -> str:
    """An entry of the paper in words."""
    parts = key.split(".")
    if name in STUDY_OF:
        return f"{STUDY_OF[name].less} than {_policy(parts[1])} on {parts[0]}"
    if name == "fig10":
        return f"Lower slowdown of pro than of naive RLTune on {parts[0]}, {_policy(parts[1])} as base policy"
    if name == "abstract" and key in HEADLINES:
        return f"{HEADLINES[key].less} than the base policy, up to"
    if name == "section7" and key in HEADLINES:
        return f"{HEADLINES[key].less} than another RL scheduler"
    if name == "table7":
        return f"Less wait than {_policy(parts[2])} on {parts[0]}, trained with {_policy(parts[1])}"
    if name == "fig17":
        return f"{JCT.less} than QSSF on {parts[0]}, one long sequence"
    if name == "fig18" and key in ON_SLURM:
        return f"{ON_SLURM[key]} than Slurm on a cluster of Slurm daemons"
    return f"{title}: {' '.join(parts)}"


def _policy(name: str) -> str:
    return policy_title(POLICY_OF.get(name, name))
