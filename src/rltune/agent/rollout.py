"""The agent as a ranker: sampling with a memory for training, arg max for judging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rltune.agent.decisions import Batch
from rltune.agent.sampling import answer, by_submission
from rltune.environment.observation import Observer
from rltune.simulator.state import State

Logits = Callable[[np.ndarray], np.ndarray]


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
    """Ranks queues by the actor's logits; with ``rng`` it samples and remembers every decision."""

    logits: Logits
    observer: Observer
    rng: np.random.Generator | None = None
    _obs: list[np.ndarray] = field(default_factory=list, repr=False)
    _critic: list[np.ndarray] = field(default_factory=list, repr=False)
    _length: list[np.ndarray] = field(default_factory=list, repr=False)
    _action: list[np.ndarray] = field(default_factory=list, repr=False)
    _log_prob: list[np.ndarray] = field(default_factory=list, repr=False)
    _sequence: list[np.ndarray] = field(default_factory=list, repr=False)

    def __call__(self, state: State, asking: np.ndarray) -> None:
        """Answer the engine's RANK questions."""
        seen = self.observer(state, asking)
        # the critic reads a queue place by place: in the order of submission, whatever the base policy
        order = np.empty(len(seen.rows), np.int64)
        by_submission(seen.offsets, seen.jobs, order)
        rows = seen.rows[order]
        logits = self.logits(rows)
        noise = self.rng.gumbel(size=len(logits)).astype(np.float32) if self.rng else np.zeros_like(logits)
        action, log_prob = np.empty(len(asking), np.int64), np.empty(len(asking), np.float32)
        answer(state.score, asking, seen.offsets, order, logits, noise, action, log_prob)
        if self.rng:
            self._obs.append(rows)
            self._critic.append(seen.critic[order])
            self._length.append(seen.length)
            self._action.append(action - seen.offsets[:-1])
            self._log_prob.append(log_prob)
            self._sequence.append(asking)

    def batch(self, reward: np.ndarray) -> Batch:
        """Everything remembered, sorted by sequence and then time."""
        sequence, length = np.concatenate(self._sequence), np.concatenate(self._length)
        order = np.argsort(sequence, kind="stable")
        begins = np.cumsum(length) - length
        new_length = length[order]
        new_begins = np.cumsum(new_length) - new_length
        rows = np.arange(new_length.sum()) + np.repeat(begins[order] - new_begins, new_length)
        return Batch(
            np.concatenate(self._obs)[rows], np.concatenate(self._critic)[rows], new_length,
            np.concatenate(self._action)[order], np.concatenate(self._log_prob)[order], sequence[order],
            reward.astype(np.float32),
        )  # fmt: skip
