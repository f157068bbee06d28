"""An action space whose samples are legal."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Discrete


class Places(Discrete):
    """Places of a queue from 0 on: ``Discrete(n)`` that by default samples from the places that hold a job now.

    Where ``mask`` is not given to :meth:`sample`, the mask of the last observation holds; the environment keeps it up
    to date. Before the first there is none, and all places are drawn from.
    """

    def __init__(self, n: int) -> None:
        self.mask = np.ones(n, np.int8)
        super().__init__(n)

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """A place at random: of those in the mask, or by these probabilities."""
        if mask is None and probability is None:
            mask = self.mask
        return super().sample(mask, probability)
