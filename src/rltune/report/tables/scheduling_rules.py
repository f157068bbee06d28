"""How much of a gain comes from the baseline's rules: orders under ever less wasteful rules, and the agent."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import holm_note, policy_title, where, with_holm
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
TITLES = {step: ": ".join(words) for step, words in STEPS.items()}
"""`a: chosen job blocks all pools`."""
AGENT = "agent"
TESTED = {"less_p": "less_holm"}


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
    rules = ("its own: " + rule_steps["backfill"]).where(rule_steps["who"] == AGENT, rule_steps["step"].map(TITLES))
    stars = rule_steps["best"].map({True: " ★", False: ""})
    frame = with_holm(rule_steps.assign(title=pd.Series(titles, rule_steps.index) + stars, rules=rules), TESTED)
    return describe(
        "scheduling-rules-numbers",
        frame,
        confidence=confidence,
        workloads=[_facts(part) for _, part in frame.groupby("workload", sort=False)],
        steps=STEPS,
        holm=holm_note(frame, TESTED, "over the step before", confidence),
    ), frame


def _facts(part: pd.DataFrame) -> dict[str, Any]:
    """What a sentence on a workload's rows needs; ``same``: its reference order under the agent's own backfill rule, none
    where its seeds chose several."""
    agent, order = where(part, who=AGENT).iloc[0], where(part, who="order")
    mine, best = where(order, policy=agent["reference"]), order[order["best"]].iloc[0]
    same = where(mine[~mine["step"].isin(["released", "own_pool"])], backfill=agent["backfill"])
    return {
        "name": policy_title(agent["reference"]),
        "agent": agent.to_dict(),
        "start": where(mine, step="released").iloc[0].to_dict(),
        "best": best.to_dict() | {"title": scheduler_title(best["policy"])},
        "same": same.to_dict("records"),
    }
