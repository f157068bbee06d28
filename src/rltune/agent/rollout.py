"""The agent as a ranker: sampling with a memory for training, arg max for judging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rltune.agent.decisions import Batch
from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.sampling import answer, base_logits, by_submission
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.environment.observation import Observer
from rltune.environment.vector import in_order
from rltune.policies import FIRST_DYNAMIC
from rltune.simulator.state import State

Logits = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Of jobs [rows, width] in queues that begin and end at offsets [queues + 1]: their logits [rows]."""


@dataclass
class RandomRanker:
    """Ranks queues at random, anew at every decision: what an agent that has learned nothing does."""

    rng: np.random.Generator

    def __call__(self, state: State, asking: np.ndarray) -> None:
        """Answer the engine's RANK questions."""
        for s in asking:  # drawn in the order of submission, whatever the base policy
            state.score[s, np.argsort(state.queued_jobs(s))] = self.rng.random(state.visible[s])


@dataclass
class AgentRanker:
    """Ranks queues by the actor's logits; with ``rng`` it samples and remembers every decision.

    ``base_policy_bias``: what a place in the order of the base policy takes from a logit (rltune.config.preset).
    """

    logits: Logits
    observer: Observer
    rng: np.random.Generator | None = None
    base_policy_bias: float = 0.0
    _obs: list[np.ndarray] = field(default_factory=list, repr=False)
    _critic: list[np.ndarray] = field(default_factory=list, repr=False)
    _prior: list[np.ndarray] = field(default_factory=list, repr=False)
    _length: list[np.ndarray] = field(default_factory=list, repr=False)
    _action: list[np.ndarray] = field(default_factory=list, repr=False)
    _log_prob: list[np.ndarray] = field(default_factory=list, repr=False)
    _sequence: list[np.ndarray] = field(default_factory=list, repr=False)
    _now_s: list[np.ndarray] = field(default_factory=list, repr=False)

    def __call__(self, state: State, asking: np.ndarray) -> None:
        """Answer the engine's RANK questions."""
        if state.options.base >= FIRST_DYNAMIC:
            in_order(self.observer.layout.nodes, self.observer.jobs, state, asking)
        seen = self.observer(state, asking)
        # the critic reads a queue place by place: in the order of submission, whatever the base policy
        order = np.empty(len(seen.rows), np.int64)
        by_submission(seen.offsets, seen.jobs, order)
        rows = seen.rows[order]
        prior = np.empty(len(rows), np.float32)
        base_logits(seen.offsets, order, self.base_policy_bias, prior)
        logits = self.logits(rows, seen.offsets) + prior
        noise = self.rng.gumbel(size=len(logits)).astype(np.float32) if self.rng else np.zeros_like(logits)
        action, log_prob = np.empty(len(asking), np.int64), np.empty(len(asking), np.float32)
        answer(state.score, asking, seen.offsets, order, logits, noise, action, log_prob)
        if self.rng:
            self._obs.append(rows)
            self._critic.append(seen.critic[order])
            self._prior.append(prior)
            self._length.append(seen.length)
            self._action.append(action - seen.offsets[:-1])
            self._log_prob.append(log_prob)
            self._sequence.append(asking)
            self._now_s.append(state.now[asking])

    def batch(self, reward: np.ndarray) -> Batch:
        """Everything remembered, sorted by sequence and then time; nothing where no queue ever held two jobs."""
        if not self._length:
            nobody, nothing = np.empty(0, np.int64), np.empty(0, np.float32)
            none = np.empty((0, 0), np.float32)
            now_s = nobody.astype(float)
            return Batch(none, none, nothing, nobody, nobody, nothing, nobody, now_s, reward.astype(np.float32))
        sequence, length = np.concatenate(self._sequence), np.concatenate(self._length)
        order = np.argsort(sequence, kind="stable")
        begins = np.cumsum(length) - length
        new_length = length[order]
        new_begins = np.cumsum(new_length) - new_length
        rows = np.arange(new_length.sum()) + np.repeat(begins[order] - new_begins, new_length)
        return Batch(
            np.concatenate(self._obs)[rows],
            np.concatenate(self._critic)[rows],
            np.concatenate(self._prior)[rows],
            new_length,
            np.concatenate(self._action)[order],
            np.concatenate(self._log_prob)[order],
            sequence[order],
            np.concatenate(self._now_s)[order],
            reward.astype(np.float32),
        )


def ranker(policy: TrainedPolicy, jobs: Jobs, layout: Layout) -> AgentRanker:
    """A trained policy, greedy, as a ranker of runs on ``jobs``."""
    observer = Observer(jobs, layout, policy.features)
    return AgentRanker(policy.logits, observer, base_policy_bias=policy.facts.get("base_policy_bias", 0.0))
