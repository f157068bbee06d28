"""The simulator against Slurm: each run, and what it would have said of one order against another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.tables.deployment_words import HOUR_S, short, who

RULES = {"easy": "EASY", "conservative": "Conservative"}
MEASURES = {"wait": "Mean wait", "makespan": "Makespan"}
Facts = Mapping[str, Any]


def deployment_fidelity(fidelity: pd.DataFrame, facts: Facts, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """The table `deployment-fidelity`: a row a run. ``fidelity`` as rltune.evaluation.studies.deployment_simulated gives it."""
    sides = ("slurm", *RULES)
    frame = fidelity.assign(
        title=fidelity["scheduler"].map(short),
        data=facts["data"],
        **{f"{name}_h_{side}": fidelity[f"{name}_s_{side}"] / HOUR_S for name in MEASURES for side in sides},
    )
    columns = {"title": Column("Order"), "repetition": Column("Repetition", "", "plain-int")}
    for name, heading in MEASURES.items():
        columns[f"{name}_h_slurm"] = Column("Slurm", "h", "number", heading)
        for rule, title in RULES.items():
            columns[f"{name}_h_{rule}"] = Column(title, "h", "number", heading)
            columns[f"{name}_s_{rule}_error"] = Column("off by", "", "percent", heading)
    for rule, title in RULES.items():
        columns[f"rank_{rule}"] = Column(title, "", "number", "Waits alike", help="Spearman’s correlation, job by job.")
    return Artefact(
        "deployment-fidelity",
        "table",
        "The simulator against Slurm",
        caption="The same jobs and limits under the same orders on the Slurm cluster and in the simulator, with EASY and "
        "with conservative backfilling: how far a prediction of the simulator would have been off.",
        data=(str(facts["data"]),),
        source=source,
        columns=columns,
        notes=(
            "The simulator starts jobs at once; Slurm’s daemons take their time (“End to start” above), a controller writes "
            "once a minute, and a job that comes between two cycles has Slurm’s own priority until the next.",
            "sched/backfill plans with limits in whole minutes and reserves for every job it looks at, as conservative "
            "backfilling does; EASY reserves for the first alone. Slurm chooses nodes by weight, small ones first, the "
            "simulator by best fit. Slurm’s fair share and age are near the simulator’s, and not the same.",
            "One different start changes what comes after it: waits of single jobs differ more than means do.",
        ),
    ), frame


def deployment_predicted(predicted: pd.DataFrame, facts: Facts, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """The table `deployment-predicted`: a row a comparison × measure. ``predicted`` as
    rltune.evaluation.studies.deployment_simulated gives it."""
    frame = predicted.assign(
        ours_title=predicted["ours"].map(who),
        theirs_title=predicted["theirs"].map(who),
        measure_title=predicted["measure"].map(MEASURES),
        data=facts["data"],
        **{f"told_{rule}": predicted[f"agrees_{rule}"].map({1.0: "yes", 0.0: "no"}) for rule in RULES},
    )
    columns = {
        "ours_title": Column("Scheduler"),
        "theirs_title": Column("Against"),
        "measure_title": Column("Measure"),
        "repetitions": Column("Repetitions", "", "int"),
        "gain": Column("On Slurm", "", "percent", "Better by"),
        **{f"gain_{rule}": Column(f"Simulator, {title}", "", "percent", "Better by") for rule, title in RULES.items()},
        **{f"told_{rule}": Column(title, "", "text", "Same direction") for rule, title in RULES.items()},
    }
    right = {rule: int(predicted[f"agrees_{rule}"].sum()) for rule in RULES}
    told = f"{right['easy']} of {len(predicted)} with EASY and {right['conservative']} with conservative backfilling"
    return Artefact(
        "deployment-predicted",
        "table",
        "Would the simulator have said so?",
        caption="What one order gains on another on the Slurm cluster, and what the simulator says of the same jobs. "
        f"The direction is the same in {told}.",
        data=(str(facts["data"]),),
        source=source,
        columns=columns,
        notes=(
            "Positive: shorter under the first. Of the means of the repetitions, without an interval: a difference of "
            "less than what the simulator is off by for a single order (the table above) says little.",
        ),
    ), frame
