"""Every improvement that the paper states, with this run's result and the verdict."""

from collections.abc import Iterator, Mapping

import pandas as pd

from rltune.metrics import METRICS
from rltune.report.artefact import Column, Table
from rltune.report.artefacts import describe
from rltune.report.common import best_measured, where
from rltune.report.paper import PaperResults
from rltune.report.studies import PAPER_POLICY, STUDIES, WAIT
from rltune.report.style import policy_title
from rltune.report.tables.ablation import figure_key
from rltune.report.tables.peers import AGAINST, METRIC_TITLE, UNLEARNED
from rltune.report.templates import fill
from rltune.report.verdict import ABSENT, HOLDS, MATCHES, TOO_SLOW, verdict

HEADLINES = ("wait", "jct", "utilisation")
"""Metrics of the improvements in the abstract and in Section 7."""
RL_SCHEDULERS = ("RLScheduler", "SchedInspector")
METRIC_OF = {title: metric for metric, title in METRIC_TITLE.items()}
STUDY_OF = {study.paper: study for study in STUDIES if study.paper}
OF_STUDY = {study.numbers: study for study in STUDY_OF.values()}
POLICY_OF = {theirs: ours for ours, theirs in PAPER_POLICY.items()}
SHOWN = {"cluster_title": "Cluster", "preset": "Training preset", "estimate": "Run-time estimates", "seed": "Seeds"}
COPIED = ("trace_title", *SHOWN, "sequence_jobs", "windows", "data")
"""Columns of a comparison that its claim has too."""
COLUMNS = ("key", "ours", "low", "high", *COPIED, "verdict", "choice", "learned", "against", "artefact", "row")


def claims(tables: Mapping[str, pd.DataFrame], variants: pd.DataFrame, paper: PaperResults) -> Table:
    """One row per relative improvement of the paper × setting of ours × window length; one without ours if none fits.

    ``tables``: id → frame, of the studies' tables and of `table7`, `table8`, `fig17-numbers`, `table9-numbers`
    and `deployment-numbers`, as far as the run has them; ``variants``: frame of `tables.ablation`, which may be empty.
    Columns: `claim` in plain words, `where` in the paper, `paper` its figure, `ours` with `low` and `high` (all
    fractions), COPIED, `verdict`, `against` (which of several schedulers, where the claim does not say it), and `artefact` and `row`: the id of the table it is from, and which row of its CSV,
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
    ours = _ours({name: frame for name, frame in {**tables, "fig10-numbers": variants}.items() if len(frame)}, paper)
    frame = pd.DataFrame(printed).merge(ours, on="key", how="left")
    frame["verdict"] = [_verdict(row) for _, row in frame.iterrows()]
    frame = frame.sort_values("verdict", key=lambda v: v == ABSENT, kind="stable", ignore_index=True)
    frame = frame.astype({"sequence_jobs": "Int64", "windows": "Int64", "row": "Int64"})
    frame = frame.fillna({"choice": "", "learned": "", "against": "", "artefact": ""})
    compared = frame[frame["verdict"] != ABSENT]
    single = compared[~compared["key"].str.startswith("abstract: ")]  # “up to” repeats one of the others
    confirmed = single[single["verdict"].isin([MATCHES, HOLDS]) & (single["learned"] != "")]
    return describe(
        "claims",
        frame,
        rows=compared,
        counts=single["verdict"].replace("", "no interval").value_counts().to_dict(),
        absent=len(frame) - len(compared),
        confirmed=confirmed,
        settings={c: Column(title) for c, title in SHOWN.items() if compared[c].nunique() > 1},
    ), frame


def _verdict(row: pd.Series) -> str:
    if pd.isna(row["row"]):
        return ABSENT
    return TOO_SLOW if row["verdict"] == TOO_SLOW else verdict(row["paper"], row["low"], row["high"], row["windows"])


def _ours(tables: Mapping[str, pd.DataFrame], paper: PaperResults) -> pd.DataFrame:
    """Our counterparts of the paper's entries, by the key of these."""
    columns = ["cell", "learned", "choice"]  # of an agent, where a table does not say it
    agents = [frame[columns] for frame in tables.values() if set(columns) <= set(frame)]
    agent = pd.concat([pd.DataFrame(columns=columns), *agents]).drop_duplicates("cell").set_index("cell")
    learned, choice = (agent[column].astype("str").str for column in columns[1:])
    agent = agent[~(learned.endswith(" seeds") | choice.contains(";"))]  # which of them is not said
    found = [rows for name, frame in tables.items() for rows in _counterparts(name, frame, agent, paper) if len(rows)]
    if WAIT.numbers in tables:
        # without a table 7 its diagonal: agents against the base policy that they were trained with
        waits = where(tables[WAIT.numbers], metric="wait", backfill="none")
        key = _key("table7", waits["paper_trace"], waits["policy"], waits["policy"], "wait")
        known = {key for rows in found for key in rows["key"]}
        found.append(_rows(WAIT.numbers, waits[~key.isin(known)], key))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=COLUMNS)


