"""The deployment in tables (paper §5.6): RLTune against Slurm, every run, its overheads, and the simulator's accuracy."""

from collections.abc import Container, Mapping
from typing import Any

import numpy as np
import pandas as pd

from rltune.config.deployment import LEARNED, LONG_CYCLE_S, QOS, SHORT_S
from rltune.report.artefact import Table
from rltune.report.artefacts import describe
from rltune.report.common import holm_note, where, with_holm
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.style import policy_title
from rltune.report.templates import fill
from rltune.report.verdict import TOO_FEW, TOO_SLOW, direction, verdict

HOUR_S = 3600.0
MEASURES = {
    "makespan": "Makespan, h",
    "utilisation": "Utilisation, %",
    "wait": "Mean wait, s",
    "jct": "Mean JCT, s",
    "bsld": "Mean bounded slowdown",
}
IN_PAPER = ("makespan", "utilisation", "wait")
"""Measures that the paper prints a comparison of."""
SCALE = {"makespan": 1 / HOUR_S, "utilisation": 100.0}
TESTED = {"p": "p_holm"}
RULES = ("easy", "conservative")
SIMULATED = {"wait": "Mean wait", "makespan": "Makespan"}
"""Measures that are compared with the simulator's."""
WAITS = {"wait_s": "Mean", "wait_median_s": "Median", "wait_p95_s": "95th percentile", "wait_max_s": "Longest"}
TITLES = {
    "slurm": "Slurm",
    "slurm_fastest": "Slurm with the fastest type",
    "rltune": "RLTune",
    "rltune_types": "RLTune with types",
}
CLASS_TITLE = {"qos": "QOS", "partition": "partition", "asked_gpus": "GPUs"}
DIGITS = 8
"""Of a digest, as shown."""
Facts = Mapping[str, Any]


def long_title(scheduler: str) -> str:
    """`Slurm`, `RLTune`, `SAF, same controller`."""
    return TITLES.get(scheduler) or f"{policy_title(scheduler)}, same controller"


def short(scheduler: str) -> str:
    """`Slurm`, `RLTune`, `SAF`."""
    return TITLES.get(scheduler) or policy_title(scheduler)


def sizes_in(runs: pd.DataFrame) -> dict[int, str]:
    """GPUs of a job → column with the mean wait of such jobs, in a frame of per_run."""
    return {int(c.split("_")[1]): c for c in runs.columns if c.startswith("wait_") and c.endswith("_gpus_s")}


def pair_sentences(paired: pd.DataFrame) -> list[str]:
    """A sentence per pair of schedulers, on the means of the repetitions that both have. ``paired``: of
    rltune.evaluation.studies.deployment.paired_runs."""
    sentences = []
    for (ours, theirs), runs in paired.groupby(["ours", "theirs"], sort=False):
        x, y = (runs[runs["side"] == side].mean(numeric_only=True).to_dict() for side in ("ours", "theirs"))
        facts = {"ours": short(ours), "theirs": short(theirs), "count": runs["repetition"].nunique()}
        sentences.append(fill("deployment_pair.j2", x=x, y=y, sizes=sizes_in(runs), **facts))
    return sentences


def switch_advice(compared: pd.DataFrame, paired: pd.DataFrame, slow: Container[str] = ()) -> str:
    """Whether an operator would switch the controller on (the one that decides types, where it ran), in three sentences;
    "" without Slurm's own order. ``compared`` and ``paired``: as for :func:`deployment_numbers`; ``slow``: schedulers
    whose cycles are too long for a verdict."""
    compared = where(compared, theirs="slurm", measure="jct")
    compared = compared[compared["ours"].isin(LEARNED)]
    if not len(compared):
        return ""
    row = compared.sort_values("ours").iloc[-1]  # rltune_types after rltune
    runs = where(paired, ours=row["ours"], theirs="slurm")
    longest = runs.pivot(index="repetition", columns="side", values="wait_max_s")
    facts = {name: float(row[name]) for name in ("gain", "low", "high")}
    facts["late"] = row["ours"] in slow
    facts["few"] = direction(row["low"], row["high"], row["windows"]) == TOO_FEW
    ratio = (longest["ours"] / longest["theirs"]).mask((longest == 0).all(axis=1), 1.0)
    facts["ratio"] = float("nan") if np.isinf(ratio).any() else float(ratio.max())
    return fill("deployment_switch.j2", ours=short(row["ours"]), **facts)


