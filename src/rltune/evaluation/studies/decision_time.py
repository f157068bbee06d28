"""How long one decision takes, from the question to nodes, by the length of the queue (paper, Section 5.7).

A decision is: the features of the queue (the first 256 jobs of it, the rest behind by the base policy), the actor, the
ranking, the placement of the chosen job with look-ahead, its start, and the simulator up to the next question. All jobs
are submitted at one time to an idle cluster, so the queue is as long as it says; decisions are timed while jobs
still fit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.rollout import ranker_of
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import LookaheadConfig
from rltune.placement.lookahead import Lookahead
from rltune.simulator.batch import Placer, Ranker, SchedulerConfig, Simulation
from rltune.simulator.state import MAX_VISIBLE, State

QUEUES = (128, 256, 512, 1024, 10_000)
"""Jobs queued (paper, Section 5.7, the last its stress test)."""


@dataclass
class TimedPlacer:
    """A placer with a clock."""

    inner: Placer
    seconds: float = 0.0
    """Spent in it so far."""

    @property
    def top(self) -> int:
        """How many jobs of the ranking it wants to see."""
        return self.inner.top

    def place(self, jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
        """Write the nodes of the chosen job of each sequence in ``asking``."""
        began = time.perf_counter()
        self.inner.place(jobs, layout, state, asking)
        self.seconds += time.perf_counter() - began


def at_once(jobs: Jobs, first: int, n: int) -> Jobs:
    """Jobs first … first + n − 1, all submitted together."""
    some = jobs.take(np.arange(first, first + n))
    some.row["submit_s"] = some.row["submit_s"][0]
    return some


def decisions(jobs: Jobs, layout: Layout, ranker: Ranker, placer: Placer) -> pd.DataFrame:
    """A row per decision, until the first job does not fit: ``inference_s`` (features, actor, ranking), ``placement_s``
    (the placement model, 0 where there was nothing to choose), ``decision_s`` (both, and the simulator's part)."""
    n, timed = len(jobs.row), TimedPlacer(placer)
    run = Simulation(
        jobs, layout, np.array([0]), np.array([n]), SchedulerConfig("fifo", "none", "lookahead"), timed, MAX_VISIBLE
    )
    asking = run.advance()
    rows = []
    while len(asking) and run.state.now[0] == jobs.submit_s[0]:
        began, before = time.perf_counter(), timed.seconds
        ranker(run.state, asking)
        ranked = time.perf_counter()
        asking = run.advance()
        rows.append((ranked - began, timed.seconds - before, time.perf_counter() - began))
    # the last one waited for a job to end
    return pd.DataFrame(rows[:-1], columns=["inference_s", "placement_s", "decision_s"])


def decision_times(
    policy: TrainedPolicy,
    jobs: Jobs,
    layout: Layout,
    lookahead: LookaheadConfig,
    queues: Sequence[int],
    queues_of_each: int,
) -> pd.DataFrame:
    """The decisions of a trained policy in queues of each length that the workload is long enough for, with ``queue``.

    ``queues_of_each``: so many stretches of the workload, evenly spread. Each is decided twice, and the second time
    is measured with an empty memory of placements: the first compiles, and warms the machine's caches.
    """
    frames = []
    for n in (n for n in queues if n <= len(jobs.row)):
        for first in np.linspace(0, len(jobs.row) - n, queues_of_each).astype(int):
            some = at_once(jobs, int(first), n)
            ranker = ranker_of(policy, some, layout)
            decisions(some, layout, ranker, Lookahead(lookahead))
            frames.append(decisions(some, layout, ranker, Lookahead(lookahead)).assign(queue=n))
    columns = ["queue", "inference_s", "placement_s", "decision_s"]
    return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)