def _counterparts(name: str, frame: pd.DataFrame, agent: pd.DataFrame, paper: PaperResults) -> Iterator[pd.DataFrame]:
    """Counterparts in one of our tables. ``agent``: by cell, whether its agent learned, and its choice."""
    if name in OF_STUDY:
        study = OF_STUDY[name]
        key = _key(study.paper, frame["paper_trace"], frame["policy"].replace(PAPER_POLICY), study.metric)
        yield _rows(name, frame[frame["paper"].notna()], key)
        if study.metric in HEADLINES:  # the best of all comparable settings, as in the abstract’s “up to”
            rows = where(best_measured(frame), backfill="none", metric=study.metric)
            rows = rows[rows["paper_trace"].isin(paper.gpu_traces)].dropna(subset=["improvement"])
            yield _rows(name, rows.nlargest(1, "improvement"), f"abstract: {study.metric}")
    elif name == "fig10-numbers":
        key = "fig10: " + pd.Series([".".join(figure_key(row)) for _, row in frame.iterrows()], frame.index)
        yield _rows(name, frame[frame["paper"].notna()], key, "pro_over", "pro_over_")
    elif name == "fig17-numbers":
        known = frame[frame["paper_improvement"].notna()].join(agent, on="cell")
        yield _rows(name, known, _key("fig17", known["paper_trace"], "qssf", "jct"))
    elif name == "table8":
        own = frame["paper_improvement"].notna() & (frame["measure"].map(METRIC_OF) == frame["metric"])
        known = where(frame[own], against=AGAINST["qssf"]).join(agent, on="cell")
        yield _rows(name, known, _key(name, known["paper_trace"], "qssf", known["metric"]))
    elif name == "table9-numbers":
        known = frame["against"].str.startswith(RL_SCHEDULERS) & frame["paper_trace"].isin(paper.gpu_traces)
        others = where(frame[known], backfill="none").join(agent, on="cell")
        rivals = others[~others["against"].str.endswith(UNLEARNED)]  # less wait than the start of another is no finding
        for headline in HEADLINES:
            best = where(rivals, measure=METRIC_TITLE[headline]).nlargest(1, "improvement")
            yield _rows(name, best, f"section7: {headline}").assign(against=best["against"])
        one = others[others["against"].str.startswith(RL_SCHEDULERS[0])]
        key = _key("table9", one["paper_trace"], "rlscheduler", one["measure"].map(METRIC_OF))
        yield _rows(name, one, key).assign(against=one["against"])
    elif name == "deployment-numbers":
        both = where(frame, ours="rltune", theirs="slurm")
        yield _rows(name, both, "fig18: " + both["measure"], "gain")
    elif name == "table7":
        for tested in (c.removesuffix("_paper") for c in frame if c.endswith("_paper")):
            key = _key(name, frame["paper_trace"], frame["policy"], tested, "wait")
            yield _rows(name, frame[frame[f"{tested}_paper"].notna()], key, tested, f"{tested}_")


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
    return found.assign(key=pd.Series(key, rows.index), **numbers, against="", artefact=artefact, row=rows.index)


def _claim(name: str, key: str, title: str) -> str:
    """An entry of the paper in words (templates/claim.j2)."""
    parts = key.split(".")
    policies = [policy_title(POLICY_OF.get(part, part)) for part in parts]
    less = METRICS[parts[-1]].improvement if parts[-1] in METRICS else ""
    return fill("claim.j2", name=name, key=key, title=title, parts=parts, policies=policies, less=less)
