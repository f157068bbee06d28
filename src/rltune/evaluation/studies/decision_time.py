"""How long one decision takes, from the question to nodes, by the length of the queue (paper, Section 5.7).

A decision is: the features of the queue (the first 256 jobs of it, the rest behind by the base policy), the actor, the
ranking, the placement of the chosen job with look-ahead, its start, and the simulator up to the next question. All jobs
are submitted at one time to an idle cluster, so the queue is as long as it says; decisions are timed while jobs
still fit.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.rollout import ranker_of
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import LookaheadConfig
from rltune.placement.counts import timed
from rltune.placement.lookahead import Lookahead
from rltune.simulator.batch import Ranker, SchedulerConfig, Simulation
from rltune.simulator.state import MAX_VISIBLE

QUEUES = (128, 256, 512, 1024, 10_000)
"""Jobs queued (paper, Section 5.7, the last its stress test)."""


class TimedLookahead(Lookahead):
    """The placer with a clock."""

    total_ms = 0.0
    """Spent in it so far."""

    def place(self, *question: Any) -> None:
        """Answer as always, timed."""
        _, taken_ms = timed(super().place, *question)
        self.total_ms += taken_ms


def at_once(jobs: Jobs, first: int, n: int) -> Jobs:
    """Jobs first … first + n − 1, all submitted together."""
    some = jobs.take(np.arange(first, first + n))
    some.row["submit_s"] = some.row["submit_s"][0]
    return some


def decisions(jobs: Jobs, layout: Layout, ranker: Ranker, lookahead: LookaheadConfig) -> pd.DataFrame:
    """A row per decision, until the first job does not fit: ``inference_s`` (features, actor, ranking), ``placement_s``
    (the placement model, 0 where there was nothing to choose), ``decision_s`` (both, and the simulator's part)."""
    n, placer = len(jobs.row), TimedLookahead(lookahead)
    run = Simulation(
        jobs, layout, np.array([0]), np.array([n]), SchedulerConfig("fifo", "none", "lookahead"), placer, MAX_VISIBLE
    )
    asking = run.advance()
    rows = []
    while len(asking) and run.state.now[0] == jobs.submit_s[0]:
        began, before_ms = time.perf_counter(), placer.total_ms
        ranker(run.state, asking)
        ranked = time.perf_counter()
        asking = run.advance()
        rows.append((ranked - began, (placer.total_ms - before_ms) / 1000, time.perf_counter() - began))
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
            decisions(some, layout, ranker, lookahead)
            frames.append(decisions(some, layout, ranker, lookahead).assign(queue=n))
    columns = ["queue", "inference_s", "placement_s", "decision_s"]
    return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)
