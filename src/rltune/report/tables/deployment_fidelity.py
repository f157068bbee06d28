"""The simulator against Slurm: each run, and what it would have said of one order against another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.artefacts import describe
from rltune.report.tables.deployment_words import HOUR_S, short, who

RULES = {"easy": "EASY", "conservative": "Conservative"}
MEASURES = {"wait": "Mean wait", "makespan": "Makespan"}
Facts = Mapping[str, Any]


def deployment_fidelity(fidelity: pd.DataFrame, facts: Facts) -> tuple[Artefact, pd.DataFrame]:
    """The table `deployment-fidelity`: a row a run. ``fidelity`` as rltune.evaluation.deployment_fidelity gives it."""
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
    return describe("deployment-fidelity", frame, data=facts["data"], more=columns), frame


def deployment_predicted(predicted: pd.DataFrame, facts: Facts) -> tuple[Artefact, pd.DataFrame]:
    """The table `deployment-predicted`: a row a comparison × measure. ``predicted`` as
    rltune.evaluation.deployment_fidelity gives it."""
    frame = predicted.assign(
        ours_title=predicted["ours"].map(who),
        theirs_title=predicted["theirs"].map(who),
        measure_title=predicted["measure"].map(MEASURES),
        data=facts["data"],
        **{f"told_{rule}": predicted[f"agrees_{rule}"].map({1.0: "yes", 0.0: "no"}) for rule in RULES},
    )

    right = {rule: int(predicted[f"agrees_{rule}"].sum()) for rule in RULES}
    told = f"{right['easy']} of {len(predicted)} with EASY and {right['conservative']} with conservative backfilling"
    return describe(
        "deployment-predicted",
        frame,
        data=facts["data"],
        told=told,
        more={
            f"gain_{rule}": Column(f"Simulator, {title}", "", "percent", "Better by") for rule, title in RULES.items()
        },
        more2={f"told_{rule}": Column(title, "", "text", "Same direction") for rule, title in RULES.items()},
    ), frame
