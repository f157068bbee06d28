"""The reward of a sequence."""

from __future__ import annotations

import numpy as np
import pytest

from rltune.environment.reward import reward


def test_reward_is_the_gap_relative_to_the_larger() -> None:
    got = reward(np.array([10.0, 4.0, 0.0, 0.4]), np.array([5.0, 8.0, 0.0, 0.0]), 1.0)
    assert got == pytest.approx([0.5, -0.5, 0.0, 0.4])
