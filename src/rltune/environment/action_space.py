"""An action space whose samples are legal."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Discrete


class RankSpace(Discrete):
    """Ranks in a queue from 0 on: ``Discrete(n)`` that by default samples from the ranks that hold a job now.

    Without a ``mask``, :meth:`sample` uses that of the last observation, which the environment keeps up to date. Before the
    first observation all ranks are legal.
    """

    def __init__(self, n: int) -> None:
        self.mask = np.ones(n, np.int8)
        super().__init__(n)

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """A rank at random: of those in the mask, or by these probabilities."""
        if mask is None and probability is None:
            mask = self.mask
        return super().sample(mask, probability)
