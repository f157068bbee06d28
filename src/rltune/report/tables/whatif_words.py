"""Your cluster, what if, in words: the recommendation, what of RLTune, who would wait longer, how near the log is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rltune.evaluation.intervals import FEWEST
from rltune.evaluation.recorded import FAR, LEAST_RANK, Nearness
from rltune.report.format import NBSP, is_missing, show, show_interval
from rltune.report.style import scheduler_title

ORDERS = {
    "fifo": "first come, first served",
    "sjf": "shortest first",
    "saf": "smallest area first",
    "smallest": "fewest GPUs first",
    "multifactor": "Slurm’s priority, shorter jobs first",
    "multifactor_size": "Slurm’s priority, larger jobs first",
}
BEHIND = {
    "easy": "backfilling that keeps the first job’s place",
    "conservative": "backfilling that keeps every job’s place",
    "greedy": "whatever fits starts",
    "none": "nothing starts before the first job",
}
"""What an order and a backfill mean to whoever has to set them."""
Facts = Mapping[str, Any]


def names(ran: pd.DataFrame) -> dict[str, str]:
    """Scheduler → its name: `Today: Slurm multifactor + EASY`, `SAF + EASY`, `QSSF + EASY`, `RLTune`.

    ``ran``: scheduler, kind, policy, backfill.
    """
    found = {}
    for _, row in ran.drop_duplicates("scheduler").iterrows():
        title = full_title(row["policy"], row["backfill"])
        found[row["scheduler"]] = {
            "current": f"Today: {title}",
            "qssf": "QSSF + EASY",
            "configuration": "RLTune’s configuration, no network",
            "rltune": "RLTune",
        }.get(row["kind"], title)
    return found


def full_title(policy: str, backfill: str) -> str:
    """`FIFO + EASY`, `FIFO without backfilling`: what an operator has to set, all of it."""
    return scheduler_title(policy, backfill) + (" without backfilling" if backfill == "none" else "")


def _same(step: pd.Series) -> bool:
    """Whether the two waited the same, block by block."""
    return step["gain"] == step["low"] == step["high"] == 0


def saving(step: pd.Series) -> str:
    """`21.7 % fewer hours (interval of the saving 10.1 to 30.2 %)`: a comparison, in words."""

    def size(value: float) -> str:
        return show(abs(value), "percent")

    if is_missing(step["gain"]):
        return "nothing to compare, as nobody waits"
    if _same(step):
        return "exactly as many hours"
    word = "fewer" if step["gain"] >= 0 else "more"
    between = show_interval(step["low"], step["high"], "percent")
    return f"{size(step['gain'])} {word} hours" + (f" (interval of the saving {between})" if between else "")


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
    """(Topic, text) of what came out, the recommendation first. ``advice``: the fields of
    rltune.evaluation.recommend.Advice."""
    name, step = names(ran), steps.set_index(["ours", "theirs"])
    doubt = _but(recorded, facts, least_wait_s) if advice["outcome"] != "too few days" else ""
    told = [("Recommendation", _advice(advice, name, totals, step, ran, facts, least_wait_s) + doubt)]
    if advice["outcome"] not in ("too few days", "no waits"):
        told.append(("RLTune", _rltune(advice, name, step, facts, worth)))
        told.append(("What it learned", _learned(name, step, ran, facts)))
        if advice["outcome"] not in ("keep", "open"):
            told.append(("Who would wait longer", _losers(advice, groups)))
    told.append(("Simulated and recorded", _recorded(recorded, name, least_wait_s)))
    load = float(facts["offered"])
    if load > 1:
        told.append(
            (
                "Load",
                f"In these days jobs asked for {show(load, 'number')} times the {facts['machine']} time "
                "there is: queues grew to the end whatever the order, and hours waited say as much about the "
                "length of the log as about the scheduler.",
            )
        )
    return told


def _advice(
    advice: Mapping[str, Any],
    name: Mapping[str, str],
    totals: pd.DataFrame,
    step: pd.DataFrame,
    ran: pd.DataFrame,
    facts: Facts,
    least_wait_s: float,
) -> str:
    today = totals[totals["scheduler"] == "current"].iloc[0]
    hours = f"{show(today['wait_h'], 'int')} h"
    over = f"the log’s last {show(facts['days'], 'number')} days ({show(facts['jobs'], 'int')} jobs)"
    match advice["outcome"]:
        case "too few days":
            return (
                f"Too few days for a verdict: {_blocks(int(advice['blocks']), facts)} arrivals in the last part, at "
                f"least {FEWEST} are needed. This log is {show(facts['log_days'], 'int')} days long; one of some "
                f"{show(facts['needed_days'], 'int')} days would do."
            )
        case "no waits":
            return (
                f"Do not bother: under today’s order jobs wait {show(today['wait_mean_s'], 'seconds')} s in the "
                f"mean, below the {show(least_wait_s, 'seconds')} s from which on a change is weighed."
            )
        case "keep":
            return (
                f"Do not bother: over {over} nothing that was tried waits less than "
                f"{_lower(name['current'])} ({hours}), or not by enough to be worth a change."
            )
        case "open":
            fewest = totals.loc[totals["wait_h"].idxmin(), "scheduler"]
            found = step.loc[(fewest, "current")]
            return (
                f"Undecided: over {over} {name[fewest]} waits {show(found['ours_h'], 'int')} h, "
                f"{_lower(name['current'])} "
                f"{hours}, {saving(found)}, but {_doubt(found, len(step))}. Not enough to change anything on; a "
                "longer log may tell."
            )
    chosen, found = name[advice["chosen"]], step.loc[(advice["chosen"], "current")]
    what = {
        "rule": f"Switch to {chosen} ({_means(ran, advice['chosen'])})",
        "rltune": f"Use {chosen}",
        "qssf": f"Switch to {chosen}, smallest area first by run times predicted from earlier jobs",
        "configuration": f"Take {chosen}: {_way(ran)}, which needs no network",
    }[advice["outcome"]]
    policies = ran.drop_duplicates("scheduler").set_index("scheduler")["backfill"]
    if (
        advice["outcome"] == "rule"
        and policies["current"] in ("none", "greedy")
        and policies[advice["chosen"]] == "easy"
    ):
        what = f"Switch on EASY backfilling, with the order {chosen.removesuffix(' + EASY')}"
    return (
        f"{what}: over {over} jobs would have waited {show(found['ours_h'], 'int')} h instead of {hours}, "
        f"{saving(found)}."
    )


def _blocks(number: int, facts: Facts) -> str:
    """`4 days have`, or of blocks that are no days `4 blocks of 6 h have`."""
    hours = float(facts["block_h"])
    what = "day" if hours == 24 else "block"
    of = "" if hours == 24 else f" of {show(hours, 'number')} h"
    return f"{number} {what}{of} has" if number == 1 else f"{number} {what}s{of} have"


def _means(ran: pd.DataFrame, scheduler: str) -> str:
    """`smallest area first; backfilling that keeps the first job’s place`."""
    row = ran[ran["scheduler"] == scheduler].iloc[0]
    return "; ".join(filter(None, [ORDERS.get(row["policy"], ""), BEHIND[row["backfill"]]]))


def _rltune(advice: Mapping[str, Any], name: Mapping[str, str], step: pd.DataFrame, facts: Facts, worth: float) -> str:
    undecided = advice["outcome"] == "open"
    against = _best_rule(step) if undecided else advice["reached"]
    found, rival = step.loc[("rltune", against)], _lower(name[against])
    cost = (
        f"its rollouts and updates in training took {show(facts['training_s'], 'seconds')}{NBSP}s, and what it was "
        f"worth was measured for {show(facts['days'], 'number')} days behind its training: retrain about as often, "
        f"{show(365 / max(facts['days'], 1e-9) * facts['training_s'] / 3600, 'number')} core hours a year"
    )
    if advice["outcome"] == "rltune":
        return f"RLTune waits {saving(found)} than {rival}; {cost}."
    if found["shows"] == "fewer" and undecided:
        return f"RLTune waits {saving(found)} than {rival}, which is not shown to beat today’s order itself ({cost})."
    if found["shows"] == "fewer":
        return (
            f"RLTune waits {saving(found)} than {rival}, below the {show(worth, 'percent')} that a change has "
            f"to be worth here: do not bother ({cost})."
        )
    if found["shows"] == "more":
        return f"RLTune is worse than {rival}, {saving(found)}: do not bother ({cost})."
    return (
        f"RLTune adds nothing measurable over {rival}: {saving(found)}, and {_doubt(found, len(step))}; do not "
        f"bother ({cost})."
    )


def _best_rule(step: pd.DataFrame) -> str:
    """What QSSF was compared with besides today: the rule with the fewest hours."""
    return next(theirs for ours, theirs in step.index if ours == "qssf" and theirs != "current")


def _doubt(found: pd.Series, count: int) -> str:
    """Why a comparison shows nothing."""
    if _same(found):
        return "so it is in every block of arrivals"
    if found["low"] > 0 or found["high"] < 0:
        return f"with {count} comparisons made that may be chance (Holm’s p {show(found['p_holm'], 'p')})"
    return "the interval covers zero"


def _way(ran: pd.DataFrame) -> str:
    """`SAF + conservative, best_fit, requested`: what the agents chose; where they chose differently, each once."""
    each = ran[ran["kind"] == "configuration"]
    return " or ".join(
        dict.fromkeys(
            f"{full_title(row['policy'], row['backfill'])}, {row['placement']}, {row['estimate']}"
            for _, row in each.iterrows()
        )
    )


def _learned(name: Mapping[str, str], step: pd.DataFrame, ran: pd.DataFrame, facts: Facts) -> str:
    """What the network adds to the way that the agent chose beside it."""
    way, found = facts["configuration"], step.loc[("rltune", facts["configuration"])]
    what = (
        f"{name[way]} ({_way(ran)})"
        if way == "configuration"
        else f"{_lower(name[way])}, which is its configuration without a network"
    )
    told = {
        "fewer": f"What it learned is worth something: RLTune waits {saving(found)} than {what}.",
        "more": f"What it learned does harm: RLTune waits {saving(found)} than {what}.",
    }.get(found["shows"], f"What it learned adds nothing measurable over {what}: {saving(found)}.")
    if facts["idle"]:
        told += (
            f" In {show(facts['idle'], 'int')} of {show(facts['agents'], 'int')} trainings the agent kept nothing "
            "that it learned: no epoch was better on validation than what it was to beat."
        )
    return told


def _losers(advice: Mapping[str, Any], groups: pd.DataFrame) -> str:
    mine = groups[groups["scheduler"] == advice["chosen"]]
    today = groups[groups["scheduler"] == "current"].set_index(["grouping", "group"])["wait_s"]

    def told(rows: pd.DataFrame) -> str:
        return "; ".join(
            f"{group_name(row)}, {show(row['wait_s'], 'seconds')} s instead of "
            f"{show(today[row['grouping'], row['group']], 'seconds')} s in the mean ({show(row['more_s'], 'seconds')} s "
            f"longer, interval {show_interval(row['more_s_low'], row['more_s_high'], 'seconds') or 'unknown'})"
            for _, row in rows.iterrows()
        )

    shown = mine[mine["shows"] == "longer"]
    open_ = mine[(mine["shows"] == "open") & (mine["more_s"] > 0)]
    first = (
        f"Shown to wait longer than today: {told(shown)}."
        if len(shown)
        else ("No group of users or of job sizes is shown to wait longer.")
    )
    return first + (f" Longer in the mean, which may be chance: {told(open_)}." if len(open_) else "")


def group_name(row: pd.Series) -> str:
    """`heavy users`, `jobs of 5–8 GPUs`, of a row of groups."""
    if row["grouping"] == "user":
        return f"{row['group']} users"
    return f"jobs of {row['group']} GPU{'s' if str(row['group']) != '1' else ''}"


def _far(recorded: Nearness, least_wait_s: float) -> str:
    """Why the simulated today is far from the log; empty where it is near, or cannot be held against it."""
    if recorded.near(least_wait_s):
        return ""
    if is_missing(recorded.ratio):
        return "the log records no waiting at all"
    why = []
    if recorded.hours_far(least_wait_s):
        why.append(f"it has {show(recorded.ratio, 'number')} times the hours")
    if recorded.ranks_far(least_wait_s):
        why.append(
            f"other jobs wait than did (rank correlation {show(recorded.rank, 'number')}, below "
            f"{show(LEAST_RANK, 'number')})"
        )
    return " and ".join(why)


def _but(recorded: Nearness, facts: Facts, least_wait_s: float) -> str:
    """What stands against acting on the recommendation, to append to it."""
    told = ""
    if why := _far(recorded, least_wait_s):
        told += (
            f" But the simulated today is far from what the log shows: {why}. Do not act on this before "
            "whatif.current and the node list are set right."
        )
    if float(facts["offered"]) > 1:
        told += (
            f" But in these days jobs asked for {show(facts['offered'], 'number')} times what the cluster has, so "
            "that the hours depend on where the log ends: do not take their size for what a year would bring."
        )
    return told


def _recorded(recorded: Nearness, name: Mapping[str, str], least_wait_s: float) -> str:
    today = name["current"].removeprefix("Today: ")
    if not recorded.jobs:
        return (
            "The log records no waits, so that the simulated today cannot be held against what happened: all "
            "differences are between simulations."
        )
    if is_missing(recorded.ratio):
        return (
            f"The log records no waiting at all; the simulated today ({today}) has "
            f"{show(recorded.simulated_h, 'int')} h."
        )
    known = not is_missing(recorded.rank)
    rank = f"; job by job the ranks correlate by {show(recorded.rank, 'number')}" if known else ""
    verdict = (
        "near enough to read the differences as this cluster’s"
        if recorded.near(least_wait_s)
        else "far off: the cluster is scheduled otherwise than the simulated today, or has limits, dependencies or "
        "nodes that the simulation does not know. Read the differences as between simulations, and set "
        "whatif.current and the node list right before acting on them"
    )
    return (
        f"On the {show(recorded.jobs, 'int')} jobs with a recorded wait the log has "
        f"{show(recorded.recorded_h, 'int')} h, the simulated today ({today}) "
        f"{show(recorded.simulated_h, 'int')} h, {show(recorded.ratio, 'number')} times as much{rank}; a job’s wait "
        f"is off by a factor of {show(recorded.factor, 'number')}. That "
        f"is {verdict} (near: between {1 / FAR:g} and {FAR:g} times the hours, and a "
        f"rank correlation of {LEAST_RANK:g} or more; both our choice)."
    )


def _lower(title: str) -> str:
    return title.replace("Today: ", "today’s ")
