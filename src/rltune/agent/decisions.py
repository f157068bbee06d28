"""What a rollout leaves for an update: decisions on ragged queues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Batch:
    """An epoch's decisions, sequence after sequence, each sequence in order of time; D decisions, R rows.

    Only decisions between two jobs or more are kept: the others have one possible action.
    """

    obs: np.ndarray  # [R, WIDTH] float32
    critic: np.ndarray  # [R, CRITIC_WIDTH] float32
    length: np.ndarray  # [D] int64, rows of each decision
    action: np.ndarray  # [D] int64, the row picked, counted inside the decision
    log_prob: np.ndarray  # [D] float32, at the time of the pick
    sequence: np.ndarray  # [D] int64
    reward: np.ndarray  # [sequences] float32, at the end of each sequence
