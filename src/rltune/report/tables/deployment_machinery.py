"""What daemons, clock and controller took of the deployment's runs, and by which code and agent they were made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rltune.config.deployment import LONG_CYCLE_S
from rltune.report.artefact import Artefact, Column
from rltune.report.artefacts import describe
from rltune.report.format import NBSP, show
from rltune.report.tables.deployment_words import listed, short, times

UNKNOWN = "unknown"
DIGITS = 8
"""Of a digest, as shown."""


def deployment_machinery(machinery: pd.DataFrame, facts: Mapping[str, Any]) -> tuple[Artefact, pd.DataFrame]:
    """The table `deployment-machinery`: a row a run. ``machinery``: of rltune.evaluation.deployment_machinery."""
    frame = machinery.drop(columns=["retries", "resumed"]).assign(
        title=machinery["scheduler"].map(short),
        data=facts["data"],
        code_short=[_short(code) for code in machinery["code"]],
        tries_told=[UNKNOWN if pd.isna(tries) else show(tries, "int") for tries in machinery["tries"]],
    )
    took, controller = "The machinery", "Controller"
    return describe(
        "deployment-machinery",
        frame,
        data=facts["data"],
        speeds=_speeds(machinery),
        lines=_retries(machinery),
        resumed=_resumed(machinery),
        unknown_tries=_unknown_tries(machinery),
        origin=_origin(machinery, "code", "code"),
        origin2=_origin(machinery[machinery["scheduler"] == "rltune"], "policy", "agent’s weights"),
        took=took,
        controller=controller,
        fact=LONG_CYCLE_S,
    ), frame


def _short(digest: object) -> str:
    return digest[:DIGITS] if isinstance(digest, str) and digest else UNKNOWN


def _name(row: pd.Series) -> str:
    return f"{short(row['scheduler'])} {row['repetition']}"


def _speeds(machinery: pd.DataFrame) -> str:
    speeds = listed(show(speed, "number") for speed in sorted(machinery["speed"].unique()))
    return (
        f"The cluster’s clock ran {speeds} times as fast as the true one: what the daemons and the controller take of "
        "the machine counts so many times on it, and each run had the machine as it was then."
    )


def _retries(machinery: pd.DataFrame) -> list[str]:
    """A sentence a try that does not count."""
    return [
        f"{_name(row)} was begun anew, and the try before does not count: {reason.rstrip('.')}."
        for _, row in machinery.iterrows()
        for reason in row["retries"]
    ]


def _resumed(machinery: pd.DataFrame) -> str:
    """How often nodes had to be set to work again, and in which runs."""
    found = [(_name(row), len(row["resumed"])) for _, row in machinery.iterrows() if row["resumed"]]
    if not found:
        return ""
    return (
        f"Nodes were set to work again {times(sum(n for _, n in found))} ({listed(f'{name}: {n}' for name, n in found)}): "
        "a job’s process had not ended, as on a fast clock now and then one hangs, and Slurm had taken the node out of "
        "service. Until then the job held its GPUs, which is in the run’s figures."
    )


def _unknown_tries(machinery: pd.DataFrame) -> str:
    """How many runs do not say whether they were begun anew, and of those that do and give no reason, how often."""
    unknown = int(machinery["tries"].isna().sum())
    untold = int((machinery["tries"] - 1 - machinery["retries"].map(len)).clip(lower=0).sum())
    return " ".join(
        filter(
            None,
            (
                f"{unknown} of {len(machinery)} runs do not say whether they were begun anew: {UNKNOWN}."
                if unknown
                else "",
                f"{untold} times a run was begun anew for a reason that was not kept." if untold else "",
            ),
        )
    )


def _origin(machinery: pd.DataFrame, column: str, what: str) -> str:
    """Where runs were not all made by the same, or do not say by which."""
    known = {_name(row): row[column] for _, row in machinery.iterrows() if _short(row[column]) != UNKNOWN}
    unknown, kinds = len(machinery) - len(known), dict.fromkeys(known.values())
    differ = "; ".join(
        f"{_short(kind)}: {listed(name for name, its in known.items() if its == kind)}" for kind in kinds
    )
    return " ".join(
        filter(
            None,
            (
                f"The runs were not all made by the same {what} ({differ}): they are not alike in that."
                if len(kinds) > 1
                else "",
                f"{unknown} of {len(machinery)} runs do not say by which {what} they were made: {UNKNOWN}."
                if unknown
                else "",
            ),
        )
    )
