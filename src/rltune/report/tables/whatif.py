"""Your cluster, what if, in tables: the recommendation, every scheduler in numbers, the comparisons, groups of jobs."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.artefacts import describe
from rltune.report.format import show
from rltune.report.common import holm_note, with_holm
from rltune.report.tables.whatif_words import Facts, full_title, group_name, names

TESTED = {f"less_{m}_p": f"less_{m}_holm" for m in ("wait", "gpu", "bsld")}
GROUP_TITLE = {"user": "users", "size": "GPUs of a job"}


def whatif_recommendation(told: list[tuple[str, str]], facts: Facts) -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-recommendation`: a row a sentence."""
    frame = pd.DataFrame(told, columns=["topic", "text"])
    return describe("whatif-recommendation", frame, data=facts["data"], facts=facts), frame


def whatif_numbers(
    totals: pd.DataFrame,
    ran: pd.DataFrame,
    recorded: pd.DataFrame,
    recorded_used: float,
    facts: Facts,
    confidence: float,
) -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-numbers`: the log as recorded, then a row a scheduler.

    ``recorded``: the measured jobs as the log has them, ``wait_s`` missing where not recorded.
    """
    title = names(ran)
    means = ran.groupby("scheduler").agg(utilisation=("utilisation", "mean"), seconds=("seconds", "mean"))
    own = ran.drop_duplicates("scheduler").set_index("scheduler")
    frame = with_holm(totals, TESTED).assign(
        title=totals["scheduler"].map(title),
        utilisation=totals["scheduler"].map(means["utilisation"]),
        ran=totals["scheduler"].map(
            {s: f"{full_title(r['policy'], r['backfill'])}, {r['estimate']}" for s, r in own.iterrows()}
        ),
        hours_less=totals["less_wait"] * totals["wait_h"].iloc[0],
        hours_less_low=totals["less_wait_low"] * totals["wait_h"].iloc[0],
        hours_less_high=totals["less_wait_high"] * totals["wait_h"].iloc[0],
        data=facts["data"],
    )
    known = recorded[recorded["wait_s"].notna()]
    if len(known):
        wait = known["wait_s"]
        first = {
            "scheduler": "recorded",
            "kind": "recorded",
            "title": "As recorded in the log",
            "jobs": len(known),
            "seeds": 0,
            "ran": "",
            "windows": known["block"].nunique(),
            "wait_h": wait.sum() / 3600,
            "gpu_h": float((wait * known["gpus"]).sum()) / 3600,
            "wait_mean_s": wait.mean(),
            "wait_median_s": wait.median(),
            "wait_p95_s": wait.quantile(0.95),
            "bsld": known["bsld"].mean(),
            "utilisation": recorded_used,
            "data": facts["data"],
        }
        frame = pd.concat([pd.DataFrame([first]), frame], ignore_index=True)
    unit = f"{facts['machine']} h"
    less = "Less than today"

    return describe(
        "whatif-numbers",
        frame,
        data=facts["data"],
        facts=facts,
        confidence=confidence,
        told=_told(ran),
        lines=filter(None, [holm_note(frame, TESTED, "over today", confidence)]),
        unit=unit,
        less=less,
    ), frame


def _told(ran: pd.DataFrame) -> str:
    """Who is told which estimates, in a sentence."""
    if not ran["estimate"].astype(str).str.endswith("as calibrated").any():
        return "All but QSSF are told the same estimates."
    return (
        "All but QSSF are told the same estimates; RLTune chose to go by beliefs about them, made of earlier jobs "
        "(as calibrated), which the rules have not."
    )


def whatif_steps(
    steps: pd.DataFrame, ran: pd.DataFrame, facts: Facts, confidence: float, worth: float
) -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-steps`: the comparisons that the recommendation goes by."""
    title = names(ran)
    told = {f"{side}_title": steps[side].map(title) for side in ("ours", "theirs")}
    frame = steps.assign(**told, data=facts["data"])
    return describe("whatif-steps", frame, data=facts["data"], fact=1 - confidence, worth=worth), frame


def whatif_groups(
    groups: pd.DataFrame, ran: pd.DataFrame, facts: Facts, confidence: float
) -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-groups-numbers`: a row a group × scheduler."""
    title = names(ran)
    frame = groups.assign(
        title=groups["scheduler"].map(title),
        name=[group_name(row) for _, row in groups.iterrows()],
        data=facts["data"],
        wait_h=groups["wait_s"] * groups["jobs"] / 3600,
        shows=groups["shows"].where(groups["scheduler"] != "current", ""),
    )
    return describe(
        "whatif-groups-numbers", frame, data=facts["data"], confidence=confidence, fact=1 - confidence
    ), frame
