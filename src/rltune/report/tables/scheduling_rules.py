"""How much of a gain is the baseline's own doing: orders under ever less wasteful rules, beside the agent."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.format import show, show_interval
from rltune.report.style import POLICY_TITLE, scheduler_title
from rltune.report.tables.common import MEAN_OF_SEEDS, data_labels, where
from rltune.report.tables.holm import holm_note, with_holm

STEPS = {
    "released": ("a", "chosen job blocks all pools"),
    "own_pool": ("b", "blocks its own pool only"),
    "reranked": ("c", "ranked anew at every event"),
    "greedy": ("d", "what fits starts"),
    "easy": ("e", "EASY"),
    "conservative": ("f", "conservative"),
}
"""Steps: letter, and what is so from there on."""
AGENT = "agent"
TESTED = {"less_p": "less_holm"}


def step_title(step: str) -> str:
    """`a: chosen job blocks all pools`."""
    return ": ".join(STEPS[step])


def scheduling_rules(rule_steps: pd.DataFrame, confidence: float, source: str = "") -> tuple[Artefact, pd.DataFrame]:
    """The table `scheduling-rules-numbers`: one row a workload × order × step, and one an agent.

    ``rule_steps`` as rltune.evaluation.studies.summaries.rule_steps gives it. The frame is the same with `title` (the order, ★ where no
    other order and step waits less) and `rules` (the step).
    """
    titles = rule_steps["policy"].map(lambda p: POLICY_TITLE.get(p, p))
    agents = rule_steps["who"] == AGENT
    frame = rule_steps.assign(
        title=titles.where(~agents, _agents(rule_steps)) + rule_steps["best"].map({True: " ★", False: ""}),
        rules=[
            f"its own: {b}" if who == AGENT else step_title(r)
            for who, r, b in zip(rule_steps["who"], rule_steps["step"], rule_steps["backfill"], strict=True)
        ],
    )
    frame = with_holm(frame, TESTED)
    artefact = Artefact(
        "scheduling-rules-numbers",
        "table",
        "The baseline’s doing, in numbers",
        caption="Mean wait of the same test windows under the rules of the paper’s released code (a) and, step by "
        "step, under less wasteful ones, without any learning; then RLTune. Brackets: "
        f"{100 * confidence:.0f} % interval, paired by window.",
        data=data_labels(frame),
        source=source,
        columns={
            "workload": Column("Workload"),
            "title": Column("Order", help="★: the least mean wait without learning."),
            "rules": Column("Rules"),
            "wait_s": Column("Mean wait", "s", "seconds"),
            "less": Column(
                "Less than a step before",
                "",
                "percent",
                low="less_low",
                high="less_high",
                help="Of RLTune: less than its base policy under (a).",
            ),
            "less_holm": Column("Holm p", "", "p", help="Of the step, after Holm’s correction over this table."),
            "share": Column(
                "Of RLTune’s gain",
                "",
                "percent",
                low="share_low",
                high="share_high",
                help="Of what the first agent of the workload gains over its base policy under (a), how "
                "much is had here; over 100 %: more than the agent gains.",
            ),
            "pools": Column("Pools", "", "int"),
            "sequence_jobs": Column("Window", "jobs", "int"),
            "windows": Column("Windows", "", "int", help="Disjoint windows of the test part, evenly spread over it."),
        },
        notes=(
            *(_told(part) for _, part in frame.groupby("workload", sort=False)),
            "(a): one queue for the whole cluster; the job chosen stays first until it starts, and until then nothing "
            "else starts anywhere. (b): the same in every pool for itself. (c): at every event of a pool the first of "
            "its queue is chosen anew. (d) to (f) let others go before a job that does not fit: any that fits; those "
            "that leave the first its reservation; those that leave every job before them its own.",
            "Of a cluster with one pool (a) and (b) are the same; of FIFO (b) and (c), for nobody comes before who "
            "came first. A job that waits for one GPU type blocks those of other types in its pool in (a) to (c).",
            "All orders are placed by best fit; RLTune by its own placement. Its own rule is the one it was judged "
            "under, which it may have chosen itself in training.",
            *filter(None, [holm_note(frame, TESTED, "over the step before", confidence)]),
            MEAN_OF_SEEDS,
        ),
    )
    return artefact, frame


def _agents(rule_steps: pd.DataFrame) -> list[str]:
    """`RLTune on SAF + EASY, tuned`: by base policy, its rule, and what else tells an agent from the others."""
    return [
        f"RLTune on {scheduler_title(policy, backfill)}" + (f", {other}" if other else "")
        for policy, backfill, other in rule_steps[["policy", "base_backfill", "other"]].itertuples(
            index=False, name=None
        )
    ]


def _told(part: pd.DataFrame) -> str:
    """What a workload's rows say, in a sentence."""
    agent = where(part, who=AGENT).iloc[0]
    order = where(part, who="order")
    start = where(order, policy=agent["reference"], step="released").iloc[0]
    same = where(
        order[order["step"].isin(["reranked", "greedy", "easy", "conservative"])],
        policy=agent["reference"],
        backfill=agent["backfill"],
    )
    best = order[order["best"]].iloc[0]
    name = POLICY_TITLE.get(agent["reference"], agent["reference"])
    begins = (
        f"{agent['workload']}: {name} waits {show(start['wait_s'], 'seconds')} s under (a), RLTune "
        f"{show(agent['wait_s'], 'seconds')} s."
    )
    best_is = (
        f"{scheduler_title(best['policy'])} in step {STEPS[best['step']][0]} waits {show(best['wait_s'], 'seconds')} s"
    )
    if pd.isna(best["share"]):
        return f"{begins} RLTune gains nothing over that; {best_is}."
    ruled = "".join(
        f"{_share(r)} is had by {name} in step {STEPS[r['step']][0]}, which has RLTune’s own backfill rule, and "
        for _, r in same.iterrows()  # none where its seeds chose several rules
    )
    return f"{begins} Of that gain {ruled}{_share(best)} without learning at all: {best_is}."


def _share(row: pd.Series) -> str:
    between = show_interval(row["share_low"], row["share_high"], "percent")
    return show(row["share"], "percent") + (f" ({between})" if between else "")
