"""The same order of jobs under ever less wasteful rules: what is gained without any learning, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import SimulationConfig
from rltune.policies import FIRST_FAIR, IDS
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table


class Step(NamedTuple):
    """Rules of one step."""

    sticky_head: bool
    """As in SchedulerConfig."""
    backfill: str
    apart: bool
    """Whether every pool is run by itself, so that a head that stays blocks its own pool only."""


STEPS = {
    "released": Step(True, "none", False),
    "own_pool": Step(True, "none", True),
    "reranked": Step(False, "none", False),
    "greedy": Step(False, "greedy", False),
    "easy": Step(False, "easy", False),
    "conservative": Step(False, "conservative", False),
}
"""Steps from the rules of the paper's released code (the job chosen blocks the whole cluster until it starts) on."""


def may_climb(policy: str) -> bool:
    """Whether a built-in order is the same where pools are run apart: not with fair shares, which count use in all."""
    return IDS[policy] < FIRST_FAIR


def ladder(
    jobs: Jobs,
    layout: Layout,
    first: np.ndarray,
    length: int,
    policies: Sequence[str],
    locality: str,
    simulation: SimulationConfig,
) -> pd.DataFrame:
    """A row a policy × step × window: policy, step, backfill, window, first_job, wait_s (the mean over its jobs).

    ``first``: first jobs of windows of ``length`` jobs, each from an idle cluster; all with best_fit, and with the
    overrun rule and the contention of ``simulation`` (its ``sticky_head`` is the ladder's matter). Raises ValueError for a
    policy that goes by fair shares.
    """
    wrong = [p for p in policies if not may_climb(p)]
    if wrong:
        raise ValueError(f"policies: found {', '.join(wrong)}, which go by fair shares; pools cannot be run apart")
    shared = simulation.model_dump(exclude={"sticky_head"})
    frames = []
    for policy in policies:
        for name, step in STEPS.items():
            scheduler = SchedulerConfig(
                policy, step.backfill, "best_fit", locality, sticky_head=step.sticky_head, **shared
            )
            run = _apart if step.apart else _together
            frames.append(
                pd.DataFrame(
                    {
                        "policy": policy,
                        "step": name,
                        "backfill": step.backfill,
                        "window": np.arange(len(first)),
                        "first_job": first,
                        "wait_s": run(jobs, layout, first, np.full(len(first), length), scheduler) / length,
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


def _together(jobs: Jobs, layout: Layout, first: np.ndarray, n: np.ndarray, scheduler: SchedulerConfig) -> np.ndarray:
    """Sum of waits of each sequence [S], s."""
    state = simulate(jobs, layout, first, n, scheduler)
    return sequence_table(jobs, state, layout.gpus)["wait_s"].to_numpy() * n


def _apart(jobs: Jobs, layout: Layout, first: np.ndarray, n: np.ndarray, scheduler: SchedulerConfig) -> np.ndarray:
    """The same where each pool has its jobs and its nodes to itself, as if there were no other."""
    total = np.zeros(len(n))
    for p in range(len(layout.pools)):
        mine = np.flatnonzero(jobs.pool == p)
        begin, end = np.searchsorted(mine, first), np.searchsorted(mine, first + n)
        some = np.flatnonzero(end > begin)
        if len(some):
            total[some] += _together(jobs.take(mine), layout, begin[some], (end - begin)[some], scheduler)
    return total