def deployment_numbers(
    compared: pd.DataFrame,
    paired: pd.DataFrame,
    machinery: pd.DataFrame,
    facts: Facts,
    cell: pd.Series,
    paper: PaperResults,
    block_jobs: int,
    learned: str = "",
) -> Table:
    """The table `deployment-numbers`: one row per comparison × measure, with the paper's figure and the verdict.

    ``compared`` and ``paired`` as rltune.evaluation.studies.deployment.compare and paired_runs give them, ``machinery`` as
    rltune.evaluation.studies.deployment_machinery does; ``cell``: the row of rltune.report.read.cells of the agent; ``learned``:
    rltune.report.tables.comparison.learned_in of it. Where a scheduler's mean cycle is over LONG_CYCLE_S in any run there
    is no verdict.
    """
    slowest = machinery.groupby("scheduler")["cycle_s"].max()
    slow = slowest[slowest > LONG_CYCLE_S]
    late = compared["ours"].isin(slow.index) | compared["theirs"].isin(slow.index)
    scale = compared["measure"].map(SCALE).fillna(1.0)
    in_paper = (compared["ours"] == "rltune") & (compared["theirs"] == "slurm")
    printed = compared["measure"].where(in_paper).map({m: paper.value("fig18", m) for m in IN_PAPER})
    intervals = compared[["low", "high", "windows"]]
    verdicts = intervals.assign(paper=printed).apply(lambda row: verdict(**row), axis=1)
    shows = intervals.apply(lambda row: direction(**row), axis=1)
    frame = with_holm(compared.assign(p=compared["p"].where(~late)), TESTED).assign(
        **{f"{side}_title": compared[side].map(long_title) for side in ("ours", "theirs")},
        measure_title=compared["measure"].map(MEASURES),
        **{f"{side}_mean": compared[f"{side}_mean"] * scale for side in ("ours", "theirs")},
        paper=printed,
        verdict=verdicts.mask(late & printed.notna(), TOO_SLOW),
        shows=shows.mask(late, TOO_SLOW),
        sequence_jobs=facts["jobs"],
        trace_title=facts["trace"],
        **{k: cell[k] for k in ("preset", "estimate", "seed")},
        data=facts["data"],
        learned=learned,
    )
    repetitions = int(paired["repetition"].nunique())
    return describe(
        "deployment-numbers",
        frame,
        paper,
        facts=facts,
        cell=cell,
        block_jobs=block_jobs,
        switch=switch_advice(compared, paired, slow.index),
        changes=pair_sentences(paired),
        repetitions=repetitions,
        slow=[f"{short(s)} {show(v, 'seconds')} s" for s, v in slow.items()] if late.any() else [],
        long_cycle_s=LONG_CYCLE_S,
        too_slow=TOO_SLOW,
        busy=float((machinery["cycle_s"] / machinery["gap_s"]).mean()),
        holm=holm_note(frame, TESTED, "over the others"),
    ), frame


def deployment_runs(runs: pd.DataFrame, simulated: pd.DataFrame, facts: Facts, missing: str) -> Table:
    """The table `deployment-runs`: a row per scheduler × repetition on the Slurm cluster, then the same in the simulator
    under each backfill rule.

    ``runs`` (may be empty) and ``simulated`` as rltune.evaluation.studies.deployment.per_run gives them. ``missing``: why runs are
    not there; "" where all are.
    """
    titles = {"easy": "simulator, EASY", "conservative": "simulator, conservative"}
    ours = simulated.assign(system="simulator", system_title=simulated["backfill"].map(titles))
    ours = ours.sort_values(["backfill", "repetition"], ascending=[False, True])  # EASY first
    real = [runs.assign(system="Slurm", system_title="Slurm")] if len(runs) else []
    frame = pd.concat([*real, ours], ignore_index=True)
    sizes = sizes_in(frame)
    in_hours = ["makespan_s", *WAITS, *sizes.values(), "last_wait_s", "jct_s"]
    frame = frame.assign(
        title=frame["scheduler"].map(short),
        data=facts["data"],
        **{f"{column.removesuffix('_s')}_h": frame[column] / HOUR_S for column in in_hours},
    )
    return describe(
        "deployment-runs",
        frame,
        facts=facts,
        has_runs=len(runs) > 0,
        slurm_order=policy_title("multifactor_size"),
        missing=missing,
        waits={column.removesuffix("_s"): title for column, title in WAITS.items()},
        sizes={column.removesuffix("_s"): str(gpus) for gpus, column in sizes.items()},
    ), frame


