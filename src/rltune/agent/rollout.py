"""The agent in the simulator: it ranks queues by its logits, a sample in training, the best otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pkgutil import resolve_name

import numpy as np

from rltune.agent.learners import LEARNERS
from rltune.agent.policy_file import TrainedPolicy
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.environment.observation import CRITIC_WIDTH, Observer
from rltune.environment.vector import in_order
from rltune.kernels import kernel
from rltune.simulator.batch import Ranker
from rltune.simulator.state import State

SHORTEST = 16
"""Shorter queues are padded to this."""


@dataclass(frozen=True)
class Batch:
    """An epoch's decisions, sequence after sequence, each sequence in order of time; D decisions, R rows.

    Only decisions between two jobs or more are kept: the others have one possible action.
    """

    obs: np.ndarray  # [R, width] float32
    critic: np.ndarray  # [R, CRITIC_WIDTH] float32
    prior: np.ndarray  # [R] float32, what the logits have before the network's part is added
    length: np.ndarray  # [D] int64, rows of each decision
    action: np.ndarray  # [D] int64, the row picked, counted inside the decision
    log_prob: np.ndarray  # [D] float32, at the time of the pick
    sequence: np.ndarray  # [D] int64
    now_s: np.ndarray  # [D] float64, when it was made
    reward: np.ndarray  # [sequences] float32, at the end of each sequence

    def rows_of(self, pick: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(rows, segment of each row, row of each action among them) of these decisions, one behind the other."""
        length = self.length[pick]
        start = np.cumsum(length) - length
        rows = np.arange(length.sum()) + np.repeat((np.cumsum(self.length) - self.length)[pick] - start, length)
        segment = np.repeat(np.arange(len(pick), dtype=np.int32), length)
        return rows, segment, (start + self.action[pick]).astype(np.int32)

    def by_length(self, pick: np.ndarray, max_slots: int) -> Iterator[tuple[np.ndarray, int]]:
        """Split ``pick`` into parts of queues of similar length, each with a length that holds its longest.

        A part has less than one decision more than ``max_slots`` slots of that length; it may be empty.
        """
        longest = int(self.length.max())
        class_of = np.ceil(np.log2(np.maximum(self.length[pick], SHORTEST))).astype(int)
        for power in np.unique(class_of):
            part, to = pick[class_of == power], min(2 ** int(power), longest)
            yield from ((some, to) for some in np.array_split(part, -(-len(part) * to // max_slots)))

    def parts(self, pick: np.ndarray, max_rows: int) -> Iterator[np.ndarray]:
        """Split ``pick`` into parts of less than one decision more than ``max_rows`` rows."""
        part = (np.cumsum(self.length[pick]) - 1) // max_rows
        yield from np.split(pick, np.flatnonzero(np.diff(part)) + 1)


@dataclass
class Memory:
    """Decisions of a rollout as they are made."""

    steps: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    """Per question of the engine: Batch's obs, critic, prior, length, action, log_prob, sequence and now_s."""

    def batch(self, reward: np.ndarray) -> Batch:
        """Everything remembered, sorted by sequence and then time; empty where no queue ever had two jobs."""
        floats, whole = np.empty(0, np.float32), np.empty(0, np.int64)
        empty = (np.empty((0, 1), np.float32), np.empty((0, CRITIC_WIDTH), np.float32), floats)
        steps = self.steps or [(*empty, whole, whole, floats, whole, np.empty(0))]
        obs, critic, prior, length, action, log_prob, sequence, now_s = map(np.concatenate, zip(*steps, strict=True))
        order = np.argsort(sequence, kind="stable")
        start, length = (np.cumsum(length) - length)[order], length[order]
        rows = np.arange(length.sum()) + np.repeat(start - (np.cumsum(length) - length), length)
        decisions = length, action[order], log_prob[order], sequence[order], now_s[order]
        return Batch(obs[rows], critic[rows], prior[rows], *decisions, reward.astype(np.float32))


@dataclass
class RandomRanker:
    """Ranks queues at random, again at every decision, as an agent that has learned nothing."""

    rng: np.random.Generator

    def __call__(self, state: State, asking: np.ndarray) -> None:
        """Answer the engine's RANK questions."""
        for s in asking:  # drawn in the order of submission, whatever the base policy
            state.score[s, np.argsort(state.queued_jobs(s))] = self.rng.random(state.visible[s])


@dataclass
class AgentRanker:
    """Ranks queues by the actor's logits [rows] of jobs [rows, width]; with ``rng`` it samples and remembers.

    ``base_policy_bias``: what each rank in the base policy's order takes from a logit (rltune.config.preset).
    """

    logits: Callable[[np.ndarray], np.ndarray]
    observer: Observer
    rng: np.random.Generator | None = None
    base_policy_bias: float = 0.0
    memory: Memory = field(default_factory=Memory, repr=False)

    @property
    def learns(self) -> bool:
        """Whether its choices are remembered, so that it is asked only where what it chooses starts."""
        return self.rng is not None

    @classmethod
    def of(cls, policy: TrainedPolicy, jobs: Jobs, layout: Layout) -> AgentRanker:
        """A trained policy, greedy, as a ranker of runs on ``jobs``."""
        observer = Observer(jobs, layout, policy.features)
        return cls(policy.logits, observer, base_policy_bias=policy.facts.get("base_policy_bias", 0.0))

    def __call__(self, state: State, asking: np.ndarray) -> None:
        """Answer the engine's RANK questions."""
        if state.options.reranks:
            in_order(self.observer.layout.nodes, self.observer.jobs, state, asking)
        seen = self.observer(state, asking)
        # the critic reads a queue position by position: in the order of submission, whatever the base policy
        queue = np.repeat(np.arange(len(asking)), seen.length)
        order = np.lexsort((seen.jobs, queue))
        rows, rank = seen.rows[order], order - seen.offsets[queue]
        prior = (-self.base_policy_bias * rank).astype(np.float32)
        logits = self.logits(rows) + prior
        noise = self.rng.gumbel(size=len(logits)).astype(np.float32) if self.rng else np.zeros_like(logits)
        action, log_prob = np.empty(len(asking), np.int64), np.empty(len(asking), np.float32)
        answer(state.score, asking, seen.offsets, order, logits, noise, action, log_prob)
        if self.rng:
            picks = action - seen.offsets[:-1], log_prob
            self.memory.steps.append((rows, seen.critic[order], prior, seen.length, *picks, asking, state.now[asking]))


def ranker_of(policy: TrainedPolicy, jobs: Jobs, layout: Layout) -> Ranker:
    """A trained policy of any learner as a ranker of runs on ``jobs``, greedy."""
    return resolve_name(LEARNERS[policy.agent].ranker).of(policy, jobs, layout)


@kernel
def answer(score, asking, offsets, order, logits, noise, action, log_prob):
    """Turn logits [rows] into ``score`` (lower first) and report the pick of each asking sequence.

    ``order`` [rows]: the rows of the queues that the logits belong to. ``noise`` [rows]: Gumbel noise makes the pick
    a sample of the softmax (and the whole order one of Plackett-Luce), zeros make it the arg max. ``action`` [k]
    gets the row of the pick among the logits, ``log_prob`` [k] its log-probability without the noise.
    """
    for a in range(asking.shape[0]):
        s, lo, hi = asking[a], offsets[a], offsets[a + 1]
        best, top, most = lo, -np.inf, -np.inf
        for row in range(lo, hi):
            value = logits[row] + noise[row]
            score[s, order[row] - lo] = -value
            if value > top:
                best, top = row, value
            most = max(most, logits[row])
        total = 0.0
        for row in range(lo, hi):
            total += math.exp(logits[row] - most)
        action[a] = best
        log_prob[a] = logits[best] - most - math.log(total)
