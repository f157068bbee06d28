"""The deployment in tables (paper §5.6): RLTune beside Slurm, every run and what the machinery took, simulator and Slurm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.style import POLICY_TITLE
from rltune.report.tables.holm import holm_note, with_holm
from rltune.report.verdict import RULE, direction, verdict

NAN = float("nan")
MEASURES = {
    "makespan": ("Makespan", "h"), "utilisation": ("Utilisation", "%"), "wait": ("Mean wait", "s"), "jct": ("Mean JCT", "s"),
    "bsld": ("Mean bounded slowdown", ""),
}  # fmt: skip
"""Measure → (title, unit)."""
COLUMN = {"makespan": "makespan_s", "utilisation": "utilisation", "wait": "wait_s", "jct": "jct_s", "bsld": "bsld"}
"""Measure → column of rltune.evaluation.deployment.per_run."""
SCALE = {"makespan": 1 / 3600, "utilisation": 100.0}
PAPER_KEY = {"makespan": "makespan", "utilisation": "utilisation", "wait": "wait"}
"""Measures that the paper prints a comparison of."""
TESTED = {"p": "p_holm"}
Facts = Mapping[str, Any]


def who(scheduler: str) -> str:
    """`Slurm`, `RLTune`, `SAF, same controller`."""
    named = {"slurm": "Slurm", "rltune": "RLTune"}
    return named.get(scheduler) or f"{POLICY_TITLE.get(scheduler, scheduler)}, same controller"


def deployment_numbers(
    compared: pd.DataFrame, runs: pd.DataFrame, facts: Facts, cell: pd.Series, paper: PaperResults, block_jobs: int,
    confidence: float, learned: str = "", source: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """The table `deployment-numbers`: one row a comparison × measure, with the paper's figure and the verdict.

    ``compared`` and ``runs`` as rltune.evaluation.deployment.compare and per_run give them; ``cell``: the row of
    rltune.report.read.cells of the agent; ``learned``: rltune.report.tables.comparison.learned_in of it.
    """
    told = [_value(row, side, runs) for side in ("ours", "theirs") for _, row in compared.iterrows()]
    half = len(compared)
    printed = [_printed(row, paper) for _, row in compared.iterrows()]
    frame = with_holm(compared, TESTED).assign(
        ours_title=compared["ours"].map(who), theirs_title=compared["theirs"].map(who),
        measure_title=[", ".join(filter(None, MEASURES[m])) for m in compared["measure"]],
        ours_mean=told[:half], theirs_mean=told[half:], paper=printed,
        verdict=[verdict(None if np.isnan(p) else p, r["low"], r["high"], int(r["windows"]))
                 for p, (_, r) in zip(printed, compared.iterrows(), strict=True)],
        shows=[direction(r["low"], r["high"], int(r["windows"])) for _, r in compared.iterrows()],
        sequence_jobs=facts["jobs"], trace_title=facts["trace"], preset=cell["preset"], estimate=cell["estimate"],
        seed=cell["seed"], data=facts["data"], learned=learned,
    )  # fmt: skip
    repetitions = int(runs["repetition"].nunique())
    printed_min = {who_: show(paper.value("fig18", f"{who_}.makespan_min"), "int") for who_ in ("slurm", "rltune")}
    return Artefact(
        "deployment-numbers", "table", "RLTune beside Slurm, in numbers", paper_ref=paper.ref("fig18"),
        caption=f"{show(facts['jobs'], 'int')} jobs, {_times(repetitions)}, each repetition with other jobs, on a Slurm "
        f"cluster of real daemons with {facts['gpus']} made-up GPUs: under Slurm’s multifactor priority alone, and with "
        "priorities written by the controller. Means of the repetitions that both sides have.",
        data=(str(facts["data"]),), source=source,
        columns={
            "ours_title": Column("Scheduler"), "theirs_title": Column("Against"), "measure_title": Column("Measure"),
            "ours_mean": Column("Ours", "", "number"), "theirs_mean": Column("The other", "", "number"),
            "gain": Column("Better by", "", "percent", low="low", high="high"), "p_holm": Column("Holm p", "", "p"),
            "shows": Column("Shown"), "paper": Column("The paper", "", "percent"), "verdict": Column("Verdict"),
            "windows": Column("Windows", "", "int"),
        },
        notes=tuple(n for n in (
            f"Of wait, JCT and slowdown a window is {block_jobs} consecutive submissions of a repetition; of makespan and "
            f"utilisation a repetition has one value, so there are {repetitions} and no verdict. The blocks of one "
            "repetition share its queue, and one long backlog is in many of them: these intervals are too narrow rather "
            "than too wide.",
            "Jobs sleep as long as the generated job ran: schedulers differ in order and in nodes, not in jobs’ speed.",
            f"The paper’s makespans are {printed_min['slurm']} min under Slurm and {printed_min['rltune']} min under "
            f"RLTune, of {show(paper.value('fig18', 'jobs'), 'int')} jobs that it does not publish, in one run.",
            holm_note(frame, TESTED, "over the others", confidence),
            f"Brackets: {100 * confidence:.0f} % intervals of single comparisons. Verdicts: {RULE}",
        ) if n),
    ), frame


def _times(repetitions: int) -> str:
    return {1: "once", 2: "twice"}.get(repetitions, f"{repetitions} times")


def _value(row: pd.Series, side: str, runs: pd.DataFrame) -> float:
    """Mean over the repetitions that both sides have, in the unit of the measure."""
    both = [set(runs.loc[runs["scheduler"] == row[s], "repetition"]) for s in ("ours", "theirs")]
    mine = runs[(runs["scheduler"] == row[side]) & runs["repetition"].isin(both[0] & both[1])]
    return float(mine[COLUMN[row["measure"]]].mean()) * SCALE.get(row["measure"], 1.0)


def _printed(row: pd.Series, paper: PaperResults) -> float:
    if (row["ours"], row["theirs"]) != ("rltune", "slurm") or row["measure"] not in PAPER_KEY:
        return NAN
    return paper.value("fig18", PAPER_KEY[row["measure"]])


def deployment_runs(
    runs: pd.DataFrame, machinery: pd.DataFrame, simulated: pd.DataFrame, facts: Facts, missing: str, source: str = ""
) -> tuple[Artefact, pd.DataFrame]:
    """The table `deployment-runs`: a row a scheduler × repetition on the Slurm cluster, then a row each in the simulator.

    ``runs`` and ``simulated`` as rltune.evaluation.deployment.per_run gives them, ``machinery`` as its function of that
    name does; runs and machinery may be empty. ``missing``: why runs are not there; "" where all are.
    """
    measured = runs.merge(machinery, on=["scheduler", "repetition"]).assign(system="Slurm") if len(runs) else runs
    frame = pd.concat([measured, simulated.assign(system="simulator")], ignore_index=True)
    frame = frame.assign(title=frame["scheduler"].map(who), makespan_h=frame["makespan_s"] / 3600, data=facts["data"])
    shown = {
        "title": Column("Order"), "system": Column("On"), "repetition": Column("Repetition", "", "plain-int"),
        "makespan_h": Column("Makespan", "h", "number"), "utilisation": Column("Utilisation", "", "percent"),
        "wait_s": Column("Mean", "s", "seconds", "Wait"), "wait_median_s": Column("Median", "s", "seconds", "Wait"),
        "wait_p95_s": Column("95 %", "s", "seconds", "Wait"), "jct_s": Column("Mean JCT", "s", "seconds"),
        "bsld": Column("Slowdown", "", "number"),
        "others": Column("Not completed", "jobs", "int", help="Jobs that ended otherwise than COMPLETED."),
    }  # fmt: skip
    if len(runs):
        shown |= {
            "true_s": Column("It took", "s", "seconds", help="On the true clock."),
            "late_s": Column("Submitted late by", "s", "seconds", "The machinery", help="Mean; on the cluster’s clock."),
            "turn_s": Column("End to start", "s", "seconds", "The machinery",
                             help="From the last end of a job to a start of one that waited, median."),
            "longer_s": Column("Jobs longer by", "s", "seconds", "The machinery", help="Than they were to run, mean."),
            "cycles": Column("Cycles", "", "int", "Controller"), "failed": Column("Failed", "", "int", "Controller"),
            "cycle_s": Column("A cycle", "s", "seconds", "Controller", help="Mean; on the cluster’s clock."),
            "cycle_p95_s": Column("95 %", "s", "seconds", "Controller"),
            "changed": Column("Priorities", "", "int", "Controller", help="Written in all."),
        }  # fmt: skip
    notes = [
        f"{show(facts['jobs'], 'int')} jobs a repetition, of {facts['accounts']} users, each with an account, submitted "
        f"over {show(facts['hours'], 'number')} hours; offered load {show(facts['offered'], 'number')} of the cluster’s GPUs.",
        "In the simulator the same jobs with the same limits and EASY backfilling, by best fit; Slurm’s order is "
        f"{POLICY_TITLE['multifactor_size']} there.",
        missing,
    ]  # fmt: skip
    if len(runs):
        if anew := int((machinery["tries"] - 1).sum()):
            notes.append(f"{anew} times a run was begun anew, since its daemons had died or hung; such tries do not count.")
        speed = show(float(machinery["speed"].iloc[0]), "number")
        notes.insert(1, f"The cluster’s clock ran {speed} times as fast as the true one: what the daemons and the controller "
                        "take of the machine counts so many times on it. GPUs that a job holds longer than it was to run "
                        "count as used.")  # fmt: skip
    return Artefact(
        "deployment-runs", "table", "Every run, and what the machinery took",
        caption="One row a run on the Slurm cluster, by its own accounting, and one for the same jobs in the simulator."
        if len(runs) else "The same jobs in the simulator; there is no run on a Slurm cluster beside it.",
        data=(str(facts["data"]),), source=source, columns=shown, notes=tuple(n for n in notes if n),
    ), frame


def deployment_fidelity(fidelity: pd.DataFrame, facts: Facts, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """The table `deployment-fidelity`: a row a run. ``fidelity`` as rltune.evaluation.deployment.fidelity gives it."""
    frame = fidelity.assign(
        title=fidelity["scheduler"].map(who), data=facts["data"],
        **{f"makespan_h_{side}": fidelity[f"makespan_s_{side}"] / 3600 for side in ("slurm", "simulated")},
    )  # fmt: skip
    columns = {"title": Column("Order"), "repetition": Column("Repetition", "", "plain-int")}
    for name, heading, unit, kind in (("wait_s", "Mean wait", "s", "seconds"), ("makespan_h", "Makespan", "h", "number"),
                                      ("utilisation", "Utilisation", "", "percent")):  # fmt: skip
        columns |= {f"{name}_{side}": Column(title, unit, kind, heading)
                    for side, title in (("slurm", "Slurm"), ("simulated", "Simulator"))}  # fmt: skip
        columns[f"{name.replace('_h', '_s')}_error"] = Column("Off by", "", "percent", heading)
    return Artefact(
        "deployment-fidelity", "table", "The simulator against Slurm",
        caption="The same jobs and limits under the same orders in the simulator and on the Slurm cluster: how far a "
        "prediction of the simulator would have been off.",
        data=(str(facts["data"]),), source=source,
        columns=columns | {
            "rank": Column("Waits alike", "", "number", help="Spearman’s correlation of the waits, job by job."),
            "apart_s": Column("Apart by", "s", "seconds", help="Mean absolute difference of a job’s two waits."),
        },
        notes=(
            "The simulator starts jobs at once; Slurm’s daemons take their time (“End to start” above), a controller writes "
            "once a minute, and a job that comes between two cycles has Slurm’s own priority until the next.",
            "sched/backfill plans with limits in whole minutes and reserves for every job it looks at, EASY for the first "
            "alone; Slurm chooses nodes by weight, small ones first, the simulator by best fit. Slurm’s fair share and age "
            "are near the simulator’s, and not the same.",
            "One different start changes what comes after it: waits of single jobs differ more than means do.",
        ),
    ), frame  # fmt: skip
