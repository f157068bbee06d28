"""What a trained policy is worth away from where it was trained: other base policies, traces, clusters, estimates.

Functions on policies, jobs, layout and split alone; which of them a run puts together is decided in
rltune.pipeline.transfer. A trained policy sees features that are shares, ranks or logarithms
(rltune.environment.features), so that it can be run on any cluster; what it learned of their usual values stays that of
where it learned.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.agent.exercise import RANDOM_ORDERS
from rltune.agent.learners import ranker_of
from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.rollout import RandomRanker
from rltune.agent.ways import taken
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import LookaheadConfig
from rltune.placement.placers import placer_of
from rltune.simulator.batch import Ranker, SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table
from rltune.traces.split import Split, disjoint_windows, spread

MOST_WINDOWS = 24
"""Test windows of a workload in which policies are judged away from home, evenly spread: as many as intervals need to
be of use, as few as keep the whole chapter within a minute or two. Our choice."""


def shortest_windows(split: Split, lengths: list[int], most: int | None = None) -> tuple[int, np.ndarray]:
    """(Length, first jobs) of the test windows of the shortest of ``lengths``, of which there are most: at most
    ``most``, evenly spread. Raises ConfigError where not one fits."""
    length = min(lengths)
    return length, spread(disjoint_windows(*split.test, length), most)


def judged(
    jobs: Jobs,
    layout: Layout,
    first: np.ndarray,
    length: int,
    scheduler: SchedulerConfig,
    lookahead: LookaheadConfig,
    policy: TrainedPolicy | None = None,
    calibrated: Jobs | None = None,
) -> pd.DataFrame:
    """A row a window of ``length`` jobs that starts at ``first`` [S] (rltune.simulator.metrics.sequence_table).

    Without ``policy`` the setting's base policy orders the queue; with it the agent does, and where it chose its own
    way when it was trained (rltune.agent.ways), that way comes with it. ``calibrated``: the jobs with beliefs in the
    place of estimates. Raises DataError for an agent that goes by beliefs where there are none.
    """
    if policy is None:
        return _table(jobs, layout, first, length, scheduler, lookahead)
    own, jobs = taken(policy.facts, scheduler, jobs, calibrated)
    return _table(jobs, layout, first, length, own, lookahead, ranker_of(policy, jobs, layout))


def random_order(
    jobs: Jobs,
    layout: Layout,
    first: np.ndarray,
    length: int,
    scheduler: SchedulerConfig,
    lookahead: LookaheadConfig,
    seed: int,
) -> pd.DataFrame:
    """The same of an order drawn anew at every decision, the mean of RANDOM_ORDERS runs of each window: what an agent
    that carries nothing over gets."""
    ranker = RandomRanker(np.random.default_rng(seed))
    table = _table(jobs, layout, np.repeat(first, RANDOM_ORDERS), length, scheduler, lookahead, ranker)
    return table.groupby(table.pop("window") // RANDOM_ORDERS).mean().rename_axis("window").reset_index()


def _table(
    jobs: Jobs,
    layout: Layout,
    first: np.ndarray,
    length: int,
    scheduler: SchedulerConfig,
    lookahead: LookaheadConfig,
    ranker: Ranker | None = None,
) -> pd.DataFrame:
    lengths = np.full(len(first), length)
    state = simulate(jobs, layout, first, lengths, scheduler, ranker, placer_of(scheduler.placement, lookahead))
    return sequence_table(jobs, state, layout.gpus).rename(columns={"sequence": "window"})
