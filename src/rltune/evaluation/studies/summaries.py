"""From results by window to what the report shows of them: means, steps and shares with intervals."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.evaluation.compare import where
from rltune.evaluation.groups import LARGE, SIZES, by_group, in_order, losers, unequal
from rltune.evaluation.intervals import NAN, Improvement, Intervals
from rltune.evaluation.studies.scheduling_rules import AGENT, BOUND, EXACT, GIVEN, STEPS
from rltune.simulator.fairness import UNKNOWN

BASIC = ("fifo", "none")
"""The heuristic that everything is compared with where a run has it."""
WHO = ["policy", "base_backfill", "other"]
"""Columns that tell the agents of a workload apart."""
GROUPINGS = {"user": "user", "vc": "virtual cluster", "size": "job size"}
"""Columns by which jobs are grouped, and what they are called."""
WORKLOAD = ["workload", "data", "sequence_jobs"]


def rule_steps(results: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
    """One row per workload × order × step, and one an agent, from scheduling_rules.rule_steps.

    wait_s: mean; before_s: that of the step before (of the first: itself; of an agent: of the first step of its base
    policy, or of fifo where that is not among the orders); less: how much less than there, a fraction with interval
    (less_low, less_high, less_p); share: of what the first agent of the workload gains over the first step of reference, how much is gained here (share_low,
    share_high; NaN where it gains nothing); best: whether no other order and step waits less; reference: the base
    policy in question (fifo where its own is not among the orders); base_backfill and other, which tell agents apart
    (empty of orders).
    """
    rows = []
    for part, about in _workloads(results, "pools"):
        orders, by_agents = part[part["who"] == "order"], part[part["who"] == AGENT]
        names = list(dict.fromkeys(orders["policy"]))
        first = by_agents["policy"].iloc[0]
        reference = first if first in names else BASIC[0]
        agents = by_agents[[*WHO, "backfill"]].drop_duplicates().to_dict("records")
        start = _waits(orders, policy=reference, step="released")
        whole = _waits(by_agents, **{name: agents[0][name] for name in WHO})
        least = orders.groupby(["policy", "step"])["wait_s"].mean().idxmin()

        def add(here: np.ndarray, before: np.ndarray | None, **values: object) -> None:
            less = intervals.less(here, before) if before is not None else Improvement()
            share = intervals.share(start, here, whole)
            waits = {"wait_s": here.mean(), "before_s": (here if before is None else before).mean()}
            gains = less.columns("less", p=True) | share.columns("share")
            rows.append({**about, **values, **waits, **gains, "reference": reference})

        for policy in names:
            before = None
            of_order = {"who": "order", "policy": policy, "base_backfill": "", "other": ""}
            for step, rules in STEPS.items():
                here = _waits(orders, policy=policy, step=step)
                best = (policy, step) == least
                add(here, before, **of_order, step=step, backfill=rules.backfill, best=best)
                before = here
        for agent in agents:
            known = agent["policy"] if agent["policy"] in names else BASIC[0]
            here = _waits(by_agents, **{name: agent[name] for name in WHO})
            add(here, _waits(orders, policy=known, step="released"), who=AGENT, **agent, step="", best=False)
    return pd.DataFrame(rows)


def headroom(results: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
    """One row per workload × scheduler of interest, from scheduling_rules.headroom.

    what: basic (FIFO, nothing behind the head; where the run has it), strong (the heuristic that waits least on these
    windows), agent (the first agent), same_exact (the strong heuristic with exact run times), strong_exact (the one
    that waits least with these), bound. policy, backfill; wait_s: mean; less: than the strong heuristic, a fraction
    with interval (low, high); over_bound: times the bound (NaN where that is 0).
    """
    rows = []
    for part, about in _workloads(results):
        kinds = {kind: part[part["kind"] == kind] for kind in (GIVEN, EXACT, AGENT, BOUND)}
        strong, exact = (_least(kinds[kind]) for kind in (GIVEN, EXACT))
        by_agents = kinds[AGENT]
        kinds[AGENT] = by_agents[(by_agents[WHO] == by_agents[WHO].iloc[0]).all(axis=1)]
        agent = tuple(kinds[AGENT][["policy", "backfill"]].iloc[0])
        examined = {
            "basic": (GIVEN, BASIC),
            "strong": (GIVEN, strong),
            "agent": (AGENT, agent),
            "same_exact": (EXACT, strong),
            "strong_exact": (EXACT, exact),
            "bound": (BOUND, ("", "")),
        }
        theirs = _waits(kinds[GIVEN], policy=strong[0], backfill=strong[1])
        bound = _waits(kinds[BOUND]).mean()
        for what, (kind, (policy, backfill)) in examined.items():
            here = _waits(kinds[kind], policy=policy, backfill=backfill)
            if not len(here):
                continue
            less = intervals.less(here, theirs) if what != "strong" else Improvement()
            row = {**about, "what": what, "policy": policy, "backfill": backfill, "wait_s": float(here.mean())}
            over_bound = float(here.mean() / bound) if bound > 0 else NAN
            rows.append({**row, **dict(zip(("less", "low", "high"), less)), "over_bound": over_bound})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Fairness:
    """Fairness on all workloads: what its tables and figures show."""

    sizes: pd.DataFrame
    """`by_group` by job size, with workload, data, sequence_jobs, policy, backfill."""
    unequal: pd.DataFrame
    """`unequal` of every grouping, with the same columns and grouping."""
    losers: pd.DataFrame
    """`losers` of users, virtual clusters and job sizes, with the same columns; policy and backfill are the base's."""
    without: dict[str, list[str]]
    """Grouping → workloads of which it is not known of any job, or the same of all."""


