"""The look-ahead placer: answers the engine's PLACE questions, by proof, from memory, or with the solver."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field, fields

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout, Nodes
from rltune.cluster.ways import room
from rltune.config import LookaheadConfig
from rltune.placement.instance import Instance, build_instance
from rltune.placement.model import LookaheadModel, Outcome, Solution, arrays
from rltune.placement.settle import fall_back, settle
from rltune.simulator.state import State

STEPS = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024)
"""Sizes (options, nodes) the model is compiled for; an instance takes the smallest that holds it."""

MEMORY = 200_000
"""Solved problems remembered; the oldest go first."""


@dataclass
class Counts:
    """How placement questions were answered."""

    asked: int = 0
    """Questions: the chosen job has several ways and others are queued."""
    settled: int = 0
    """Answered by a witness that no solver could better."""
    cached: int = 0
    """Answered from an equal problem solved before."""
    optimal: int = 0
    """Solved to optimality."""
    infeasible: int = 0
    """Said to be infeasible; placed by best_fit."""
    limit: int = 0
    """Stopped by the safety net of wall-clock time; placed by best_fit, and the run is not reproducible."""
    failure: int = 0
    """The solver failed; placed by best_fit."""
    seconds: float = 0.0
    """Time in the solver, CVXPY's part included."""
    longest_s: float = 0.0
    """Longest single solve."""

    @property
    def calls(self) -> int:
        """Times the solver ran."""
        return self.optimal + self.infeasible + self.limit + self.failure

    def since(self, before: Counts) -> Counts:
        """What was added since ``before`` (the longest solve stays that of the whole)."""
        parts = {f.name: getattr(self, f.name) - getattr(before, f.name) for f in fields(self)}
        return Counts(**{**parts, "longest_s": self.longest_s})

    def copy(self) -> Counts:
        """As they are now."""
        return Counts(**{f.name: getattr(self, f.name) for f in fields(self)})


@dataclass
class Lookahead:
    """A :class:`~rltune.simulator.batch.Placer` with a memory; one per process is enough."""

    config: LookaheadConfig
    counts: Counts = field(default_factory=Counts)
    _memory: OrderedDict[bytes, Solution] = field(default_factory=OrderedDict, repr=False)
    _models: dict[tuple[int, int], LookaheadModel] = field(default_factory=dict, repr=False)

    @property
    def top(self) -> int:
        """Jobs of the ranking the model looks at."""
        return self.config.jobs

    def place(self, jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
        """Write the chosen job's nodes for each sequence in ``asking``."""
        table, startable = room(layout.nodes), np.empty(self.top, np.int64)
        terms = (self.config.whole_node, self.config.tightness, self.config.rank_decay)
        for s in asking:
            self.counts.asked += 1
            n_next, k, n = settle(layout.nodes, jobs, state, s, *terms, table, startable)
            if n > 0:
                self.counts.settled += 1
                state.me["place_len"][s] = n
                continue
            instance = build_instance(layout.nodes, jobs, state, s, table, k, startable[:n_next])
            solution = self._solution(instance)
            if solution.outcome is Outcome.OPTIMAL:
                _write(layout, state, s, instance, solution)
            else:
                # the engine asks only for jobs that fit, so best_fit finds a place
                state.me["place_len"][s] = fall_back(layout.nodes, jobs, state, s)

    def _solution(self, instance: Instance) -> Solution:
        key = instance.key()
        known = self._memory.get(key)
        if known is not None:
            self.counts.cached += 1
            self._memory.move_to_end(key)
            return known
        a = arrays(instance, self.config)
        size = tuple(next((step for step in STEPS if step >= x), x) for x in a.may_rem.shape)
        if size not in self._models:
            self._models[size] = LookaheadModel(self.top, *size)
        began = time.perf_counter()
        solution = self._models[size].solve(a, self.config.time_limit_s)
        took = time.perf_counter() - began
        self.counts.seconds += took
        self.counts.longest_s = max(self.counts.longest_s, took)
        name = solution.outcome.value
        setattr(self.counts, name, getattr(self.counts, name) + 1)
        if solution.outcome is Outcome.OPTIMAL:
            self._memory[key] = solution
            if len(self._memory) > MEMORY:
                self._memory.popitem(last=False)
        return solution


def _write(layout: Layout, state: State, s: int, instance: Instance, solution: Solution) -> None:
    """Turn classes into nodes: of each class the lowest that are not taken yet."""
    nodes = layout.nodes
    n = 0
    for c, is_full in solution.chunks:
        kind = instance.type[c]
        m = instance.lowest[c]
        while not _in_class(nodes, state, s, instance, c, m) or m in state.place["node"][s, :n]:
            m += 1
        state.place[s, n] = m, instance.size[0, kind] if is_full else instance.rem[0, kind]
        n += 1
    state.me["place_len"][s] = n


def _in_class(nodes: Nodes, state: State, s: int, instance: Instance, c: int, m: int) -> bool:
    free = state.free.row[s, m]
    return (
        nodes.row["group"][m] == nodes.row["group"][instance.lowest[c]]
        and free["gpus"] == instance.free_gpus[c]
        and free["cpu"] == instance.free_cpu[c]
        and free["mem"] == instance.free_mem[c]
    )
