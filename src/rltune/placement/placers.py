"""The placers by the name of their placement."""

from __future__ import annotations

from rltune.config import LookaheadConfig
from rltune.placement.counts import CountingPlacer
from rltune.placement.lookahead import Lookahead


def placer_of(placement: str, lookahead: LookaheadConfig) -> CountingPlacer | None:
    """A new placer; None for a placement that is a rule of the simulator's own."""
    if placement == "lookahead":
        return Lookahead(lookahead)
    if placement == "algorithm1":
        from rltune.placement.algorithm1 import Algorithm1  # CVXPY takes seconds to load

        return Algorithm1()
    return None
