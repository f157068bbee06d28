"""What is behind the gains: scheduling rules, groups of jobs, and clusters that keep up with their load."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from rltune.report.artefact import Table
from rltune.report.artefacts import describe
from rltune.report.common import holm_note, scheduler_titles, where, with_holm
from rltune.report.style import policy_title, scheduler_title

STEPS = {
    "released": ("a", "chosen job blocks all pools"),
    "own_pool": ("b", "blocks its own pool only"),
    "reranked": ("c", "ranked again at every event"),
    "greedy": ("d", "any job that fits may start"),
    "easy": ("e", "EASY"),
    "conservative": ("f", "conservative"),
}
"""Steps: letter, and the rule that changes there."""
TITLES = {step: ": ".join(words) for step, words in STEPS.items()}
"""`a: chosen job blocks all pools`."""
AGENT = "agent"
TESTED = {"less_p": "less_holm"}


def scheduling_rules(rule_steps: pd.DataFrame) -> Table:
    """The table `scheduling-rules-numbers`: one row per workload × order × step, and one per agent.

    ``rule_steps`` as the evaluation gives it. The frame is the same with `title` (the order, ★ where no other order and
    step waits less) and `rules` (the step).
    """
    of_agent, stars = rule_steps["who"] == AGENT, rule_steps["best"].map({True: " ★", False: ""})
    agents = "RLTune on " + scheduler_titles(rule_steps.assign(backfill=rule_steps["base_backfill"]))
    agents += (", " + rule_steps["other"]).where(rule_steps["other"] != "", "")
    titles = rule_steps["policy"].map(policy_title).mask(of_agent, agents)
    rules = rule_steps["step"].map(TITLES).mask(of_agent, "its own: " + rule_steps["backfill"])
    frame = with_holm(rule_steps.assign(title=titles + stars, rules=rules), TESTED)
    return describe(
        "scheduling-rules-numbers",
        frame,
        workloads=[_rule_facts(part) for _, part in frame.groupby("workload", sort=False)],
        steps=STEPS,
        holm=holm_note(frame, TESTED, "over the step before"),
    ), frame


def _rule_facts(part: pd.DataFrame) -> dict[str, Any]:
    """Facts for the sentence on a workload; ``same``: its reference order under the agent's own backfill rule, none
    where its seeds chose several."""
    agent, orders = where(part, who=AGENT).iloc[0], where(part, who="order")
    reference, best = where(orders, policy=agent["reference"]), orders[orders["best"]].iloc[0]
    same = where(reference[~reference["step"].isin(["released", "own_pool"])], backfill=agent["backfill"])
    return {
        "name": policy_title(agent["reference"]),
        "agent": agent.to_dict(),
        "start": where(reference, step="released").iloc[0].to_dict(),
        "best": best.to_dict() | {"title": policy_title(best["policy"])},
        "same": same.to_dict("records"),
    }


def scheduler_names(frame: pd.DataFrame) -> pd.Series:
    """`Base: FIFO`, `Best heuristic: SAF + EASY`, `RLTune`, of the columns scheduler, policy and backfill."""
    kinds = frame["scheduler"].map({"base": "Base: ", "strong": "Best heuristic: "})
    return (kinds + scheduler_titles(frame)).fillna("RLTune")


def fairness(unequal: pd.DataFrame, without: dict[str, list[str]]) -> Table:
    """The table `fairness-numbers`: one row per workload × grouping × scheduler.

    ``unequal``: workload, data, sequence_jobs, grouping, policy, backfill, and the columns of
    rltune.evaluation.groups.unequal. ``without``: grouping → workloads that do not have it. The frame is the same with
    `title` (the scheduler).
    """
    frame = unequal.assign(title=scheduler_names(unequal))
    return describe("fairness-numbers", frame, unknown=without.items()), frame


def losers(found: pd.DataFrame, without: dict[str, list[str]]) -> Table:
    """The table `fairness-losers`: one row per workload × grouping × group that waits longer in total under RLTune than
    under the base policy, the largest first. ``found``: workload, data, grouping, policy, backfill (the base's) and the
    columns of rltune.evaluation.groups.losers; ``without`` as for `fairness`."""
    frame = found.assign(base=scheduler_titles(found))
    return describe("fairness-losers", frame, unknown=without.items()), frame


LOADS = {"slice": "Slice", "balanced": "Balanced"}
RLTUNE = "rltune"
LOAD_TESTED = {f"{load}_p": f"{load}_holm" for load in LOADS}


def loads_compared(loaded: pd.DataFrame, too_short: Sequence[str] = ()) -> Table:
    """The table `loads-compared-numbers`: one row per workload × scheduler, both clusters side by side.

    ``loaded`` as rltune.evaluation gives it; the frame is the same with `title` (the scheduler, ★ where it is the best
    heuristic of the slice, ☆ of the balanced cluster). ``too_short``: workloads that were left out, in words.
    """
    title = scheduler_titles(loaded).mask(loaded["role"] == RLTUNE, "RLTune, trained on the slice")
    for load, star in (("slice", " ★"), ("balanced", " ☆")):
        title += loaded[f"{load}_best"].map({True: star, False: ""})
    fewest = loaded[[f"{load}_windows" for load in LOADS]].min(axis=1)
    frame = with_holm(loaded.assign(title=title, windows=fewest), LOAD_TESTED).drop(columns="windows")
    idle = frame.groupby("workload")[[f"{load}_wait_s" for load in LOADS]].max().eq(0)
    workloads = [
        row
        | {"base_title": scheduler_title(row["base"], row["base_backfill"])}
        | {f"{load}_idle": idle.loc[row["workload"], f"{load}_wait_s"] for load in LOADS}
        for row in frame.drop_duplicates("workload").to_dict("records")
    ]
    return describe(
        "loads-compared-numbers",
        frame,
        workloads=workloads,
        too_short=too_short,
        loads=LOADS,
        holm=holm_note(frame, LOAD_TESTED, "over base policies"),
    ), frame
