"""The rule that a cluster runs now, found in its own log: rules replay its jobs, and their waits are compared with the
recorded ones."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs, compile_jobs
from rltune.cluster.layout import Layout, build_layout
from rltune.config.cluster import ClusterConfig
from rltune.config.run import TRAIN_SHARE, SimulationConfig
from rltune.config.whatif import MIN_WAIT_S, Rule
from rltune.evaluation.recorded import FAR, LEAST_RANK, Nearness, nearness
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import job_table
from rltune.traces.columns import TraceMeta
from rltune.traces.estimates import estimate_jobs
from rltune.traces.split import split_points

POLICIES = ("multifactor_size", "fifo", "multifactor", "sjf", "saf")
BACKFILLS = ("easy", "conservative", "greedy", "none")
CANDIDATES = tuple(product(POLICIES, BACKFILLS))
"""(Order, backfill) of rules that clusters run, the more usual first (our choice): Slurm's priority, first come first served,
shortest or smallest first; with backfilling that respects the first job's reservation (EASY) or every job's, as Slurm's plan
does (conservative), starting whatever fits, as Kubernetes does, or nothing before the first job."""
MEANING = "easy, conservative: backfilling; greedy: whatever fits starts; none: without backfilling"
MOST_JOBS = 12_000
"""Jobs to replay at most, the last ones; a quarter of that if jobs ask for more than the cluster has, since queues are long
then. Some seconds in all, either way."""
WARM_UP = 0.1
"""Share of them that fill the cluster first and are not compared."""
AS_NEAR = 1.02
"""Rules whose waits are off by at most this factor more than the nearest rule's are hardly distinguishable from it (our choice)."""
SHOWN = 10
"""Rules in the table, the nearest ones."""
NAMED = 4
"""Rules to name that are hardly distinguishable from the nearest."""

RuleFits = dict[tuple[str, str], Nearness]
"""(Order, backfill) → how near its waits are to the recorded ones, the nearest first."""


def compare_rules(fitted: pd.DataFrame, meta: TraceMeta, cluster: ClusterConfig, estimate: str) -> RuleFits:
    """How near each rule's waits are to the recorded ones, the nearest first; empty if the log records none.

    It uses only jobs before the measured tenth, so that the report's comparison there is a check.
    """
    end = split_points(len(fitted), TRAIN_SHARE).test[0]
    estimate_s = estimate_jobs(fitted, meta, estimate, 0, None, None)["estimate_s"].to_numpy()
    jobs = compile_jobs(fitted, estimate_s, cluster).take(np.arange(end))
    return replay_rules(jobs, build_layout(cluster), fitted["wait_s"].to_numpy(float)[:end])


def replay_rules(jobs: Jobs, layout: Layout, recorded_s: np.ndarray) -> RuleFits:
    """The candidates on these jobs, compared with the recorded waits [J] (s, NaN: not known); empty if none is recorded, or
    nobody waited."""
    total, (begin, number) = len(recorded_s), span(jobs, layout)
    compared = slice(begin + round(WARM_UP * number), total)
    if not np.nansum(recorded_s[compared]) > 0:
        return {}
    fits = {}
    for policy, backfill in CANDIDATES:
        scheduler = SchedulerConfig(policy, backfill, **SimulationConfig().model_dump())
        table = job_table(jobs, simulate(jobs, layout, np.array([begin]), np.array([number]), scheduler))
        wait_s = np.full(total, np.nan)
        wait_s[table["job"]] = table["wait_s"]
        fits[policy, backfill] = nearness(wait_s[compared], recorded_s[compared])
    return dict(sorted(fits.items(), key=lambda of: of[1].factor))


