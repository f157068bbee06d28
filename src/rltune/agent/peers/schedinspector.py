"""SchedInspector (Zhang et al., "SchedInspector: A Batch Job Scheduling Inspector Using Reinforcement Learning",
HPDC '22).

The base policy decides which job is next, and the agent inspects that choice: it accepts, or rejects, and then nothing of
that queue starts until the next event. PPO trains it, rewarded for what the sequence gains over the base policy alone, as
its authors do (the relative gain is their best reward too). The preset's ``base_policy_bias`` is how reluctant it is to
reject at first; the last layer starts at zero, so that the greedy agent starts as its base policy.

A decision is between two rows, so RLTune's actor and update serve unchanged: to accept is a row of zeros, to reject one
that describes the job that would be next.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rltune.agent.learners import LEARNERS
from rltune.agent.rollout import AgentRanker
from rltune.environment.features import columns_of
from rltune.environment.vector import in_order
from rltune.simulator.state import State

MAX_REJECTIONS = 72
"""Times that a job is rejected at most: our limit; the authors' code only scales a feature by this number."""
LEARNER = LEARNERS["schedinspector"]
SHOWN = ("log_wait", "log_estimate", "log_gpus", "can_schedule_now", "queue_length", "free_share")
"""Of the job that would be next; two more follow: how often it was rejected so far (a logarithm,
1 at MAX_REJECTIONS), and 1."""
WIDTH = LEARNER.columns
COLUMNS = [[str(c) for c in columns_of(LEARNER.features)].index(name) for name in SHOWN]


@dataclass
class InspectorRanker(AgentRanker):
    """Keeps the base policy's order and holds it back where it rejects; with ``rng`` it samples and remembers.

    ``logits`` of rows [R, WIDTH]; ``base_policy_bias``: what is taken from the logit of every rejection.
    """

    alone = True
    """Asked of single jobs, too: for a small job to wait may let a big one start sooner."""
    _run: np.ndarray | None = field(init=False, repr=False, default=None)
    _rejected: np.ndarray = field(init=False, repr=False)

    @property
    def learns(self) -> bool:
        """Not for the engine: it is asked wherever it asks, for a rejection counts also where nothing starts."""
        return False

    def __call__(self, state: State, asking: np.ndarray) -> None:
        """Answer the engine's RANK questions."""
        if self._run is not state.status:
            self._run, self._rejected = state.status, np.zeros(state.start.shape, np.int64)
        if state.options.reranks:
            in_order(self.observer.layout.nodes, self.observer.jobs, state, asking)
        seen = self.observer(state, asking)
        state.score[asking] = np.arange(state.score.shape[1], dtype=float)
        first = seen.offsets[:-1]
        job = seen.jobs[first]
        rejected, status = self._rejected[asking, job], state.status[asking]
        # no job may be rejected for ever nor once it is overdue, and the engine asks again only where an event is to come
        free = (rejected < MAX_REJECTIONS) & ((status["running"] > 0) | (status["arrived"] < status["n"]))
        free &= state.now[asking] <= state.run["latest"][asking, job]
        rows = np.zeros((len(asking), 2, WIDTH), np.float32)
        rows[:, 1, : len(COLUMNS)] = seen.rows[first][:, COLUMNS]
        rows[:, 1, -2], rows[:, 1, -1] = np.log1p(rejected) / np.log1p(MAX_REJECTIONS), 1.0
        logit = self.logits(rows.reshape(-1, WIDTH)).reshape(-1, 2)
        lead = logit[:, 1] - logit[:, 0] - np.float32(self.base_policy_bias)
        noise = self.rng.logistic(size=len(asking)) if self.rng else 0.0
        rejects = (lead + noise > 0) & free
        state.status["hold"][asking] = rejects
        self._rejected[asking, job] += rejects
        if self.rng:
            log_prob = -np.logaddexp(0.0, np.where(rejects, -lead, lead)).astype(np.float32)
            decisions = rejects.astype(np.int64), log_prob, asking, state.now[asking]
            k = int(free.sum())
            obs, critic = rows[free].reshape(-1, WIDTH), np.repeat(seen.critic[first][free], 2, axis=0)
            prior = np.tile(np.float32([0.0, -self.base_policy_bias]), k)
            self.memory.steps.append((obs, critic, prior, np.full(k, 2), *(part[free] for part in decisions)))
