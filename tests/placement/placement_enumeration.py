"""The best answer to a placement question by trying everything: every allocation of the chosen job, as a whole and split,
or waiting, with every allocation of the next jobs in every slot. Prices and times come from the running jobs alone."""

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from allocations import Allocation, Allocations

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import LookaheadConfig
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.state import State

Free = tuple[tuple[tuple[int, int, int], ...], ...]  # slot, node → GPUs, thousandths of a CPU, MB
NOW, SPLIT, WAIT = "now", "split", "wait"
"""Kinds of questions: the chosen job fits as a whole; it does not and is split; it does not and may wait."""
MORE = {"strict": 0, "plus_one": 1, "any": 10**6}
"""Nodes more than strict that a locality allows any job."""


def weighted(weights: dict[str, float], **settings: float) -> LookaheadConfig:
    """A placement model with other weights in its objective than the configuration's."""
    return type("Weighted", (LookaheadConfig,), dict(weights))(**settings)


class Enumeration(Allocations):
    """The question of sequence 0 of a state in which jobs run, one is chosen and others follow in the ranking.

    ``ranks``: those of the ranking that are looked at; default: all.
    """

    def __init__(
        self,
        jobs: Jobs,
        layout: Layout,
        state: State,
        config: LookaheadConfig,
        scheduler: SchedulerConfig,
        ranks: list[int] | None = None,
    ) -> None:
        super().__init__(jobs, layout, int(state.first[0] + state.status["chosen"][0]))
        self.config, self.scheduler = config, scheduler
        self.first, self.now = int(state.first[0]), float(state.now[0])
        every = [rank for rank, job in enumerate(state.top[0]) if rank > 0 and job >= 0]
        self.ranks = [(rank, self.first + int(state.top[0, rank])) for rank in (every if ranks is None else ranks)]
        running = [(self.first + i, run) for i, run in enumerate(state.run[0]) if run["start"] <= self.now < run["end"]]
        self.running = [(j, run, state.chunk[0][run["at"] : run["at"] + run["len"]].tolist()) for j, run in running]
        present = tuple(tuple(row)[:3] for row in state.free.row[0].tolist())
        if any(True for _ in self.whole(self.chosen, present)):
            self.question = NOW
        else:
            self.question = SPLIT if scheduler.locality in MORE else WAIT
        self.wait_s = self._reserved(present) - self.now if self.question == WAIT else 0.0
        self.slots, self.slot_s = (2, max(self.wait_s, 1.0)) if self.question == WAIT else (config.slots, config.slot_s)
        self.horizon_s = self.slots * self.slot_s
        # rounding: what ends when a slot begins is free in it
        self.free: Free = tuple(
            self._given_back(present, slot * self.slot_s + 1e-6) if slot else present for slot in range(self.slots)
        )
        self.multi_gpu_nodes = {m for j, _, chunks in self.running if jobs.gpus[j] > 1 for m, _ in chunks}
        self.together = scheduler.interference_slowdown > 1 and jobs.gpus[self.chosen] > 1

    # what running jobs do

    def ends_in(self, j: int, run: np.void) -> float:
        """Seconds until a running job should end."""
        if run["due"] > self.now:
            return run["due"] - self.now
        return self.now - run["start"] if self.scheduler.overrun == "double" else 0.0

    def _given_back(self, free: tuple, within_s: float) -> tuple:
        """What is free when the jobs that should end within so many seconds have."""
        out = [list(left) for left in free]
        for j, run, chunks in self.running:
            if self.jobs.pool[j] == self.jobs.pool[self.chosen] and self.ends_in(j, run) <= within_s:
                for m, gpus in chunks:
                    for r, need in enumerate(self.needs(j, m, gpus)):
                        out[m][r] += need
        return tuple(tuple(left) for left in out)

    def _reserved(self, free: tuple) -> float:
        """The first time at which the chosen job should fit as a whole."""
        for end_s in sorted({self.ends_in(j, run) for j, run, _ in self.running}):
            if any(True for _ in self.whole(self.chosen, self._given_back(free, end_s + 1e-9), unequal=True)):
                return self.now + end_s
        raise AssertionError("it never fits")

    def slowdown(self, j: int, chunks: list) -> float:
        """How many times as long a running job takes as by itself."""
        split = len(chunks) > self.strict_nodes(j, self.kind[chunks[0][0]])
        slowdown = self.scheduler.multi_node_slowdown if split else 1.0
        mine = {m for m, _ in chunks}
        for other, _, theirs in self.running:
            if other != j and min(self.jobs.gpus[[j, other]]) > 1 and mine & {m for m, _ in theirs}:
                slowdown = max(slowdown, self.scheduler.interference_slowdown)
        return slowdown

    def price_s(self, m: int) -> float:
        """Seconds that the jobs on a node lose if the chosen job joins them."""
        price_s = 0.0
        for j, run, chunks in self.running:
            slower = self.scheduler.interference_slowdown - self.slowdown(j, chunks)
            if self.jobs.gpus[j] > 1 and slower > 0 and m in [node for node, _ in chunks]:
                left_s = self.ends_in(j, run) / self.slowdown(j, chunks)
                price_s += min(left_s, float(self.jobs.estimate_s[self.chosen])) * slower
        return price_s

    # allocations

    def splits(self) -> Iterator[Allocation]:
        """Every split of the chosen job."""
        for kind in np.flatnonzero(self.jobs.cut["full"][self.chosen] >= 0):
            most = self.strict_nodes(self.chosen, kind) + MORE.get(self.scheduler.locality, 10**6)
            yield from self.unequal_chunks(self.chosen, kind, self.free[0], most)

    def after(self, j: int, allocation: Allocation, slot: int, free: Free, factor: float = 1.0) -> Free | None:
        """What is free in every slot when the job has started; None where it does not fit."""
        length = max(1, math.ceil(self.jobs.estimate_s[j] * factor / self.slot_s - 1e-8))
        out = list(free)
        for t in range(slot, min(slot + length, len(free))):
            left = list(free[t])
            for m, gpus in allocation:
                left[m] = tuple(a - b for a, b in zip(left[m], self.needs(j, m, gpus), strict=True))
                if min(left[m]) < 0:
                    return None
            out[t] = tuple(left)
        return tuple(out)

    # values

    def answers(self) -> Iterator[tuple[Allocation, float, Free]]:
        """(Allocation of the chosen job, what it costs, what is free then); the empty allocation, once for every place it could have
        in the second slot, where it waits."""
        for split, allocations in ((False, self.whole(self.chosen, self.free[0])), (True, self.splits())):
            if split == (self.question != NOW):
                for allocation in allocations:
                    factor = self.scheduler.multi_node_slowdown if self.is_longer(allocation) else 1.0
                    free = self.after(self.chosen, allocation, 0, self.free, factor)
                    if free is not None:
                        yield allocation, self.cost(allocation, split), free
        if self.question == WAIT:
            for allocation in self.whole(self.chosen, self.free[1]):
                free = self.after(self.chosen, allocation, 1, self.free)
                if free is not None:
                    yield (), self.wait_s / self.horizon_s, free

    def cost(self, allocation: Allocation, split: bool) -> float:
        """What an allocation costs that starts now, in starts."""
        config, free, estimate_s = self.config, self.free[0], float(self.jobs.estimate_s[self.chosen])
        less = config.others if self.question == WAIT else 1.0
        cost = less * config.whole_node * sum(free[m][0] == self.largest for m, _ in allocation)
        full = self.jobs.cut[self.chosen, self.kind[allocation[0][0]]]["full"]
        left = sum(free[m][0] - gpus for m, gpus in (allocation if split else allocation[full:]))
        cost += less * config.tightness * left
        slowdown = self.scheduler.multi_node_slowdown if self.is_longer(allocation) else 1.0
        lost_s = estimate_s * (slowdown - 1)
        if self.together and (met := [m for m, _ in allocation if m in self.multi_gpu_nodes]):
            lost_s += sum(self.price_s(m) for m in met)
            lost_s += estimate_s * max(self.scheduler.interference_slowdown - slowdown, 0.0)
        return cost + lost_s / self.horizon_s

    def is_longer(self, allocation: Allocation) -> bool:
        """Whether the chosen job has more nodes than it would as a whole."""
        return len(allocation) > self.strict_nodes(self.chosen, self.kind[allocation[0][0]])

    @cache  # noqa: B019
    def values(self) -> dict[tuple, float]:
        """Sorted allocation → the most it can be worth."""
        best: dict[tuple, float] = {}
        for allocation, cost, free in self.answers():
            key = tuple(sorted(allocation))
            best[key] = max(best.get(key, -math.inf), self.rest(0, free) - cost)
        return best

    def best(self) -> float:
        """What the best answer is worth."""
        return max(self.values().values())

    def value(self, allocation: Allocation) -> float:
        """What an answer is worth; KeyError for one that is none."""
        return self.values()[tuple(sorted(allocation))]

    @cache  # noqa: B019
    def rest(self, i: int, free: Free) -> float:
        """The most that the next jobs from the i-th on can be worth on what is free."""
        if i == len(self.ranks):
            return 0.0
        rank, j = self.ranks[i]
        best = self.rest(i + 1, free)
        for slot in range(self.slots):
            worth = self.config.rank_decay ** (rank - 1) * (self.slots - slot) / self.slots
            worth *= self.config.others if self.question == WAIT else 1.0
            for allocation in self.whole(j, free[slot]) if self.jobs.pool[j] == self.jobs.pool[self.chosen] else ():
                after = self.after(j, allocation, slot, free)
                if after is not None:
                    best = max(best, worth + self.rest(i + 1, after))
        return best
