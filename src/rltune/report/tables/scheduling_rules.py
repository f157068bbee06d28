"""How much of a gain comes from the baseline's rules: orders under ever less wasteful rules, and the agent."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import holm_note, policy_title, where, with_holm
from rltune.report.format import show, show_interval
from rltune.report.style import scheduler_title

STEPS = {
    "released": ("a", "chosen job blocks all pools"),
    "own_pool": ("b", "blocks its own pool only"),
    "reranked": ("c", "ranked again at every event"),
    "greedy": ("d", "any job that fits may start"),
    "easy": ("e", "EASY"),
    "conservative": ("f", "conservative"),
}
"""Steps: letter, and the rule that changes there."""
AGENT = "agent"
TESTED = {"less_p": "less_holm"}


def step_title(step: str) -> str:
    """`a: chosen job blocks all pools`."""
    return ": ".join(STEPS[step])


def scheduling_rules(rule_steps: pd.DataFrame, confidence: float) -> tuple[Artefact, pd.DataFrame]:
    """The table `scheduling-rules-numbers`: one row per workload × order × step, and one per agent.

    ``rule_steps`` as the evaluation gives it. The frame is the same with `title` (the order, ★ where no other order and
    step waits less) and `rules` (the step).
    """
    titles = [
        policy_title(r["policy"])
        if r["who"] != AGENT
        else f"RLTune on {scheduler_title(r['policy'], r['base_backfill'])}" + (f", {r['other']}" if r["other"] else "")
        for _, r in rule_steps.iterrows()
    ]
    rules = [
        f"its own: {r['backfill']}" if r["who"] == AGENT else step_title(r["step"]) for _, r in rule_steps.iterrows()
    ]
    stars = rule_steps["best"].map({True: " ★", False: ""})
    frame = with_holm(rule_steps.assign(title=pd.Series(titles, rule_steps.index) + stars, rules=rules), TESTED)
    return describe(
        "scheduling-rules-numbers",
        frame,
        confidence=confidence,
        workloads=[_summary(part) for _, part in frame.groupby("workload", sort=False)],
        holm=holm_note(frame, TESTED, "over the step before", confidence),
    ), frame


def _summary(part: pd.DataFrame) -> str:
    """What a workload's rows show, in a sentence."""
    agent, order = where(part, who=AGENT).iloc[0], where(part, who="order")
    mine, name = where(order, policy=agent["reference"]), policy_title(agent["reference"])
    start, best = where(mine, step="released").iloc[0], order[order["best"]].iloc[0]
    waits = [f"{show(row['wait_s'], 'seconds')} s" for row in (start, agent, best)]
    begins = f"{agent['workload']}: {name} waits {waits[0]} under (a), RLTune {waits[1]}."
    best_is = f"{scheduler_title(best['policy'])} in step {STEPS[best['step']][0]} waits {waits[2]}"
    if pd.isna(best["share"]):
        return f"{begins} RLTune gains nothing over that; {best_is}."
    same = where(mine[mine["step"].isin(["reranked", "greedy", "easy", "conservative"])], backfill=agent["backfill"])
    with_rule = "".join(
        f"{name} in step {STEPS[r['step']][0]}, with RLTune’s own backfill rule, has {_share(r)} of that gain; "
        for _, r in same.iterrows()  # none where its seeds chose several rules
    )
    return f"{begins} Without any learning, {with_rule}{best_is}, {_share(best)} of the gain."


def _share(row: pd.Series) -> str:
    between = show_interval(row["share_low"], row["share_high"], "percent")
    return show(row["share"], "percent") + (f" ({between})" if between else "")
