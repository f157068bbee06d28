"""Drive many sequences through the engine, answering its questions in batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.nodes import RULES
from rltune.policies import IDS
from rltune.simulator.blocking import BLOCKINGS
from rltune.simulator.engine import EXTERNAL, advance_all
from rltune.simulator.state import DONE, PICK, PLACE, PLACED, RANK, State, new_state


@dataclass(frozen=True)
class Setting:
    """What both sides of a comparison share: base policy's number, blocking, placement rule."""

    policy: str
    blocking: str
    placement: str

    @property
    def rule(self) -> int:
        """Number of the compiled placement rule; reservations and backfilling under lookahead use best_fit."""
        return RULES["best_fit" if self.placement == "lookahead" else self.placement]


class Placer(Protocol):
    """Answers PLACE: the nodes of the chosen job."""

    top: int
    """How many jobs of the ranking it wants to see."""

    def place(self, jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
        """Write place_len, place_node, place_gpus of each sequence in ``asking`` [k] int64."""


Ranker = Callable[[State, np.ndarray], None]
"""Answers RANK: writes ``score[s, :visible[s]]``, lower first, of each sequence in its second argument."""


def simulate(
    jobs: Jobs,
    layout: Layout,
    first: np.ndarray,
    n: np.ndarray,
    setting: Setting,
    ranker: Ranker | None = None,
    placer: Placer | None = None,
) -> State:
    """Run sequences of ``n[s]`` jobs from job ``first[s]``, each from an idle cluster, to their last start.

    Without ``ranker`` the base policy orders the queue; with it, it only orders what the ranker cannot see.
    Raises ValueError when the setting's placement is lookahead and no placer is given, or the other way round.
    """
    if (setting.placement == "lookahead") != (placer is not None):
        raise ValueError(f"placement {setting.placement!r} {'needs' if placer is None else 'takes no'} placer")
    state = new_state(jobs, layout.nodes, first, n, top=placer.top if placer else 1)
    base = IDS[setting.policy]
    order = EXTERNAL if ranker else base
    blocking = BLOCKINGS[setting.blocking]
    while True:
        ranks, places = advance_all(
            layout.nodes, jobs, state, order, base, blocking, setting.rule, placer is not None
        )
        if ranks == 0 and places == 0:
            break
        if ranks and ranker:
            asking = np.flatnonzero(state.phase == RANK)
            ranker(state, asking)
            state.phase[asking] = PICK
        if places and placer:
            asking = np.flatnonzero(state.phase == PLACE)
            placer.place(jobs, layout, state, asking)
            state.phase[asking] = PLACED
    assert (state.phase == DONE).all()
    return state
