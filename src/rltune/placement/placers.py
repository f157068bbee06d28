"""The placers by the name of their placement, and a decorator for custom ones."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.search import AS_MANY, RULES, WORTH_IT
from rltune.config import LookaheadConfig
from rltune.errors import AnswerError
from rltune.placement.algorithm1 import Algorithm1
from rltune.placement.counts import CountingPlacer
from rltune.placement.lookahead import Lookahead
from rltune.simulator.config import ALWAYS, ASKED
from rltune.simulator.state import State

LOOKAHEAD: dict[str, dict[str, Any]] = {
    "lookahead": {},
    "lookahead_4_slots": {"slots": 4},
    "lookahead_cvxpy": {"solver": "cvxpy"},
}
"""Placements by the placement model → what differs from the run's settings of it."""
CUSTOM: dict[str, Callable[[], CountingPlacer]] = {}
"""Custom placements by name."""

Made = TypeVar("Made", bound=Callable[[], CountingPlacer])


def placement(name: str) -> Callable[[Made], Made]:
    """Decorator: make a class of placers (rltune.simulator.batch.Placer, with ``counts``) a placement of this name.

    It is made without arguments, once a simulation, and asked whenever the first job of a ranking fits and could be
    placed on several sets of nodes. ``state.place`` then has the answer of best_fit: a placer that writes nothing has placed so,
    too. Reservations and backfilling go by best_fit. For ``rltune simulate --placement`` and ``simulate`` in Python.
    Raises ValueError for a name that is not lower-case letters, digits and underscores, or is taken, and for what
    lacks one of the three.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"placement name: found {name!r}, expected lower-case letters, digits, underscores")
    if name in (*RULES, *LOOKAHEAD, "algorithm1"):
        raise ValueError(f"placement name: {name!r} is built in; choose another")

    def register(made: Made) -> Made:
        placer = made()
        if missing := [part for part in ("top", "counts", "place") if not hasattr(placer, part)]:
            raise ValueError(
                f"placement {name!r}: found no {', '.join(missing)}; expected a placer with top, counts, place"
            )
        CUSTOM[name] = made
        ASKED[name] = ALWAYS
        return made

    return register


def placer_of(placement: str, lookahead: LookaheadConfig, sample: int = 0) -> CountingPlacer | None:
    """A new placer; None for a placement that is a rule of the simulator. ``sample``: questions that look-ahead keeps."""
    if placement in LOOKAHEAD:
        return Lookahead(lookahead.model_copy(update=LOOKAHEAD[placement]), sample=sample)
    if placement == "algorithm1":
        return Algorithm1()
    return _Checked(placement, CUSTOM[placement]()) if placement in CUSTOM else None


class _Checked:
    """A custom placer, whose answers are checked: the engine takes them as they are."""

    def __init__(self, name: str, placer: CountingPlacer) -> None:
        self.name, self.placer, self.top, self.counts = name, placer, placer.top, placer.counts

    def place(self, jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
        """Ask the placer. Raises AnswerError where a job could not run as it says."""
        self.placer.place(jobs, layout, state, asking)
        for s in asking:
            chunk = state.place[s, : state.status["place_len"][s]]
            if not (_is_placement(jobs, layout, state, s, chunk) if len(chunk) else state.status["may_wait"][s]):
                raise AnswerError(
                    f"placement {self.name!r}: job {state.status['chosen'][s]}: found {chunk.tolist()} (node, GPUs), expected "
                    "its GPUs on free nodes of one type, on no more of them than the locality allows"
                )


def _is_placement(jobs: Jobs, layout: Layout, state: State, s: int, chunk: np.ndarray) -> bool:
    """Whether the job chosen in sequence ``s`` could run now as these chunks say."""
    j, (node, gpus) = state.first[s] + state.status["chosen"][s], (chunk["node"], chunk["gpus"])
    if not ((node >= 0) & (node < len(layout.nodes.row))).all():
        return False
    cut = jobs.cut[j, layout.nodes.row["type"][node[0]]]
    split = state.status["split"][s] and state.options.locality >= WORTH_IT  # asked where it does not fit otherwise
    most = cut["full"] + (cut["rem"] > 0) + (AS_MANY if split else state.options.extra)
    return bool(
        len(chunk) <= most
        and len(np.unique(node)) == len(node)
        and (gpus > 0).all()
        and gpus.sum() == jobs.gpus[j]
        and _could_give(jobs, layout, state, s, node, gpus).all()
        and len(np.unique(layout.nodes.row["domain"][node])) == 1
    )


def _could_give(jobs: Jobs, layout: Layout, state: State, s: int, node: np.ndarray, gpus: np.ndarray) -> np.ndarray:
    """Which nodes could give the job chosen in sequence ``s`` so many GPUs now, and the CPUs and memory for them."""
    nodes, j = layout.nodes, state.first[s] + state.status["chosen"][s]
    row, pool = jobs.row[j], jobs.row["pool"][j]
    here, domains = nodes.pool[pool], nodes.domain_of[pool, jobs.cut["full"][j] >= 0]
    free, has = state.free.row[s][node], nodes.row[node]
    cpu = row["cpu_milli"] if row["cpu_milli"] >= 0 else has["share_cpu"]
    mem = row["mem_mb"] if row["mem_mb"] >= 0 else has["share_mem"]
    fits = (free["gpus"] >= gpus) & (free["cpu"] >= gpus * cpu) & (free["mem"] >= gpus * mem)
    return fits & (here["start"] <= node) & (node < here["stop"]) & np.isin(has["domain"], domains)


def fitting_nodes(jobs: Jobs, layout: Layout, state: State, s: int) -> np.ndarray:
    """Nodes [k] int64, ascending, each of which could hold all of the job chosen in sequence ``s`` now, by itself."""
    j = state.first[s] + state.status["chosen"][s]
    here = layout.nodes.pool[jobs.row["pool"][j]]
    node = np.arange(here["start"], here["stop"])
    return node[_could_give(jobs, layout, state, s, node, jobs.gpus[j])]