def fairness(jobs: pd.DataFrame, intervals: Intervals) -> Fairness:
    """Groups of jobs under the schedulers of scheduling_rules.jobs_of."""
    sizes, inequality, worst = [], [], []
    without: dict[str, list[str]] = {name: [] for name in GROUPINGS.values()}
    for workload, part in jobs.groupby("workload", sort=False):
        about = part[WORKLOAD].iloc[0].to_dict()
        who = part[["scheduler", "policy", "backfill"]].drop_duplicates()
        base = who[who["scheduler"] == "base"].iloc[0][["policy", "backfill"]].to_dict()
        for column, name in GROUPINGS.items():
            grouped = part.assign(group=part[column].astype(object).where(part[column].notna(), UNKNOWN).astype(str))
            if column != "size" and grouped["group"].nunique() < 2:
                without[name].append(str(workload))
                continue
            shared = unequal(grouped, "base", intervals).merge(who, on="scheduler")
            inequality.append(shared.assign(**about, grouping=name))
            worst.append(losers(grouped, "base", "rltune").assign(**about, grouping=name, **base))
            if column == "size":
                found = by_group(grouped, "base", intervals).merge(who, on="scheduler").assign(**about)
                sizes.append(in_order(found, (*SIZES, LARGE)))
    return Fairness(*(pd.concat(frames, ignore_index=True) for frames in (sizes, inequality, worst)), without)


def loads(results: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
    """One row per workload × scheduler, from scheduling_rules.balanced.

    role (baseline | rltune), policy, backfill, base and base_backfill (what it is compared with) and, for the slice and
    the balanced cluster, as ``slice_…`` and ``balanced_…``: cluster, offered, windows, wait_s, less: than the agent's
    base policy there, a fraction with interval (low, high, p; NaN where nobody waits), best (whether it waits least of
    the heuristics there; none where nobody waits).
    """
    rows = []
    for part, about in _workloads(results):
        base = part[part["role"] == "base"].iloc[0]
        about = {name: about[name] for name in WORKLOAD}
        against = {"base": base["policy"], "base_backfill": base["backfill"]}
        who = part[part["role"] != "base"][["role", "policy", "backfill"]].drop_duplicates()
        for scheduler in who.to_dict("records"):
            row = {**about, **scheduler, **against}
            for load, here in part.groupby("load", sort=False):
                waits, theirs = _waits(here, **scheduler), _waits(here, role="base")
                simple = here[here["role"] == "baseline"]
                best = scheduler["role"] == "baseline" and simple["wait_s"].any()
                found = {
                    **here[["cluster", "offered"]].iloc[0].to_dict(),
                    **{"windows": len(theirs), "wait_s": float(waits.mean())},
                    **dict(zip(("less", "low", "high", "p"), intervals.less(waits, theirs))),
                    "best": bool(best and (scheduler["policy"], scheduler["backfill"]) == _least(simple)),
                }
                row |= {f"{load}_{name}": value for name, value in found.items()}
            rows.append(row)
    return pd.DataFrame(rows)


def _workloads(results: pd.DataFrame, *more: str) -> Iterator[tuple[pd.DataFrame, dict[str, object]]]:
    """The rows of each workload and what describes it."""
    for _, part in results.groupby("workload", sort=False):
        about = part[[*WORKLOAD, *more]].iloc[0].to_dict()
        yield part, {**about, "windows": part["window"].nunique()}


def _waits(frame: pd.DataFrame, **values: str) -> np.ndarray:
    """Mean waits of the windows in order of time [W]."""
    return where(frame, **values).sort_values("window")["wait_s"].to_numpy(float)


def _least(frame: pd.DataFrame) -> tuple[str, str]:
    """(policy, backfill) of the least mean wait."""
    return frame.groupby(["policy", "backfill"])["wait_s"].mean().idxmin()
