"""The agent as a ranker: sampling with a memory for training, arg max for judging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rltune.agent.decisions import Batch
from rltune.agent.features import CRITIC_WIDTH, FEATURE_SETS, WIDTH, answer, observe
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.simulator.state import State

Logits = Callable[[np.ndarray], np.ndarray]


@dataclass
class RandomRanker:
    """Ranks queues at random, anew at every decision: what an agent that has learned nothing does."""

    rng: np.random.Generator

    def __call__(self, state: State, asking: np.ndarray) -> None:
        """Answer the engine's RANK questions."""
        for s in asking:
            state.score[s, : state.visible[s]] = self.rng.random(state.visible[s])


@dataclass
class AgentRanker:
    """Ranks queues by the actor's logits; with ``rng`` it samples and remembers every decision."""

    logits: Logits
    jobs: Jobs
    layout: Layout
    features: str
    rng: np.random.Generator | None = None
    _obs: list[np.ndarray] = field(default_factory=list, repr=False)
    _critic: list[np.ndarray] = field(default_factory=list, repr=False)
    _length: list[np.ndarray] = field(default_factory=list, repr=False)
    _action: list[np.ndarray] = field(default_factory=list, repr=False)
    _log_prob: list[np.ndarray] = field(default_factory=list, repr=False)
    _sequence: list[np.ndarray] = field(default_factory=list, repr=False)

    def __call__(self, state: State, asking: np.ndarray) -> None:
        """Answer the engine's RANK questions."""
        length = state.visible[asking]
        offsets = np.concatenate([[0], np.cumsum(length)])
        obs = np.empty((offsets[-1], WIDTH), np.float32)
        critic = np.empty((offsets[-1], CRITIC_WIDTH), np.float32)
        observe(self.layout.nodes, self.jobs, state, asking, FEATURE_SETS[self.features], offsets, obs, critic)
        logits = self.logits(obs)
        noise = self.rng.gumbel(size=len(logits)).astype(np.float32) if self.rng else np.zeros_like(logits)
        action, log_prob = np.empty(len(asking), np.int64), np.empty(len(asking), np.float32)
        answer(state, asking, offsets, logits, noise, action, log_prob)
        if self.rng:
            self._obs.append(obs)
            self._critic.append(critic)
            self._length.append(length)
            self._action.append(action - offsets[:-1])
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
