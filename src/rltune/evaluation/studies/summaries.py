"""From results by window to what the report shows of them: means, steps and shares with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.evaluation.groups import LARGE, SIZES, by_group, losers, unequal
from rltune.evaluation.intervals import NAN, Improvement, Intervals
from rltune.evaluation.studies.headroom import BOUND, EXACT, GIVEN
from rltune.evaluation.studies.rule_steps import STEPS
from rltune.simulator.fairness import UNKNOWN

AGENT = "agent"
BASIC = ("fifo", "none")
"""The heuristic that everything is compared with where a run has it."""
WHO = ["policy", "base_backfill", "other"]
"""Columns that tell the agents of a workload apart."""
GROUPINGS = {"user": "user", "vc": "virtual cluster", "size": "job size"}
"""Columns by which jobs are grouped, and what they are called."""


def rule_steps(results: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
    """One row a workload × order × step, and one an agent, of what rltune.pipeline.semantics.ladders gives.

    wait_s: mean; before_s: that of the step before (of the first: itself; of an agent: of the first step of its base
    policy); step: how much less than there, a fraction with interval (step_low, step_high); share: of what the first
    agent of the workload gains over the first step of its base policy, how much is had here (share_low, share_high; NaN
    where it gains nothing); best: whether no other order and step waits less; reference: the base policy in question
    (fifo where its own is not among the orders); base_backfill and other, which tell agents apart (empty of orders).
    """
    rows = []
    for part, about in _workloads(results, ["pools"]):
        orders, mine = part[part["who"] == "order"], part[part["who"] == AGENT]
        first = next(iter(mine["policy"]))
        reference = first if first in set(orders["policy"]) else BASIC[0]
        start = _waits(orders, policy=reference, step="released")
        agents = mine[[*WHO, "backfill"]].drop_duplicates().to_dict("records")
        whole = _waits(mine, **_who(agents[0]))
        least = orders.groupby(["policy", "step"])["wait_s"].mean().idxmin()
        for policy in dict.fromkeys(orders["policy"]):
            before = None
            for step, rules in STEPS.items():
                here = _waits(orders, policy=policy, step=step)
                rows.append(
                    {
                        **about,
                        "who": "order",
                        "policy": policy,
                        "base_backfill": "",
                        "other": "",
                        "step": step,
                        "backfill": rules.backfill,
                        **_step(here, before, start, whole, intervals),
                        "best": (policy, step) == least,
                        "reference": reference,
                    }
                )
                before = here
        for agent in agents:
            here = _waits(mine, **_who(agent))
            known = agent["policy"] if agent["policy"] in set(orders["policy"]) else reference
            before = _waits(orders, policy=known, step="released")
            rows.append(
                {
                    **about,
                    "who": AGENT,
                    **agent,
                    "step": "",
                    **_step(here, before, start, whole, intervals),
                    "best": False,
                    "reference": reference,
                }
            )
    return pd.DataFrame(rows)


def _who(agent: dict[str, str]) -> dict[str, str]:
    return {name: agent[name] for name in WHO}


def _step(
    here: np.ndarray, before: np.ndarray | None, start: np.ndarray, whole: np.ndarray, intervals: Intervals
) -> dict[str, float]:
    step = intervals.less(here, before) if before is not None else Improvement()
    share = intervals.share(start, here, whole)
    return {
        "wait_s": float(here.mean()),
        "before_s": float((here if before is None else before).mean()),
        **dict(zip(("less", "less_low", "less_high", "less_p"), step)),
        **dict(zip(("share", "share_low", "share_high"), share)),
    }


def headroom(results: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
    """One row a workload × what is looked at, of what rltune.pipeline.semantics.rooms gives.

    what: basic (FIFO, nothing behind the head; where the run has it), strong (the heuristic that waits least on these
    windows), agent (the first agent), same_exact (the strong heuristic with exact run times), strong_exact (the one
    that waits least with these), bound. policy, backfill; wait_s: mean; less: than the strong heuristic, a fraction
    with interval (low, high); over_bound: times the bound (NaN where that is 0).
    """
    rows = []
    for part, about in _workloads(results):
        kinds = {kind: part[part["kind"] == kind] for kind in (GIVEN, EXACT, AGENT, BOUND)}
        strong, exact = (_least(kinds[kind]) for kind in (GIVEN, EXACT))
        mine = kinds[AGENT]
        kinds[AGENT] = mine[(mine[WHO] == mine[WHO].iloc[0]).all(axis=1)]
        agent = tuple(kinds[AGENT][["policy", "backfill"]].iloc[0])
        looked = {
            "basic": (GIVEN, BASIC),
            "strong": (GIVEN, strong),
            "agent": (AGENT, agent),
            "same_exact": (EXACT, strong),
            "strong_exact": (EXACT, exact),
            "bound": (BOUND, ("", "")),
        }
        theirs = _waits(kinds[GIVEN], policy=strong[0], backfill=strong[1])
        bound = _waits(kinds[BOUND]).mean()
        for what, (kind, (policy, backfill)) in looked.items():
            here = _waits(kinds[kind], policy=policy, backfill=backfill)
            if not len(here):
                continue
            less = intervals.less(here, theirs) if what != "strong" else Improvement()
            rows.append(
                {
                    **about,
                    "what": what,
                    "policy": policy,
                    "backfill": backfill,
                    "wait_s": float(here.mean()),
                    **dict(zip(("less", "low", "high"), less)),
                    "over_bound": float(here.mean() / bound) if bound > 0 else NAN,
                }
            )
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Paid:
    """Who pays, of all workloads: what the tables and figures of fairness take."""

    sizes: pd.DataFrame
    """`by_group` by job size, with workload, data, sequence_jobs, policy, backfill."""
    unequal: pd.DataFrame
    """`unequal` of every grouping, with the same columns and grouping."""
    losers: pd.DataFrame
    """`losers` of users, virtual clusters and job sizes, with the same columns; policy and backfill are the base's."""
    without: dict[str, list[str]]
    """Grouping → workloads of which it is not known of any job, or the same of all."""


