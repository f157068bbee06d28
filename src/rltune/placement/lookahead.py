"""The look-ahead placer: answers the engine's PLACE questions, by proof, from memory, or with the solver."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.ways import room
from rltune.config import LookaheadConfig
from rltune.placement.counts import Counts
from rltune.placement.glpk import GlpkModel
from rltune.placement.instance import Instance, build_instance
from rltune.placement.outcome import Outcome, Solution
from rltune.placement.settle import fall_back, is_solved, settle
from rltune.simulator.state import State

MEMORY = 200_000
"""Solved problems remembered; the oldest go first."""


@dataclass
class Lookahead:
    """A :class:`~rltune.simulator.batch.Placer` with a memory; one per process is enough."""

    config: LookaheadConfig
    counts: Counts = field(default_factory=Counts)
    _memory: OrderedDict[bytes, Solution] = field(default_factory=OrderedDict, repr=False)

    def __post_init__(self) -> None:
        self._model = GlpkModel(self.config)

    @property
    def top(self) -> int:
        """Jobs of the ranking the model looks at."""
        return self.config.jobs

    def place(self, jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
        """Write the chosen job's nodes for each sequence in ``asking``."""
        table, startable = room(layout.nodes), np.empty(self.top, np.int64)
        terms = (self.config.whole_node, self.config.tightness, self.config.rank_decay)
        slots, slot_s = self.config.slots, self.config.slot_s
        for s in asking:
            self.counts.asked += 1
            solved = is_solved(jobs, state, s)
            n_next, k, n = settle(layout.nodes, jobs, state, s, *terms, slots, table, startable, solved)
            if n > 0:
                self.counts.settled += 1
                state.status["place_len"][s] = n
                continue
            instance = build_instance(layout.nodes, jobs, state, s, table, k, startable[:n_next], slots, slot_s)
            solution = self._solution(instance)
            if solution.outcome is Outcome.OPTIMAL:
                _write(state, s, instance, solution)
            else:
                # the engine asks only for jobs that fit, so its own rule finds a place
                state.status["place_len"][s] = fall_back(layout.nodes, jobs, state, s)

    def _solution(self, instance: Instance) -> Solution:
        key = instance.key()
        known = self._memory.get(key)
        if known is not None:
            self.counts.cached += 1
            self._memory.move_to_end(key)
            return known
        began = time.perf_counter()
        solution = self._model.solve(instance)
        self.counts.times_s.append(time.perf_counter() - began)
        name = solution.outcome.value
        setattr(self.counts, name, getattr(self.counts, name) + 1)
        if solution.outcome is Outcome.OPTIMAL:
            self._memory[key] = solution
            if len(self._memory) > MEMORY:
                self._memory.popitem(last=False)
        return solution


def _write(state: State, s: int, instance: Instance, solution: Solution) -> None:
    """Turn members of classes into nodes: of those that are alike, and cost alike, the first."""
    cls = np.repeat(np.arange(len(instance.count)), instance.count)
    used: set[int] = set()
    for n, (i, gpus) in enumerate(solution.chunks):
        alike = cls == cls[i]
        alike &= (instance.company == instance.company[i]) & (instance.price_s == instance.price_s[i])
        first = next(m for m in np.flatnonzero(alike).tolist() if m not in used)
        used.add(first)
        state.place[s, n] = instance.member[first], gpus
    state.status["place_len"][s] = len(solution.chunks)
