"""Today's order of a user's own cluster: found in the log, or as the user says; what is told and written of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.cluster.fit import compile_jobs
from rltune.cluster.layout import build_layout
from rltune.config.cells import BACKFILLS, POLICIES
from rltune.config.cluster import ClusterConfig
from rltune.config.messages import nearest
from rltune.config.run import SimulationConfig, SplitConfig
from rltune.config.whatif import Rule, WhatIf
from rltune.errors import ConfigError
from rltune.evaluation.recorded import FAR, LEAST_RANK, Nearness
from rltune.evaluation.today import Found, as_near, likely, replayed
from rltune.traces.columns import TraceMeta
from rltune.traces.estimates import estimates
from rltune.traces.split import split_points

SHOWN = 10
"""Rules in the table, the nearest ones."""
NAMED = 4
"""Rules named that are hardly to be told from the nearest."""
LEAST_WAIT_S = WhatIf().least_wait_s
MEANT = "easy, conservative: backfilling; fits: whatever fits starts; none: without backfilling"


@dataclass(frozen=True)
class Today:
    """How a cluster is scheduled today, and how that is known."""

    rule: Rule
    why: str
    """For a comment beside it."""


def find(fitted: pd.DataFrame, meta: TraceMeta, cluster: ClusterConfig, estimate: str) -> Found:
    """How near each rule's waits are to those that the log records, the nearest first; empty where it records none.

    Only jobs before the measured tenth are looked at, so that what the report finds there is a check.
    """
    split = SplitConfig()
    end = split_points(len(fitted), split.train, split.validation).test[0]
    told = estimates(fitted, meta, estimate, 0.0, 0)["estimate_s"].to_numpy()
    jobs = compile_jobs(fitted, told, cluster).take(np.arange(end))
    recorded_s = fitted["wait_s"].to_numpy(float)[:end]
    return replayed(jobs, build_layout(cluster), recorded_s, SimulationConfig().model_dump())


def check(policy: str | None, backfill: str | None) -> None:
    """Refuse words that name no rule. Raises ConfigError."""
    for option, given, allowed in (("today", policy, POLICIES), ("today-backfill", backfill, BACKFILLS)):
        if given is not None and given not in allowed:
            raise ConfigError(f"--{option}: found {given!r}{nearest(given, allowed)}; allowed: {', '.join(allowed)}")


def parse(text: str) -> tuple[str, str | None]:
    """`fifo none` or `fifo` as (order, backfill). Raises ConfigError."""
    words = text.replace(",", " ").split()
    if len(words) not in (1, 2):
        raise ConfigError(f"today: found {text!r}; expected an order and a backfill, such as: fifo none")
    policy, backfill = words[0], words[1] if len(words) == 2 else None
    check(policy, backfill)
    return policy, backfill


def choose(found: Found, policy: str | None = None, backfill: str | None = None) -> Today:
    """What the user says of it, and of what they leave open the nearest, or the most usual of those hardly to be told from
    it; multifactor and easy where nothing is known."""
    fits = {rule: it for rule, it in found.items() if policy in (None, rule[0]) and backfill in (None, rule[1])}
    if policy is None and backfill is None:
        source = "found in the log" if found else "assumed, for the log records no waits"
    else:
        source = f"as given{'' if policy and backfill else ', the rest found in the log' if fits else ''}"
    chosen = likely(fits) if fits else (policy or "multifactor", backfill or "easy")
    rule = Rule.model_validate({"policy": chosen[0], "backfill": chosen[1]})
    return Today(rule, f"{source}: {_near(found[chosen])}" if chosen in found else source)


def answered(found: Found, today: Today, answer: tuple[str, str | None]) -> Today:
    """What the user answered; where that is what was found, that."""
    same = (today.rule.policy, today.rule.backfill) == (answer[0], answer[1] or today.rule.backfill)
    return today if same else choose(found, *answer)


def _near(it: Nearness) -> str:
    """`1.07 times the recorded hours, rank correlation 0.78: near`."""
    rank = "unknown" if np.isnan(it.rank) else f"{it.rank:.2f}"
    return f"{it.ratio:.3g} times the recorded hours, rank correlation {rank}: {_word(it)}"


def _word(it: Nearness) -> str:
    return "near" if it.near(LEAST_WAIT_S) else "FAR OFF"


def told(found: Found, today: Today) -> str:
    """The candidates beside the log, and what to make of it, line by line."""
    chosen = (today.rule.policy, today.rule.backfill)
    if not found:
        return (
            f"today's order: the log records no waits, so that it cannot be found; {' '.join(chosen)} is {today.why}. "
            "Every difference in the report is one to it: say what your cluster does (--today, --today-backfill)"
        )
    nearest, first = next(iter(found)), next(iter(found.values()))
    lines = [
        f"today's order ({MEANT}): rules on {first.jobs:,} jobs before the measured tenth, whose recorded mean wait is "
        f"{first.recorded_mean_s:,.0f} s",
        f"  {'order':<17}{'backfill':<13}{'mean wait':>12}{'of recorded':>13}{'rank':>7}{'off by':>8}",
    ]
    for i, (rule, it) in enumerate(found.items()):
        if i < SHOWN or rule == chosen:
            mark = "  nearest" if rule == nearest else ""
            mark += "  taken" if rule == chosen else ""
            lines.append(
                f"  {rule[0]:<17}{rule[1]:<13}{it.simulated_mean_s:>10,.0f} s{it.ratio:>13.2f}{it.rank:>7.2f}"
                f"{it.factor:>8.2f}{mark}"
            )
    lines.append(
        "  rank: correlation with the recorded waits; off by: the factor by which a job's wait is off, geometric mean"
    )
    lines.append(
        f"  taken: {' '.join(chosen)}, {today.why} (near: {1 / FAR:g} to {FAR:g} times the hours, rank "
        f"correlation {LEAST_RANK:g} or more)"
    )
    if others := [" ".join(rule) for rule in as_near(found) if rule != nearest]:
        more = f", and {len(others) - NAMED} more" if len(others) > NAMED else ""
        lines.append(
            f"  hardly to be told from the nearest: {', '.join(others[:NAMED])}{more}; of these and it the most "
            "usual is taken, unless you say which"
        )
    if not any(it.near(LEAST_WAIT_S) for it in found.values()):
        lines.append(
            "  NONE OF THE RULES IS NEAR: the report will compare simulations of a cluster that is not quite yours, and say "
            "not to act on them. Look for nodes that the list lacks, jobs that the log lacks (another partition on the "
            "same nodes, jobs without GPUs), limits per user, reservations, times without nodes, "
            "dependencies, a wrong unit of time limits"
        )
    return "\n".join(lines)
