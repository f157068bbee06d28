"""An agent that may reject the base policy's choice (SchedInspector), as a ranker: sampling or greedy.

Asked for a ranking it gives the base policy's order, and may hold the queue back: then nothing of it starts until the
next event. A decision is between two rows, so that RLTune's actor and its update serve unchanged: to accept is a row of
zeros, to reject one that tells of the job that would be next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rltune.agent.decisions import Batch
from rltune.agent.policy_file import MADE, TrainedPolicy
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.environment.features import columns_of
from rltune.environment.observation import CRITIC_WIDTH, Observer
from rltune.environment.vector import in_order
from rltune.policies import FIRST_DYNAMIC
from rltune.simulator.state import State

MOST_REJECTIONS = 72
"""Times that a job is rejected at most (Zhang et al., MAX_REJECTION_TIMES of their code)."""
FEATURES = "rich"
"""Feature set that the columns are taken from."""
SHOWN = ("log_wait", "log_estimate", "log_gpus", "can_schedule_now", "queue_length", "free_share")
"""Of the job that would be next; two more follow: how often it was rejected so far (a logarithm,
1 at MOST_REJECTIONS), and 1."""
WIDTH = MADE["schedinspector"]
COLUMNS = [[str(c) for c in columns_of(FEATURES)].index(name) for name in SHOWN]


@dataclass
class InspectorRanker:
    """Keeps the base policy's order and says when to hold it back; with ``rng`` it samples and remembers.

    ``logits`` of rows [R, WIDTH]; ``reluctance``: what is taken from the logit of every rejection.
    """

    logits: Callable[[np.ndarray], np.ndarray]
    observer: Observer
    rng: np.random.Generator | None = None
    reluctance: float = 0.0
    alone = True
    """Asked of single jobs, too: for a small job to wait may let a big one start sooner."""
    asked: int = field(init=False, default=0)
    """Decisions so far …"""
    rejections: int = field(init=False, default=0)
    """… and how many of them were rejections."""
    _run: np.ndarray | None = field(init=False, repr=False, default=None)
    _rejected: np.ndarray = field(init=False, repr=False)
    _kept: list[tuple[np.ndarray, ...]] = field(init=False, repr=False, default_factory=list)

    def __call__(self, state: State, asking: np.ndarray) -> None:
        """Answer the engine's RANK questions."""
        if self._run is not state.status:
            self._run, self._rejected = state.status, np.zeros(state.start.shape, np.int64)
        if state.options.base >= FIRST_DYNAMIC:
            in_order(self.observer.layout.nodes, self.observer.jobs, state, asking)
        seen = self.observer(state, asking)
        places = np.arange(state.score.shape[1], dtype=float)
        state.score[asking] = places
        first = seen.offsets[:-1]
        job = seen.jobs[first]
        rejected = self._rejected[asking, job]
        status = state.status[asking]
        # no job may be rejected for ever, and the engine asks again only where an event is still to come
        free = (rejected < MOST_REJECTIONS) & ((status["running"] > 0) | (status["arrived"] < status["n"]))
        rows = np.zeros((len(asking), 2, WIDTH), np.float32)
        rows[:, 1, : len(COLUMNS)] = seen.rows[first][:, COLUMNS]
        rows[:, 1, -2], rows[:, 1, -1] = np.log1p(rejected) / np.log1p(MOST_REJECTIONS), 1.0
        logit = self.logits(rows.reshape(-1, WIDTH)).reshape(-1, 2)
        lead = logit[:, 1] - logit[:, 0] - np.float32(self.reluctance)
        noise = self.rng.logistic(size=len(asking)) if self.rng else 0.0
        rejects = (lead + noise > 0) & free
        state.status["hold"][asking] = rejects
        self._rejected[asking, job] += rejects
        self.asked += int(free.sum())
        self.rejections += int(rejects.sum())
        if self.rng:
            log_prob = -np.logaddexp(0.0, np.where(rejects, -lead, lead)).astype(np.float32)
            kept = rows, seen.critic[first], rejects.astype(np.int64), log_prob, state.now[asking], asking
            self._kept.append(tuple(part[free] for part in kept))

    def batch(self, reward: np.ndarray) -> Batch:
        """Everything remembered, sorted by sequence and then time; two rows a decision."""
        empty = (
            np.empty((0, 2, WIDTH), np.float32),
            np.empty((0, CRITIC_WIDTH), np.float32),
            np.empty(0, np.int64),
            np.empty(0, np.float32),
            np.empty(0),
            np.empty(0, np.int64),
        )
        parts = [np.concatenate(part) for part in zip(empty, *self._kept)]
        order = np.argsort(parts[-1], kind="stable")
        rows, critic, action, log_prob, now_s, sequence = (part[order] for part in parts)
        prior = np.zeros((len(rows), 2), np.float32)
        prior[:, 1] = -self.reluctance
        return Batch(
            rows.reshape(-1, WIDTH),
            np.repeat(critic, 2, axis=0),
            prior.ravel(),
            np.full(len(rows), 2),
            action,
            log_prob,
            sequence,
            now_s,
            reward.astype(np.float32),
        )


def ranker(policy: TrainedPolicy, jobs: Jobs, layout: Layout) -> InspectorRanker:
    """A trained policy, greedy, as a ranker of runs on ``jobs``."""
    return InspectorRanker(policy.logits, Observer(jobs, layout, FEATURES), reluctance=policy.facts["base_policy_bias"])
