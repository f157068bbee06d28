"""A linear score of a queued job, for as many sets of weights as sequences are run with side by side.

    score = Σ_i (w_i + w_(4+i) · q + w_(8+i) · f) · x_i,   the lowest first

of the four x: ln(estimate) / 10, ln(GPUs) / 10, ln(1 + wait) / 10 and 0.1 where the job fits now; q = ln(queue) / 6,
f the free share of its pool's GPUs. Times in s. Weights of 1 for the first two and 0 for the others are SAF's order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rltune.agent.learners import LEARNERS
from rltune.agent.policy_file import TrainedPolicy
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.search import find
from rltune.kernels import kernel
from rltune.simulator.backfill import free_in_pool
from rltune.simulator.state import State, sequence_of

WEIGHTS = LEARNERS["linear"].columns
AREA = np.array([1.0, 1.0] + [0.0] * (WEIGHTS - 2))
"""Orders by the smallest area."""
LOG_SCALE, GREEDY, QUEUE_SCALE = 0.1, 0.1, 1 / 6


class Work(NamedTuple):
    """What the compiled part keeps of J jobs in P pools."""

    log: np.ndarray  # [J, 2] float64: ln(estimate), ln(GPUs), scaled
    fits: np.ndarray  # [shapes, 2] int64: number of the queue it was looked up for; whether it fits
    count: np.ndarray  # [1] int64, queues so far
    share: np.ndarray  # [P] float64


@dataclass
class LinearRanker:
    """Ranks by linear scores.

    ``weights`` [K, WEIGHTS]: of the sequences of a run, each K-th in turn gets one of them.
    """

    jobs: Jobs
    layout: Layout
    weights: np.ndarray
    _work: Work = field(init=False, repr=False)

    @classmethod
    def of(cls, policy: TrainedPolicy, jobs: Jobs, layout: Layout) -> LinearRanker:
        """A trained policy as a ranker of runs on ``jobs``."""
        return cls(jobs, layout, -policy.weights[0].T)

    def __post_init__(self) -> None:
        row = self.jobs.row
        log = np.log(np.stack([np.maximum(row["estimate_s"], 1.0), np.maximum(row["gpus"], 1)], axis=1)) * LOG_SCALE
        shapes = int(row["shape"].max()) + 1
        pools = len(self.layout.nodes.pool)
        self._work = Work(log, np.full((shapes, 2), -1), np.zeros(1, np.int64), np.zeros(pools))

    def __call__(self, state: State, asking: np.ndarray) -> None:
        """Answer the engine's RANK questions."""
        _score(self.layout.nodes, self.jobs, state, asking, self.weights, self._work)


@kernel
def _score(nodes, jobs, st, asking, weights, work):
    for s in asking:
        seq, by = sequence_of(st, s), weights[s % weights.shape[0]]
        at, n = seq.queue[seq.status.queue].at, seq.status.visible
        work.count[0] += 1
        for p in range(work.share.shape[0]):
            work.share[p] = free_in_pool(nodes, seq.free, p) / nodes.pool[p].gpus
        queue = math.log(seq.status.queued) * QUEUE_SCALE
        for i in range(n):
            j = seq.status.first + seq.waiting[at + i]
            row = jobs.row[j]
            known = work.fits[row.shape]
            if known[0] != work.count[0]:
                known[0] = work.count[0]
                known[1] = find(nodes, jobs, seq.free, j, st.options.rule, st.options.extra, seq.place) > 0
            free = work.share[row.pool]
            total = (by[0] + by[4] * queue + by[8] * free) * work.log[j, 0]
            total += (by[1] + by[5] * queue + by[9] * free) * work.log[j, 1]
            total += (by[2] + by[6] * queue + by[10] * free) * LOG_SCALE * math.log(1.0 + seq.status.now - row.submit_s)
            total += (by[3] + by[7] * queue + by[11] * free) * GREEDY * known[1]
            seq.score[i] = total