def fairness(jobs: pd.DataFrame, intervals: Intervals) -> Paid:
    """Groups of jobs under the schedulers of what rltune.pipeline.semantics.payers gives."""
    sizes, inequality, worst = [], [], []
    without: dict[str, list[str]] = {name: [] for name in GROUPINGS.values()}
    for workload, part in jobs.groupby("workload", sort=False):
        about = part[["workload", "data", "sequence_jobs"]].iloc[0].to_dict()
        who = part[["scheduler", "policy", "backfill"]].drop_duplicates()
        for column, name in GROUPINGS.items():
            grouped = part.assign(group=part[column].astype(object).where(part[column].notna(), UNKNOWN).astype(str))
            if grouped["group"].nunique() < 2:
                without[name].append(str(workload))
                continue
            shared = unequal(grouped, "base", intervals).merge(who, on="scheduler")
            inequality.append(shared.assign(**about, grouping=name))
            base = who[who["scheduler"] == "base"].iloc[0]
            worst.append(
                losers(grouped, "base", "rltune").assign(
                    **about, grouping=name, policy=base["policy"], backfill=base["backfill"]
                )
            )
            if column == "size":
                order = [size for size in (*SIZES, LARGE) if size in set(grouped["group"])]
                found = by_group(grouped, "base", intervals).merge(who, on="scheduler").assign(**about)
                sizes.append(found.sort_values("group", key=lambda g: g.map(order.index), kind="stable"))
    return Paid(*(pd.concat(frames, ignore_index=True) for frames in (sizes, inequality, worst)), without)


def loads(results: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
    """One row a workload × scheduler, of what rltune.pipeline.semantics.balanced gives.

    role (baseline | rltune), policy, backfill, base (the policy compared with) and, for the slice and the balanced
    cluster, as ``slice_…`` and ``balanced_…``: cluster, offered, windows, wait_s, less: than the agent's base policy
    there, a fraction with interval (low, high; NaN where nobody waits), best (whether it waits least of the heuristics
    there; none where nobody waits).
    """
    rows = []
    for _, part in results.groupby("workload", sort=False):
        about = part[["workload", "data", "sequence_jobs"]].iloc[0].to_dict()
        base = part[part["role"] == "base"].iloc[0]
        who = part[part["role"] != "base"][["role", "policy", "backfill"]].drop_duplicates()
        for role, policy, backfill in who.itertuples(index=False, name=None):
            row = {
                **about,
                "role": role,
                "policy": policy,
                "backfill": backfill,
                "base": base["policy"],
                "base_backfill": base["backfill"],
            }
            for load, here in part.groupby("load", sort=False):
                waits, theirs = _waits(here, role=role, policy=policy, backfill=backfill), _waits(here, role="base")
                less = intervals.less(waits, theirs)
                simple = here[here["role"] == "baseline"]
                best = role == "baseline" and simple["wait_s"].any() and (policy, backfill) == _least(simple)
                found = {
                    "cluster": here["cluster"].iloc[0],
                    "offered": here["offered"].iloc[0],
                    "windows": len(theirs),
                    "wait_s": float(waits.mean()),
                    **dict(zip(("less", "low", "high", "p"), less)),
                    "best": bool(best),
                }
                row |= {f"{load}_{name}": value for name, value in found.items()}
            rows.append(row)
    return pd.DataFrame(rows)


def _workloads(
    results: pd.DataFrame, more: list[str] | None = None
) -> Iterator[tuple[pd.DataFrame, dict[str, object]]]:
    """The rows of each workload and what describes it."""
    for _, part in results.groupby("workload", sort=False):
        about = part[["workload", "data", "sequence_jobs", *(more or [])]].iloc[0].to_dict()
        yield part, {**about, "windows": part["window"].nunique()}


def _waits(frame: pd.DataFrame, **values: str) -> np.ndarray:
    """Mean waits of the windows in order of time [W]."""
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return frame.sort_values("window")["wait_s"].to_numpy(float)


def _least(frame: pd.DataFrame) -> tuple[str, str]:
    """(policy, backfill) of the least mean wait."""
    return frame.groupby(["policy", "backfill"])["wait_s"].mean().idxmin()
