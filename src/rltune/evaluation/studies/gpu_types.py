"""Which GPU type a job gets, where types run it at different speeds: rules against one another on the same windows.

Rules are the run's heuristic policies under BACKFILLS with a type rule (rltune.cluster.types). Those that plan choose how many nodes
a job gets too, but for AlloX's, and may have a price of GPU time, chosen on windows of the validation part. Trained agents order the queue under the
scheduler that they chose; next to each, that scheduler with the policy it started from.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from operator import itemgetter

import numpy as np
import pandas as pd

from rltune.agent.policy_file import TrainedPolicy
from rltune.cluster.fit import with_wrong_speeds
from rltune.cluster.types import PRICES
from rltune.cluster.workload import Workload
from rltune.config import Cell, RunConfig
from rltune.evaluation.contenders import Contender, contender_of, scheduler_used, simulate_windows
from rltune.evaluation.evaluate import test_windows
from rltune.evaluation.intervals import Improvement, Intervals
from rltune.simulator.bound import lower_bound
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.metrics import chunk_table, job_table
from rltune.simulator.state import State
from rltune.traces.split import disjoint_windows, spread

BACKFILLS = ("easy", "conservative")
SPREAD = "soonest_end"
"""Locality under which a job is spread over more nodes where it is expected to complete sooner then."""
RULE = ["agent", "network", "policy", "backfill", "locality", "types", "gpu_price"]
"""Columns that name a rule: ``agent`` is the cell of the agent that chose it, "" for none; with ``network`` it orders the queue."""
MEANS = ["jct_s", "excess_s", "wait_s", "bsld", "largest_wait_s"]
USED = "used_"
"""Beginning of the columns with the share of a GPU type's time that is used, between first and last submission."""


def rules(policies: Sequence[str], priced: bool) -> list[SchedulerConfig]:
    """Those without a price; or those whose price is to be chosen: the earliest completion, and order and type planned together."""
    if priced:
        planned = (("least", PRICES), ("joint", (0.0, *PRICES)))
        return [
            SchedulerConfig(policy, "conservative", locality=SPREAD, types=types, gpu_price=price)
            for types, prices in planned
            for policy, price in product(policies, prices)
        ]
    free = product(policies, BACKFILLS, ("any", "fastest_free", "fastest_only"))
    return [
        *(SchedulerConfig(policy, backfill, types=types) for policy, backfill, types in free),
        *(SchedulerConfig(policy, "conservative", locality=SPREAD, types="least") for policy in policies),
        *(SchedulerConfig(policy, "conservative", types="allox") for policy in policies),
    ]


def contender(config: RunConfig, rule: SchedulerConfig) -> Contender:
    """A rule under the run's ``simulation``, but for sticky_head: plans are made for a queue a pool."""
    return Contender(replace(rule, **config.simulation.model_dump(exclude={"sticky_head"})), lookahead=config.lookahead)


def windows(
    workload: Workload,
    config: RunConfig,
    agents: Mapping[Cell, TrainedPolicy] = {},
    progress: Callable[[str], None] = lambda text: None,
) -> pd.DataFrame:
    """A row per rule × test window of the shortest length: RULE, window, MEANS, ``used_`` of each type and ``bound_s``.

    Of the rules with a price, those of each policy's best price on the validation windows, for each rule for the type. ``bound_s``: rltune.simulator.bound.
    """
    length, first = min(test_windows(workload.split, config.evaluation).items())
    begin, end = workload.split.validation
    known = np.empty(0, np.int64)
    if end - begin >= length:
        known = spread(disjoint_windows(begin, end, length), config.evaluation.max_windows)
    best: dict[tuple[str, str], tuple[float, SchedulerConfig]] = {}
    policies = config.evaluation.baseline_policies
    for scheduler in rules(policies, priced=True) if len(known) else []:
        found = float(run_rule(workload, contender(config, scheduler), known, length)["excess_s"].mean())
        key = scheduler.policy, scheduler.types
        best[key] = min(best.get(key, (np.inf, scheduler)), (found, scheduler), key=itemgetter(0))
    bounds = [lower_bound(workload.jobs, workload.layout, int(f), length).jct_s for f in first]
    frames = []
    shown = [*rules(policies, priced=False), *(chosen for _, chosen in best.values())]
    everyone = [("", workload, contender(config, scheduler)) for scheduler in shown]
    for cell, policy in agents.items():
        agent = contender_of(config, cell, policy)
        scheduler, jobs = scheduler_used(workload, agent, cell.name)
        everyone += [
            (cell.name, replace(workload, jobs=jobs), replace(agent, scheduler=scheduler, policy=None)),
            (cell.name, workload, agent),
        ]
    for name, work, one in everyone:
        frames.append(run_rule(work, one, first, length, name).assign(bound_s=bounds))
        named = " ".join(str(value) for value in frames[-1][RULE[2:]].iloc[0] if value) + (f", {name}" if name else "")
        progress(f"{len(first)} windows of {length} jobs, {named}: mean completion {frames[-1]['jct_s'].mean():.0f} s")
    return pd.concat(frames, ignore_index=True)


