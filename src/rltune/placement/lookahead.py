"""The look-ahead placer: answers the engine's PLACE questions, by proof, from memory, or with the solver."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from rltune.cluster.candidates import class_table
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import LookaheadConfig
from rltune.placement.counts import Counts, timed
from rltune.placement.instance import Instance, Outcome, Solution, build_instance
from rltune.placement.kernel import GlpkSolver
from rltune.placement.presolve import fall_back, presolve
from rltune.simulator.state import State

MEMORY = 200_000
"""Solved problems remembered; the oldest go first."""


class Solver(Protocol):
    """One of rltune.placement.kernel and rltune.placement.model."""

    def solve(self, instance: Instance) -> Solution:
        """Solve one instance."""


def solver_of(config: LookaheadConfig) -> Solver:
    """The solver that the configuration names."""
    if config.solver == "cvxpy":
        from rltune.placement.model import CvxpySolver  # CVXPY takes seconds to load

        return CvxpySolver(config)
    return GlpkSolver(config)


@dataclass
class Lookahead:
    """A :class:`~rltune.simulator.batch.Placer` with a memory; one per process is enough."""

    config: LookaheadConfig
    counts: Counts = field(default_factory=Counts)
    sample: int = 0
    """How many questions to keep in ``kept``: as likely each of those that were not presolved, by ``seed``."""
    seed: int = 1
    kept: list[Instance] = field(default_factory=list, repr=False)
    _memory: OrderedDict[bytes, Solution] = field(default_factory=OrderedDict, repr=False)

    def __post_init__(self) -> None:
        self._solver, self._seen, self._rng = solver_of(self.config), 0, np.random.default_rng(self.seed)

    @property
    def top(self) -> int:
        """Jobs of the ranking the model looks at."""
        return self.config.jobs

    def place(self, jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
        """Write the chosen job's nodes for each sequence in ``asking``."""
        for s in asking:
            self.counts.asked += 1
            n, instance = reduce(jobs, layout, state, s, self.config)
            if instance is None:
                self.counts.presolved += 1
                state.status["place_len"][s] = n
                continue
            solution = self._solution(instance)
            if solution.outcome is Outcome.OPTIMAL:
                _write(state, s, instance, solution)
            else:
                # the engine asks only for jobs that fit, so its own rule places them
                state.status["place_len"][s] = fall_back(layout.nodes, jobs, state, s)

    def _solution(self, instance: Instance) -> Solution:
        self._keep(instance)
        key = instance.key()
        known = self._memory.get(key)
        if known is not None:
            self.counts.cached += 1
            self._memory.move_to_end(key)
            return known
        solution, took_ms = timed(self._solver.solve, instance)
        self.counts.add(solution.outcome.value, took_ms)
        if solution.outcome is Outcome.OPTIMAL:
            self._memory[key] = solution
            if len(self._memory) > MEMORY:
                self._memory.popitem(last=False)
        return solution

    def _keep(self, instance: Instance) -> None:
        """Reservoir sampling (Vitter's algorithm R)."""
        if self.sample:
            self._seen += 1
            at = len(self.kept) if len(self.kept) < self.sample else int(self._rng.integers(self._seen))
            self.kept[at : at + 1] = [instance] if at < self.sample else []


def reduce(
    jobs: Jobs, layout: Layout, state: State, s: int, config: LookaheadConfig, always: bool = False
) -> tuple[int, Instance | None]:
    """(Chunks of the chosen job's allocation, written to ``place``, if it is presolved; else 0 and the instance to solve).

    With ``always`` the instance of a presolved question, too.
    """
    table, startable = class_table(layout.nodes), np.empty(config.jobs, np.int64)
    terms = (config.whole_node, config.tightness, config.rank_decay, config.slots)
    n_next, k, n = presolve(layout.nodes, jobs, state, s, *terms, table, startable)
    if n > 0 and not always:
        return n, None
    ranks = startable[:n_next]
    return n, build_instance(layout.nodes, jobs, state, s, table, k, ranks, config.slots, config.slot_s)


def _write(state: State, s: int, instance: Instance, solution: Solution) -> None:
    """Turn members of classes into nodes: of those of a class and cost, the first."""
    cls = np.repeat(np.arange(len(instance.count)), instance.count)
    used: set[int] = set()
    for n, (i, gpus) in enumerate(solution.chunks):
        alike = cls == cls[i]
        alike &= (instance.colocated == instance.colocated[i]) & (instance.price_s == instance.price_s[i])
        first = next(m for m in np.flatnonzero(alike).tolist() if m not in used)
        used.add(first)
        state.place[s, n] = instance.member[first], gpus
    state.status["place_len"][s] = len(solution.chunks)
