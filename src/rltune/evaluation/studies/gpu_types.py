"""Which GPU type a job gets, where types run it at different speeds: rules against one another on the same windows.

Rules are any policy under any backfill rule with a type rule (rltune.cluster.types). Those of the least expected completion may
have a price of GPU time, chosen on windows of the validation part.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from operator import itemgetter

import numpy as np
import pandas as pd

from rltune.cluster.workload import Workload
from rltune.config import RunConfig
from rltune.evaluation.contenders import Contender, windows_of
from rltune.evaluation.evaluate import test_windows
from rltune.evaluation.intervals import Improvement, Intervals
from rltune.simulator.bound import lower_bound
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.metrics import chunk_table, job_table
from rltune.simulator.state import State
from rltune.traces.split import disjoint_windows, spread

POLICIES = ("fifo", "sjf", "saf")
BACKFILLS = ("easy", "conservative")
PRICES = (0.03, 0.1, 0.3)
RULE = ["policy", "backfill", "types", "gpu_price"]
"""Columns that name a rule."""
MEANS = ["jct_s", "excess_s", "wait_s", "bsld", "largest_wait_s"]
USED = "used_"
"""Beginning of the columns with the share of a GPU type's time that is used, between first and last submission."""


def rules(priced: bool) -> list[SchedulerConfig]:
    """Those without a price, or those with one."""
    if priced:
        return [
            SchedulerConfig(policy, "conservative", types="least", gpu_price=price)
            for policy, price in product(POLICIES, PRICES)
        ]
    free = product(POLICIES, BACKFILLS, ("any", "fastest_free", "fastest_only"))
    return [SchedulerConfig(policy, backfill, types=types) for policy, backfill, types in free] + [
        SchedulerConfig(policy, "conservative", types="least") for policy in POLICIES
    ]


def windows(workload: Workload, config: RunConfig, progress: Callable[[str], None] = lambda text: None) -> pd.DataFrame:
    """A row per rule × test window of the shortest length: RULE, window, MEANS, ``used_`` of each type and ``bound_s``.

    Of the rules with a price, those of each policy's best price on the validation windows. ``bound_s``: rltune.simulator.bound.
    """
    length, first = min(test_windows(workload.split, config.evaluation).items())
    known = spread(disjoint_windows(*workload.split.validation, length), config.evaluation.max_windows)
    best: dict[str, tuple[float, SchedulerConfig]] = {}
    for scheduler in rules(priced=True) if len(known) else []:
        found = float(run_rule(workload, config, scheduler, known, length)["excess_s"].mean())
        best[scheduler.policy] = min(
            best.get(scheduler.policy, (np.inf, scheduler)), (found, scheduler), key=itemgetter(0)
        )
    bounds = [lower_bound(workload.jobs, workload.layout, int(f), length).jct_s for f in first]
    frames = []
    for scheduler in [*rules(priced=False), *(chosen for _, chosen in best.values())]:
        frames.append(run_rule(workload, config, scheduler, first, length).assign(bound_s=bounds))
        named = f"{scheduler.policy} {scheduler.backfill} {scheduler.types} {scheduler.gpu_price:g}"
        progress(f"{len(first)} windows of {length} jobs, {named}: mean completion {frames[-1]['jct_s'].mean():.0f} s")
    return pd.concat(frames, ignore_index=True)


def summary(found: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
    """A row a rule of one workload: RULE, means, ``less``: how much less excess than under the best rule without a price, in
    hindsight, with interval (less_low, less_high) and less_p; ``reference``: whether it is that rule; ``best``: of all."""
    means = found.groupby(RULE, sort=False).mean(numeric_only=True)
    unpriced = means[means.index.get_level_values("gpu_price") == 0]
    reference = unpriced["excess_s"].idxmin()
    by_rule = {rule: part.sort_values("window")["excess_s"].to_numpy() for rule, part in found.groupby(RULE)}
    rows = []
    for rule, row in means.iterrows():
        less = Improvement() if rule == reference else intervals.less(by_rule[rule], by_rule[reference])
        rows.append(
            {
                **dict(zip(RULE, rule)),
                **row.drop("window").to_dict(),
                "slower_s": row["excess_s"] - row["wait_s"],
                "run_s": row["jct_s"] - row["excess_s"],
                **less.columns("less", p=True),
                "reference": rule == reference,
                "windows": len(by_rule[rule]),
            }
        )
    frame = pd.DataFrame(rows)
    return frame.assign(best=frame["excess_s"] == frame["excess_s"].min())


def run_rule(
    workload: Workload, config: RunConfig, scheduler: SchedulerConfig, first: np.ndarray, length: int
) -> pd.DataFrame:
    """A row a window of ``length`` jobs from job ``first[s]`` under one rule: RULE, window, MEANS and ``used_`` of each type."""
    ruled = SchedulerConfig.of(config.simulation, scheduler)
    table, state = windows_of(workload, Contender(ruled, lookahead=config.lookahead), first, length)
    used = utilisation(workload, state).add_prefix(USED)
    return table[["window", *MEANS]].assign(**{name: getattr(scheduler, name) for name in RULE}, **used)


def utilisation(workload: Workload, state: State) -> pd.DataFrame:
    """Share of each GPU type's time that is used between first and last submission: a row a sequence, a column a type."""
    jobs = job_table(workload.jobs, state)
    span = jobs.groupby("sequence")["submit_s"].agg(["min", "max"])
    last = span["max"].to_numpy()[jobs["sequence"]]
    inside = np.maximum(np.minimum(jobs["end_s"], last) - jobs["start_s"], 0.0)
    chunks = chunk_table(state)
    lasts = pd.Series(inside.to_numpy(), pd.MultiIndex.from_frame(jobs[["sequence", "job"]]))
    seconds = chunks["gpus"] * lasts.loc[pd.MultiIndex.from_frame(chunks[["sequence", "job"]])].to_numpy()
    node = workload.layout.nodes.row
    kind = np.asarray(workload.layout.types, object)[node["type"][chunks["node"]]]
    total = pd.Series(np.bincount(node["type"], weights=node["gpus"]), list(workload.layout.types))
    spent = seconds.groupby([chunks["sequence"], kind]).sum().unstack(fill_value=0.0)
    length_s = (span["max"] - span["min"]).replace(0.0, np.nan)
    return spent.reindex(columns=list(total.index), fill_value=0.0).div(length_s, axis=0) / total