def deployment_classes(classes: pd.DataFrame, facts: Facts) -> Table:
    """The table `deployment-classes`: mean wait and completion time of each QOS, partition and number of GPUs under each
    scheduler. ``classes`` as rltune.evaluation.studies.deployment.by_class gives it."""
    schedulers = [column[5:-2] for column in classes if column.startswith("wait_")]
    in_hours = {f"{m}_{s}_h": classes[f"{m}_{s}_s"] / HOUR_S for m in ("wait", "jct") for s in schedulers}
    frame = classes.assign(by_title=classes["by"].map(CLASS_TITLE), data=facts["data"], **in_hours)
    titles = {s: short(s) for s in schedulers}
    more = {"shares": QOS, "short_h": SHORT_S / HOUR_S}
    return describe("deployment-classes", frame, waits=titles, completions=titles, **more), frame


def deployment_machinery(machinery: pd.DataFrame, facts: Facts) -> Table:
    """The table `deployment-machinery`: a row per run. ``machinery``: of rltune.evaluation.studies.deployment_machinery."""
    frame = machinery.drop(columns=["retries", "resumed"]).assign(
        title=machinery["scheduler"].map(short), data=facts["data"], code_short=machinery["code"].str[:DIGITS]
    )
    names = frame["title"] + " " + frame["repetition"].astype(str)
    agents = names[machinery["scheduler"] == "rltune"]
    return describe(
        "deployment-machinery",
        frame,
        long_cycle_s=LONG_CYCLE_S,
        speeds=[show(speed, "number") for speed in sorted(machinery["speed"].unique())],
        retries=[(name, reason) for name, reasons in zip(names, machinery["retries"]) for reason in reasons],
        resumed={name: len(nodes) for name, nodes in zip(names, machinery["resumed"]) if nodes},
        origins={"code": _origins(names, machinery["code"]), "agent’s weights": _origins(agents, machinery["policy"])},
    ), frame


def _origins(names: pd.Series, digests: pd.Series) -> dict[str, list[str]]:
    """Digest of the code or the weights → names of the runs made with it."""
    return names.groupby(digests.str[:DIGITS][names.index], sort=False).agg(list).to_dict()


def deployment_fidelity(fidelity: pd.DataFrame, facts: Facts) -> Table:
    """The table `deployment-fidelity`: a row per run. ``fidelity`` as rltune.evaluation.studies.deployment_simulated gives it."""
    hours = {f"{m}_h_{side}": fidelity[f"{m}_s_{side}"] / HOUR_S for m in SIMULATED for side in ("slurm", *RULES)}
    frame = fidelity.assign(title=fidelity["scheduler"].map(short), data=facts["data"], **hours)
    return describe("deployment-fidelity", frame, measures=SIMULATED), frame


def deployment_predicted(predicted: pd.DataFrame, facts: Facts) -> Table:
    """The table `deployment-predicted`: a row per comparison × measure. ``predicted`` as
    rltune.evaluation.studies.deployment_simulated gives it."""
    right = {rule: int(predicted[f"agrees_{rule}"].sum()) for rule in RULES}
    frame = predicted.assign(
        **{f"{side}_title": predicted[side].map(long_title) for side in ("ours", "theirs")},
        measure_title=predicted["measure"].map(SIMULATED),
        data=facts["data"],
        **{f"agrees_{rule}": predicted[f"agrees_{rule}"].map({1.0: "yes", 0.0: "no"}) for rule in RULES},
    )
    return describe("deployment-predicted", frame, right=right), frame
