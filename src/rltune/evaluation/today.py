"""How a cluster is scheduled today, found in its own log: rules replay its jobs, and their waits are held against those
that were recorded."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.evaluation.recorded import Nearness, nearness
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import job_table

POLICIES = ("multifactor", "fifo", "multifactor_size", "sjf", "saf")
BACKFILLS = ("easy", "conservative", "greedy", "none")
CANDIDATES = tuple(product(POLICIES, BACKFILLS))
"""(Order, backfill) of rules that clusters run, the more usual first (our choice): Slurm's priority, first come first
served, shortest or smallest first; with backfilling that keeps the first job's place (EASY) or every job's, as Slurm's plan
does (conservative), starting whatever fits, as Kubernetes does, or nothing before the first."""
MOST_JOBS = 12_000
"""Replayed at most, the last ones; a quarter where jobs ask for more than the cluster has, since queues are long then.
Some seconds in all, either way."""
WARM_UP = 0.1
"""Share of them that fill the cluster first and are not compared."""
AS_NEAR = 1.02
"""Rules whose waits are off by no more than so many times the nearest one's are hardly to be told from it. Our choice."""

Found = dict[tuple[str, str], Nearness]
"""(Order, backfill) → how near its waits are to the recorded ones, the nearest first."""


def replayed(jobs: Jobs, layout: Layout, recorded_s: np.ndarray, simulation: Mapping[str, Any]) -> Found:
    """The candidates on these jobs, their waits beside the recorded ones [J] (s, NaN: not known); empty where no wait is
    recorded, or nobody waited.

    ``simulation``: what all simulations of a run have in common (rltune.config.run.SimulationConfig).
    """
    total, (begin, number) = len(recorded_s), span(jobs, layout)
    compared = slice(begin + round(WARM_UP * number), total)
    if not np.nansum(recorded_s[compared]) > 0:
        return {}
    found = {}
    for policy, backfill in CANDIDATES:
        scheduler = SchedulerConfig(policy, backfill, **simulation)
        table = job_table(jobs, simulate(jobs, layout, np.array([begin]), np.array([number]), scheduler))
        wait_s = np.full(total, np.nan)
        wait_s[table["job"]] = table["wait_s"]
        found[policy, backfill] = nearness(wait_s[compared], recorded_s[compared])
    return dict(sorted(found.items(), key=lambda of: of[1].factor))


def span(jobs: Jobs, layout: Layout) -> tuple[int, int]:
    """(First job, number of jobs) of the replay."""
    span_s = np.ptp(jobs.submit_s)
    crowded = (jobs.gpus * jobs.run_s).sum() > layout.gpus * span_s
    number = min(len(jobs.row), MOST_JOBS // 4 if crowded else MOST_JOBS)
    return len(jobs.row) - number, number


def as_near(found: Found) -> list[tuple[str, str]]:
    """The nearest of some rules, and those that are hardly to be told from it."""
    least = next(iter(found.values())).factor
    return [rule for rule, it in found.items() if it.factor <= AS_NEAR * least]


def likely(found: Found) -> tuple[str, str]:
    """The nearest of some rules; of those that are hardly to be told from it, the most usual."""
    return min(as_near(found), key=CANDIDATES.index)
