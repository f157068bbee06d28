"""Your cluster, what if, in tables: the recommendation, every scheduler in numbers, the comparisons, groups of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rltune.evaluation.intervals import FEWEST
from rltune.evaluation.recorded import FAR, LEAST_RANK, Nearness
from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import holm_note, with_holm
from rltune.report.format import is_missing, show, show_interval
from rltune.report.style import scheduler_title
from rltune.report.templates import fill

TESTED = {f"less_{m}_p": f"less_{m}_holm" for m in ("wait", "gpu", "bsld")}
GROUP_TITLE = {"user": "users", "size": "GPUs of a job"}
ORDERS = {
    "fifo": "first come, first served",
    "sjf": "shortest first",
    "saf": "smallest area first",
    "smallest": "fewest GPUs first",
    "multifactor": "Slurm’s priority, shorter jobs first",
    "multifactor_size": "Slurm’s priority, larger jobs first",
}
BACKFILLS = {
    "easy": "backfilling with a reservation for the first job",
    "conservative": "backfilling with a reservation for every job",
    "greedy": "any job that fits starts",
    "none": "no job starts before the first",
}
Facts = Mapping[str, Any]


def names(ran: pd.DataFrame) -> dict[str, str]:
    """Scheduler → its name: `Current: Slurm multifactor + EASY`, `SAF + EASY`, `QSSF + EASY`, `RLTune`.

    ``ran``: scheduler, kind, policy, backfill.
    """
    found = {}
    for _, row in ran.drop_duplicates("scheduler").iterrows():
        title = full_title(row["policy"], row["backfill"])
        found[row["scheduler"]] = {
            "current": f"Current: {title}",
            "qssf": "QSSF + EASY",
            "configuration": "RLTune’s configuration, no network",
            "rltune": "RLTune",
        }.get(row["kind"], title)
    return found


def full_title(policy: str, backfill: str) -> str:
    """`FIFO + EASY`, `FIFO without backfilling`: all that an operator has to set."""
    return scheduler_title(policy, backfill) + (" without backfilling" if backfill == "none" else "")


def group_name(row: pd.Series) -> str:
    """`heavy users`, `jobs of 5–8 GPUs`, of a row of groups."""
    if row["grouping"] == "user":
        return f"{row['group']} users"
    return f"jobs of {row['group']} GPU{'s' if str(row['group']) != '1' else ''}"


def sentences(
    advice: Mapping[str, Any],
    totals: pd.DataFrame,
    steps: pd.DataFrame,
    ran: pd.DataFrame,
    groups: pd.DataFrame,
    recorded: Nearness,
    facts: Facts,
    worth: float,
    least_wait_s: float,
) -> list[tuple[str, str]]:
    """(Topic, text) of the results, the recommendation first (templates/recommendation.j2).

    ``advice``: the fields of rltune.evaluation.studies.hours_waited.Advice.
    """
    name = names(ran)
    outcome, chosen = advice["outcome"], advice["chosen"]
    rules = ran.drop_duplicates("scheduler").set_index("scheduler")
    found = {(r["ours"], r["theirs"]): _comparison(r) for _, r in steps.iterrows()}
    best = str(totals.loc[totals["wait_h"].idxmin(), "scheduler"])
    # while undecided RLTune is compared with the best rule, which is what QSSF was compared with
    best_rule = next((theirs for ours, theirs in found if ours == "qssf" and theirs != "current"), "current")
    against = best_rule if outcome == "open" else advice["reached"]
    mine = groups[groups["scheduler"] == chosen] if len(groups) else groups
    text = fill(
        "recommendation.j2",
        outcome=outcome,
        facts=facts,
        name={s: _lower(title) for s, title in name.items()},
        chosen=name[chosen],
        best=name[best],
        rival=_lower(name[against]),
        current=totals[totals["scheduler"] == "current"].iloc[0],
        current_title=name["current"].removeprefix("Current: "),
        comparisons=len(found),
        found=found.get((best if outcome == "open" else chosen, "current")),
        rltune=found.get(("rltune", against)),
        learned=found.get(("rltune", facts["configuration"])),
        configuration=_configuration(ran),
        without_network=_without_network(name, ran, str(facts["configuration"])),
        meaning=_meaning(rules.loc[chosen]),
        enables_easy=outcome == "rule"
        and rules.loc["current", "backfill"] in ("none", "greedy")
        and rules.loc[chosen, "backfill"] == "easy",
        blocks=_blocks(int(advice["blocks"]), float(facts["block_h"])),
        fewest=FEWEST,
        least_gain=worth,
        least_wait_s=least_wait_s,
        year_h=365 / max(facts["days"], 1e-9) * facts["training_s"] / 3600,
        longer=_groups(mine[mine["shows"] == "longer"], groups),
        maybe=_groups(mine[(mine["shows"] == "open") & (mine["more_s"] > 0)], groups),
        recorded=recorded,
        near=recorded.near(least_wait_s),
        far=_far(recorded, least_wait_s),
        most_ratio=FAR,
        least_rank=LEAST_RANK,
    )
    parted = (line.partition(": ") for line in text.splitlines() if line.strip())
    return [(topic, said) for topic, _, said in parted]


def _comparison(row: pd.Series) -> dict[str, Any]:
    same = row["gain"] == row["low"] == row["high"] == 0
    return {**row.to_dict(), "same": same, "interval": show_interval(row["low"], row["high"], "percent")}


def _blocks(number: int, hours: float) -> str:
    """`4 days`, or of blocks that are no days `4 blocks of 6 h`."""
    many = "s" if number != 1 else ""
    return f"{number} day{many}" if hours == 24 else f"{number} block{many} of {show(hours, 'number')} h"


def _meaning(row: pd.Series) -> str:
    """`smallest area first; backfilling with a reservation for the first job`."""
    return "; ".join(filter(None, [ORDERS.get(row["policy"], ""), BACKFILLS[row["backfill"]]]))


def _configuration(ran: pd.DataFrame) -> str:
    """`SAF + conservative, best_fit, requested`: what the agents chose; where they chose differently, each once."""
    each = ran[ran["kind"] == "configuration"]
    chosen = (
        f"{full_title(r['policy'], r['backfill'])}, {r['placement']}, {r['estimate']}" for _, r in each.iterrows()
    )
    return " or ".join(dict.fromkeys(chosen))


def _without_network(name: Mapping[str, str], ran: pd.DataFrame, scheduler: str) -> str:
    """The configuration that the agent chose, without its network."""
    if scheduler == "configuration":
        return f"{name[scheduler]} ({_configuration(ran)})"
    return f"{_lower(name[scheduler])}, which is its configuration without a network"


def _groups(rows: pd.DataFrame, groups: pd.DataFrame) -> list[dict[str, Any]]:
    current = groups[groups["scheduler"] == "current"].set_index(["grouping", "group"])["wait_s"]
    return [
        {
            "name": group_name(row),
            "wait_s": row["wait_s"],
            "current_s": current[row["grouping"], row["group"]],
            "more_s": row["more_s"],
            "interval": show_interval(row["more_s_low"], row["more_s_high"], "seconds"),
        }
        for _, row in rows.iterrows()
    ]


def _far(recorded: Nearness, least_wait_s: float) -> str:
    """Why the simulated current policy is far from the log; "" where it is near, or cannot be compared with it."""
    if recorded.near(least_wait_s):
        return ""
    if is_missing(recorded.ratio):
        return "the log records no waiting at all"
    why = []
    if recorded.hours_far(least_wait_s):
        why.append(f"it has {show(recorded.ratio, 'number')} times the hours")
    if recorded.ranks_far(least_wait_s):
        limits = f"{show(recorded.rank, 'number')}, below {show(LEAST_RANK, 'number')}"
        why.append(f"different jobs wait (rank correlation {limits})")
    return " and ".join(why)


def _lower(title: str) -> str:
    return title.replace("Current: ", "the current ")


def whatif_recommendation(said: list[tuple[str, str]], facts: Facts) -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-recommendation`: a row per sentence."""
    frame = pd.DataFrame(said, columns=["topic", "text"])
    return describe("whatif-recommendation", frame, data=facts["data"], facts=facts), frame


