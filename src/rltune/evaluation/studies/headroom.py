"""How much there is to gain at all: heuristics with the estimates given and with exact ones, beside a lower bound."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import SimulationConfig
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.bound import lower_bound
from rltune.simulator.metrics import sequence_table

GIVEN, EXACT, BOUND = "given", "exact", "bound"


def foretold(jobs: Jobs) -> Jobs:
    """The same jobs with their true run times as estimates (a copy)."""
    row = jobs.row.copy()
    row["estimate_s"] = row["run_s"]
    return jobs._replace(row=row)


def heuristics_on(
    jobs: Jobs,
    layout: Layout,
    first: np.ndarray,
    length: int,
    policies: Sequence[str],
    backfills: Sequence[str],
    locality: str,
    simulation: SimulationConfig,
) -> pd.DataFrame:
    """A row a policy × backfill rule × window, with best_fit: policy, backfill, window, first_job, wait_s."""
    frames = []
    for policy, backfill in product(policies, backfills):
        scheduler = SchedulerConfig(policy, backfill, "best_fit", locality, **simulation.model_dump())
        state = simulate(jobs, layout, first, np.full(len(first), length), scheduler)
        waits = sequence_table(jobs, state, layout.gpus)["wait_s"].to_numpy()
        frames.append(
            pd.DataFrame(
                {
                    "policy": policy,
                    "backfill": backfill,
                    "window": np.arange(len(first)),
                    "first_job": first,
                    "wait_s": waits,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def headroom(
    jobs: Jobs,
    layout: Layout,
    first: np.ndarray,
    length: int,
    policies: Sequence[str],
    backfills: Sequence[str],
    locality: str,
    simulation: SimulationConfig,
) -> pd.DataFrame:
    """The rows of :func:`heuristics_on` with the jobs' estimates (kind ``given``), with true run times in their place
    (``exact``), and a row a window of what no schedule goes below (``bound``, without policy and backfill)."""
    asked = (layout, first, length, policies, backfills, locality, simulation)
    bound = pd.DataFrame(
        {
            "policy": "",
            "backfill": "",
            "window": np.arange(len(first)),
            "first_job": first,
            "wait_s": [lower_bound(jobs, layout, int(f), length).wait_s for f in first],
        }
    )
    parts = {GIVEN: heuristics_on(jobs, *asked), EXACT: heuristics_on(foretold(jobs), *asked), BOUND: bound}
    return pd.concat([frame.assign(kind=kind) for kind, frame in parts.items()], ignore_index=True)
