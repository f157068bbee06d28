"""Which cells of a run are compared: with QSSF, among learners, by feature set, on balanced clusters, on other workloads."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from rltune.config.cells import HISTORY, Cell
from rltune.config.run import RunConfig

Key = TypeVar("Key", bound=Hashable)
YARDSTICK = "lognormal-1"
"""Estimates that know the true run time, blurred: what better predictions than those from history could gain."""
LEARNERS = ("schedinspector", "rlscheduler", "linear", "rltune")
"""Every kind of agent, in the order in which the paper's Table 9 has them; the linear score is not in the paper."""
HOME = ["trace", "cluster"]
RULES = ["backfill", "placement", "locality", "estimate"]
"""What an agent keeps on another workload."""
BALANCED = "-balanced"
"""Ending of the name of a cluster that is another one with arrivals thinned to what it can keep up with."""

Comparison = tuple[Cell, ...]
"""Agents trained and evaluated under one set of rules on one workload, at most one a kind and preset, by LEARNERS."""


def grouped(cells: Iterable[Cell], by: Callable[[Cell], Key]) -> dict[Key, list[Cell]]:
    """The cells by what ``by`` says of each, in their order."""
    groups: dict[Key, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(by(cell), []).append(cell)
    return groups


def agent_of(config: RunConfig, cell: Cell) -> str:
    """Which learner trains a cell."""
    return config.preset(cell.preset).agent


def against_qssf(config: RunConfig) -> list[Cell]:
    """RLTune's cells that are given what QSSF is given, and may backfill with EASY (paper, Table 8)."""
    return [
        cell
        for cell in config.cells()
        if agent_of(config, cell) == "rltune" and cell.backfill == "easy" and cell.estimate in HISTORY
    ]


def balanced_cells(config: RunConfig, cells: Iterable[Cell]) -> list[Cell]:
    """The cells moved to the balanced clusters that the run has for their traces."""
    there = {(w.trace, w.cluster) for w in config.all_workloads()}
    moved = (cell.but(cluster=cell.cluster + BALANCED) for cell in cells)
    return [cell for cell in moved if (cell.trace, cell.cluster) in there]


def for_metric(cells: Sequence[Cell], metric: str) -> list[Cell]:
    """Those trained for a metric; if there are none those trained for wait; if there are none of them, all."""
    for name in (metric, "wait"):
        if found := [cell for cell in cells if cell.metric == name]:
            return found
    return list(cells)


def learners_compared(config: RunConfig) -> list[Comparison]:
    """One comparison a trace × cluster.

    Of its rules (backfilling, estimates, locality) those that most kinds of agents know; of a kind and preset the cell
    trained for wait, from the base policy that most kinds know, not on raw features, with the paper's placement where
    there are several.
    """
    workloads = grouped(config.cells(), lambda cell: (cell.trace, cell.cluster))
    return [_comparison(config, cells) for cells in workloads.values()]


def _comparison(config: RunConfig, cells: list[Cell]) -> Comparison:
    rules = grouped(cells, lambda cell: (cell.estimate, cell.backfill, cell.locality))
    group = max(rules.values(), key=lambda some: len({agent_of(config, c) for c in some}))  # the first of equals
    known = {(agent_of(config, cell), cell.policy) for cell in group}
    kinds = Counter(policy for _, policy in known)

    def order(cell: Cell) -> tuple[object, ...]:
        return cell.metric != "wait", -kinds[cell.policy], cell.features == "raw", cell.placement != "lookahead"

    chosen: dict[tuple[str, str], Cell] = {}
    for cell in sorted(group, key=order):  # stable: the matrix's own order decides the rest
        chosen.setdefault((agent_of(config, cell), cell.preset), cell)
    return tuple(cell for kind in LEARNERS for (agent, _), cell in chosen.items() if agent == kind)


def by_features(config: RunConfig) -> list[list[Cell]]:
    """Groups of RLTune's cells that differ in their feature set, and in their seed, only: two sets or more each."""
    mine = [cell for cell in config.cells() if agent_of(config, cell) == "rltune"]
    groups = grouped(mine, lambda cell: cell.but(features="", seed=0)).values()
    return [group for group in groups if len({cell.features for cell in group}) > 1]