def whatif_numbers(
    totals: pd.DataFrame,
    ran: pd.DataFrame,
    recorded: pd.DataFrame,
    recorded_used: float,
    facts: Facts,
    confidence: float,
) -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-numbers`: the log as recorded, then a row per scheduler.

    ``recorded``: the measured jobs as the log has them, ``wait_s`` missing where not recorded.
    """
    own = ran.drop_duplicates("scheduler").set_index("scheduler")
    settings = {s: f"{full_title(r['policy'], r['backfill'])}, {r['estimate']}" for s, r in own.iterrows()}
    first_h = totals["wait_h"].iloc[0]
    frame = with_holm(totals, TESTED).assign(
        title=totals["scheduler"].map(names(ran)),
        utilisation=totals["scheduler"].map(ran.groupby("scheduler")["utilisation"].mean()),
        ran=totals["scheduler"].map(settings),
        **{f"hours_less{end}": totals[f"less_wait{end}"] * first_h for end in ("", "_low", "_high")},
        data=facts["data"],
    )
    known = recorded[recorded["wait_s"].notna()]
    if len(known):
        wait = known["wait_s"]
        first = {
            **{"scheduler": "recorded", "kind": "recorded", "title": "As recorded in the log", "seeds": 0, "ran": ""},
            "jobs": len(known),
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
    return describe(
        "whatif-numbers",
        frame,
        data=facts["data"],
        facts=facts,
        confidence=confidence,
        unit=f"{facts['machine']} h",
        calibrated=ran["estimate"].astype(str).str.endswith("as calibrated").any(),
        holm=holm_note(frame, TESTED, "over the current policy", confidence),
    ), frame


def whatif_steps(
    steps: pd.DataFrame, ran: pd.DataFrame, facts: Facts, confidence: float, worth: float
) -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-steps`: the comparisons that the recommendation uses."""
    titles = {f"{side}_title": steps[side].map(names(ran)) for side in ("ours", "theirs")}
    frame = steps.assign(**titles, data=facts["data"])
    return describe("whatif-steps", frame, alpha=1 - confidence, least_gain=worth), frame


def whatif_groups(
    groups: pd.DataFrame, ran: pd.DataFrame, facts: Facts, confidence: float
) -> tuple[Artefact, pd.DataFrame]:
    """The table `whatif-groups-numbers`: a row per group × scheduler."""
    frame = groups.assign(
        title=groups["scheduler"].map(names(ran)),
        name=[group_name(row) for _, row in groups.iterrows()],
        data=facts["data"],
        wait_h=groups["wait_s"] * groups["jobs"] / 3600,
        shows=groups["shows"].where(groups["scheduler"] != "current", ""),
    )
    return describe("whatif-groups-numbers", frame, confidence=confidence, alpha=1 - confidence), frame