def summary(found: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
    """A row per rule of one workload: RULE, means, ``less``: how much less excess than under the best rule without a price, in
    hindsight, with interval (less_low, less_high) and less_p; of agents and of order and type planned together also
    ``less_priced``, than under the best rule of the earliest completion with a price, and of agents with their network
    ``less_start``, than without; ``reference``: whether it is the former rule; ``best``: of all."""
    means = found.groupby(RULE, sort=False).mean(numeric_only=True)
    excess, level = means["excess_s"], means.index.get_level_values
    rule = (level("agent") == "") & (level("types") != "joint")
    has_price = level("gpu_price") > 0
    reference = excess[rule & ~has_price].idxmin()
    priced = excess[rule & has_price].idxmin() if (rule & has_price).any() else None
    by_rule = {name: part.sort_values("window")["excess_s"].to_numpy() for name, part in found.groupby(RULE)}
    rows = []
    for name, row in means.iterrows():
        less = Improvement() if name == reference else intervals.less(by_rule[name], by_rule[reference])
        agent, network, *rest = name
        has_rival = priced is not None and (agent or "joint" in rest)
        than = intervals.less(by_rule[name], by_rule[priced]) if has_rival else Improvement()
        start = intervals.less(by_rule[name], by_rule[agent, False, *rest]) if network else Improvement()
        rows.append(
            {
                **dict(zip(RULE, name)),
                **row.drop("window").to_dict(),
                "slower_s": row["excess_s"] - row["wait_s"],
                "run_s": row["jct_s"] - row["excess_s"],
                **less.columns("less", p=True),
                **than.columns("less_priced"),
                **start.columns("less_start"),
                "reference": name == reference,
                "windows": len(by_rule[name]),
            }
        )
    frame = pd.DataFrame(rows)
    return frame.assign(best=frame["excess_s"] == frame["excess_s"].min())


def run_rule(workload: Workload, contender: Contender, first: np.ndarray, length: int, agent: str = "") -> pd.DataFrame:
    """A row per window of ``length`` jobs from job ``first[s]`` under one rule: RULE, window, MEANS and ``used_`` of each type."""
    table, state = simulate_windows(workload, contender, first, length)
    used = utilisation(workload, state).add_prefix(USED)
    network = contender.policy is not None
    return table[["window", *MEANS, *RULE[2:]]].assign(agent=agent, network=network, **used)


def under_wrong_speeds(workload: Workload, config: RunConfig, found: pd.DataFrame, share: float) -> pd.DataFrame:
    """As :func:`windows`, where schedulers are given run times on each type that are off by up to ``share``: of each rule for the
    type, without and with a price, the order and backfill rule of the least excess in ``found``, with true speeds."""
    length, first = min(test_windows(workload.split, config.evaluation).items())
    means = found[found["agent"] == ""].groupby(RULE, as_index=False)["excess_s"].mean()
    best = means.loc[means.groupby(["types", means["gpu_price"] > 0])["excess_s"].idxmin()]
    jobs = with_wrong_speeds(workload.jobs, share, np.random.default_rng(config.evaluation.seed))
    rows = best[RULE[2:]].to_dict("records")
    given = replace(workload, jobs=jobs)
    return pd.concat([run_rule(given, contender(config, SchedulerConfig(**row)), first, length) for row in rows])


def utilisation(workload: Workload, state: State) -> pd.DataFrame:
    """Share of each GPU type's time that is used between first and last submission: a row per sequence, a column per type."""
    jobs = job_table(workload.jobs, state)
    span = jobs.groupby("sequence")["submit_s"].agg(["min", "max"])
    last = span["max"].to_numpy()[jobs["sequence"]]
    inside = jobs[["sequence", "job"]].assign(
        inside_s=np.maximum(np.minimum(jobs["end_s"], last) - jobs["start_s"], 0.0)
    )
    chunks = chunk_table(state).merge(inside, on=["sequence", "job"])
    seconds = chunks["gpus"] * chunks["inside_s"]
    node = workload.layout.nodes.row
    kind = np.asarray(workload.layout.types, object)[node["type"][chunks["node"]]]
    total = pd.Series(np.bincount(node["type"], weights=node["gpus"]), list(workload.layout.types))
    spent = seconds.groupby([chunks["sequence"], kind]).sum().unstack(fill_value=0.0)
    length_s = (span["max"] - span["min"]).replace(0.0, np.nan)
    return spent.reindex(columns=list(total.index), fill_value=0.0).div(length_s, axis=0) / total
