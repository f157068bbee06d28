"""What a rollout leaves for an update: decisions on ragged queues, and what each was worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rltune.kernels import kernel

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
        begins = np.cumsum(length) - length
        rows = np.arange(length.sum()) + np.repeat((np.cumsum(self.length) - self.length)[pick] - begins, length)
        segment = np.repeat(np.arange(len(pick), dtype=np.int32), length)
        return rows, segment, (begins + self.action[pick]).astype(np.int32)

    def by_length(self, pick: np.ndarray, most_slots: int) -> Iterator[tuple[np.ndarray, int]]:
        """``pick`` in parts of queues about equally long, each with a length that holds its longest; one may be short.

        A part has at most ``most_slots`` slots of that length, and one decision at least.
        """
        longest = int(self.length.max())
        class_of = np.ceil(np.log2(np.maximum(self.length[pick], SHORTEST))).astype(int)
        for power in np.unique(class_of):
            part, to = pick[class_of == power], min(2 ** int(power), longest)
            yield from ((some, to) for some in np.array_split(part, -(-len(part) * to // most_slots)))

    def parts(self, pick: np.ndarray, most_rows: int) -> Iterator[np.ndarray]:
        """``pick`` in parts of at most ``most_rows`` rows, and one decision at least."""
        part = (np.cumsum(self.length[pick]) - 1) // most_rows
        yield from np.split(pick, np.flatnonzero(np.diff(part)) + 1)


def relative(reward: np.ndarray, rollouts: int) -> np.ndarray:
    """Rewards [S] relative to the mean of their sequence's consecutive ``rollouts``; of one rollout, as they are."""
    groups = reward.reshape(-1, rollouts)
    return reward if rollouts == 1 else (groups - groups.mean(axis=1, keepdims=True)).ravel()


def advantages(
    values: np.ndarray, sequence: np.ndarray, reward: np.ndarray, discount: float, gae_lambda: float
) -> tuple[np.ndarray, np.ndarray]:
    """Generalised advantage estimates (Schulman et al. 2016) and returns under a reward at the end of each sequence.

    A sequence ends when its last job has started (termination, not truncation: nothing follows to bootstrap).
    ``values`` [D], ``sequence`` [D] sorted, ``reward`` [sequences] → two arrays [D] float64.
    """
    advantage, returns = np.zeros(len(values)), np.zeros(len(values))
    _backwards(values.astype(float), sequence, reward.astype(float), discount, gae_lambda, advantage, returns)
    return advantage, returns


@kernel
def _backwards(values, sequence, reward, discount, gae_lambda, advantage, returns):
    next_value = carried = future = 0.0
    for i in range(values.shape[0] - 1, -1, -1):
        if i + 1 == values.shape[0] or sequence[i + 1] != sequence[i]:
            carried = reward[sequence[i]] - values[i]
            future = reward[sequence[i]]
        else:
            carried = discount * next_value - values[i] + discount * gae_lambda * carried
            future = discount * future
        advantage[i], returns[i], next_value = carried, future, values[i]