def span(jobs: Jobs, layout: Layout) -> tuple[int, int]:
    """(First job, number of jobs) of the replay."""
    crowded = (jobs.gpus * jobs.run_s).sum() > layout.gpus * np.ptp(jobs.submit_s)
    number = min(len(jobs.row), MOST_JOBS // 4 if crowded else MOST_JOBS)
    return len(jobs.row) - number, number


def as_near(fits: RuleFits) -> list[tuple[str, str]]:
    """The nearest of some rules, and those that are hardly distinguishable from it."""
    least = next(iter(fits.values())).factor
    return [rule for rule, it in fits.items() if it.factor <= AS_NEAR * least]


@dataclass(frozen=True)
class CurrentPolicy:
    """The rule that a cluster runs now, and how that is known."""

    rule: Rule
    why: str
    """For a comment next to it."""

    @classmethod
    def choose(cls, fits: RuleFits, policy: str | None = None, backfill: str | None = None) -> CurrentPolicy:
        """What the user gives; for the rest the nearest rule, or the most usual of those hardly distinguishable from it;
        multifactor_size and easy if nothing is known."""
        possible = {rule: it for rule, it in fits.items() if policy in (None, rule[0]) and backfill in (None, rule[1])}
        if policy is None and backfill is None:
            source = "found in the log" if fits else "assumed, since the log shows no waits"
        else:
            source = f"as given{'' if policy and backfill else ', the rest found in the log' if possible else ', the rest assumed'}"
        chosen = (policy or "multifactor_size", backfill or "easy")
        if possible:
            chosen = min(as_near(possible), key=CANDIDATES.index)
        rule = Rule.model_validate({"policy": chosen[0], "backfill": chosen[1]})
        return cls(rule, f"{source}: {_near(fits[chosen])}" if chosen in fits else source)


def _near(it: Nearness) -> str:
    """`1.07 times the recorded hours, rank correlation 0.78: near`."""
    rank = "unknown" if np.isnan(it.rank) else f"{it.rank:.2f}"
    return f"{it.ratio:.3g} times the recorded hours, rank correlation {rank}: {'near' if it.near(MIN_WAIT_S) else 'FAR OFF'}"


def describe(fits: RuleFits, current: CurrentPolicy) -> str:
    """The candidates compared with the log, and what that means, line by line."""
    chosen = (current.rule.policy, current.rule.backfill)
    if not fits:
        return (
            f"current rule: the log shows no waits (no starts, or nobody waited), so it cannot be found there; {' '.join(chosen)} is "
            f"{current.why}. The report compares everything with it"
            + (
                ""
                if current.why == "as given"
                else ": say what your cluster does (--current-policy, --current-backfill)"
            )
        )
    nearest, first = next(iter(fits.items()))
    lines = [
        f"current rule ({MEANING}): rules on {first.jobs:,} jobs before the measured tenth, whose recorded mean wait is "
        f"{first.recorded_mean_s:,.0f} s",
        f"  {'order':<17}{'backfill':<13}{'mean wait':>12}{'of recorded':>13}{'rank':>7}{'off by':>8}",
    ]
    for i, (rule, it) in enumerate(fits.items()):
        if i < SHOWN or rule == chosen:
            mark = "  nearest" * (rule == nearest) + "  chosen" * (rule == chosen)
            wait = f"{it.simulated_mean_s:>10,.0f} s{it.ratio:>13.2f}{it.rank:>7.2f}{it.factor:>8.2f}"
            lines.append(f"  {rule[0]:<17}{rule[1]:<13}{wait}{mark}")
    lines += [
        "  rank: correlation with the recorded waits; off by: the factor by which a job's wait is off, geometric mean",
        f"  chosen: {' '.join(chosen)}, {current.why} (near: {1 / FAR:g} to {FAR:g} times the hours, rank correlation "
        f"{LEAST_RANK:g} or more)",
    ]
    if others := [" ".join(rule) for rule in as_near(fits) if rule != nearest]:
        more = f", and {len(others) - NAMED} more" if len(others) > NAMED else ""
        lines.append(
            f"  hardly distinguishable from the nearest: {', '.join(others[:NAMED])}{more}; the most usual of them is "
            "chosen, unless you give one"
        )
    if not any(it.near(MIN_WAIT_S) for it in fits.values()):
        lines.append(
            "  NO RULE IS NEAR: the report will compare simulations of a cluster that is not quite yours, and advise "
            "against acting on them. Look for nodes missing in the list, jobs missing in the log (another partition on the "
            "same nodes, jobs without GPUs), limits per user, reservations, downtimes, dependencies, a wrong unit of time "
            "limits"
        )
    return "\n".join(lines)
