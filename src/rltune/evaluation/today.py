"""How a cluster is scheduled today, found in its own log: rules replay its jobs, and their waits are held against those
that were recorded."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.evaluation.recorded import Nearness, nearness
from rltune.simulator.batch import Setting, simulate
from rltune.simulator.metrics import job_table

POLICIES = ("multifactor", "multifactor_size", "fifo", "sjf", "saf")
BLOCKINGS = ("easy", "conservative", "fits", "none")
CANDIDATES = tuple(product(POLICIES, BLOCKINGS))
"""(Order, blocking) of rules that clusters run: Slurm's priority, first come first served, smallest or shortest first;
with Slurm's backfilling, whose plan has a place for every job it looks at (conservative) or at least for the first
(EASY), starting whatever fits, as Kubernetes does, or nothing before the first. Of equally near ones the first is taken."""
MOST_JOBS = 12_000
"""Replayed at most, the last ones: some seconds in all."""
WARM_UP = 0.1
"""Share of them that fill the cluster first and are not compared."""


def replayed(
    jobs: Jobs, layout: Layout, recorded_s: np.ndarray, simulation: dict[str, object], most_jobs: int = MOST_JOBS
) -> dict[tuple[str, str], Nearness]:
    """(Order, blocking) → how near its waits are to the recorded ones [J] (s, NaN: not known), the nearest first.

    ``simulation``: the other rules of a run (rltune.config.run.Simulation). Empty where no wait is recorded.
    """
    begin = max(0, len(recorded_s) - most_jobs)
    first, n = np.array([begin]), np.array([len(recorded_s) - begin])
    compared = slice(begin + round(WARM_UP * n[0]), None)
    if np.isnan(recorded_s[compared]).all():
        return {}
    found = {}
    for policy, blocking in CANDIDATES:
        state = simulate(jobs, layout, first, n, Setting(policy, blocking, **simulation))
        wait_s = np.full(len(recorded_s), np.nan)
        table = job_table(jobs, state)
        wait_s[table["job"]] = table["wait_s"]
        found[policy, blocking] = nearness(wait_s[compared], recorded_s[compared])
    return dict(sorted(found.items(), key=lambda of: of[1].factor))
