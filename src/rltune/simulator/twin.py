"""The scheduling semantics in plain Python: slow and meant to be read; the oracle of the compiled engine.

Time goes from event to event; at one instant completions come before arrivals. Every pool with an event then
decides: it ranks its queue (lowest score first, ties by submission, then id) and starts the first job if it
fits, again and again, until the queue is empty or the first job, the *head*, does not fit. The head is
forgotten at the pool's next event. While there is a head, of the others, in the order of the same ranking,

=======  ====================================================================================================
none     nothing starts
fits     whatever fits starts
easy     the head has a reservation: the earliest time it fits, by the expected ends of the running jobs, on
         nodes chosen by the placement rule (its shadow allocation). A job that fits starts if it ends by
         estimate no later than that, or on what is free both now and then beside the shadow allocation
=======  ====================================================================================================

A running job past its estimate is expected to run as long again as it has so far.

A job is cut into full chunks and at most one remainder, each on a node of its own, all of one GPU type
(strict locality). The rules go chunk by chunk: ``first_fit`` takes the lowest node, ``best_fit`` the node with
the fewest GPUs left, then the lowest. Of several GPU types, first_fit takes the first in which the job fits,
best_fit the one whose last chunk leaves the fewest GPUs on its node, then the first.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log10
from typing import Any

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout

Allocation = dict[int, int]
"""Node → GPUs."""
Free = dict[int, tuple[int, int, int]]
"""Node → what is free on it: GPUs, thousandths of a CPU, MB."""
Scores = Callable[[float, list[int]], list[Any]]
"""(now in s, jobs of one pool's queue in order of submission) → a sortable score each, lower first."""

POLICIES: dict[str, Callable[[float, float, int, float], float]] = {
    "fifo": lambda submit_s, estimate_s, gpus, wait_s: submit_s,
    "sjf": lambda submit_s, estimate_s, gpus, wait_s: estimate_s,
    "saf": lambda submit_s, estimate_s, gpus, wait_s: estimate_s * gpus,
    "f1": lambda submit_s, estimate_s, gpus, wait_s: (
        log10(max(estimate_s, 1.0)) * gpus + 870.0 * log10(max(submit_s, 1.0))
    ),
    "wfp3": lambda submit_s, estimate_s, gpus, wait_s: (
        -(wait_s / estimate_s) * (wait_s / estimate_s) * (wait_s / estimate_s) * gpus
    ),
}
"""Paper Table 5, and smallest area first."""


def run(
    jobs: Jobs,
    layout: Layout,
    first: int,
    n: int,
    policy: str,
    blocking: str,
    placement: str,
    scores: Scores | None = None,
) -> tuple[np.ndarray, list[Allocation]]:
    """Jobs ``first`` … ``first + n − 1`` from an idle cluster: (start times in s [n], allocations).

    ``scores`` takes the place of the policy's order. Asserts at every event that what is free and what is used
    add up to the capacity of each node, that no job starts before its submission, and that none runs twice.
    """
    twin = Twin(jobs, layout, first, n, policy, blocking, placement, scores)
    twin.play()
    return np.array([twin.start[j] for j in twin.rows]), [twin.allocation[j] for j in twin.rows]


class Twin:
    """One run; jobs are rows of ``jobs``. After :meth:`play`, ``start`` and ``allocation`` hold every job, and
    ``reservations`` every (now, head, reserved start) that EASY has made, in order."""

    def __init__(
        self,
        jobs: Jobs,
        layout: Layout,
        first: int,
        n: int,
        policy: str,
        blocking: str,
        placement: str,
        scores: Scores | None = None,
    ) -> None:
        if blocking not in ("none", "fits", "easy") or placement not in ("first_fit", "best_fit"):
            raise ValueError(f"found blocking {blocking!r}, placement {placement!r}")
        nodes = layout.nodes
        self.jobs, self.blocking, self.placement = jobs, blocking, placement
        self.score = POLICIES[policy]
        self.scores = scores or self._base_scores
        self.rows = list(range(first, first + n))
        self.node_type = nodes.type.tolist()
        self.nodes_of_pool = [
            list(range(a, b)) for a, b in zip(nodes.pool_start[:-1].tolist(), nodes.pool_start[1:].tolist())
        ]
        self.capacity: Free = dict(
            enumerate(zip(nodes.gpus.tolist(), nodes.cpu_milli.tolist(), nodes.mem_mb.tolist()))
        )
        self.free: Free = dict(self.capacity)
        self.queue: list[int] = []
        self.running: list[int] = []
        self.start: dict[int, float] = {}
        self.allocation: dict[int, Allocation] = {}
        self.reservations: list[tuple[float, int, float]] = []

    def play(self) -> None:
        """From the first submission until every job has started."""
        coming = list(self.rows)
        while len(self.start) < len(self.rows):
            now = min([self._end(j) for j in self.running] + [float(self.jobs.submit_s[j]) for j in coming])
            ended = [j for j in self.running if self._end(j) <= now]
            arrived = [j for j in coming if self.jobs.submit_s[j] <= now]
            self.running = [j for j in self.running if j not in ended]
            coming = [j for j in coming if j not in arrived]
            for j in ended:
                self.free = self._plus(self.free, j, self.allocation[j], +1)
            self.queue += arrived
            for pool in sorted({int(self.jobs.pool[j]) for j in ended + arrived}):
                self._decide(pool, now)
            self._check()

    def _decide(self, pool: int, now: float) -> None:
        """Start what may start in one pool."""
        while True:
            ranking = self._ranking(pool, now)
            if not ranking:
                return
            head, others = ranking[0], ranking[1:]
            way = self._place(head, self.free)
            if way is None:
                break
            self._start(head, way, now)
        if self.blocking == "none":
            return
        reserved, spare = (float("inf"), self.free) if self.blocking == "fits" else self._reserve(head, now)
        for j in others:
            way = self._place(j, self.free)
            if way is not None and now + self.jobs.estimate_s[j] > reserved:
                both = {m: tuple(min(a, b) for a, b in zip(self.free[m], spare[m])) for m in self.free}
                way = self._place(j, both)
                if way is not None:
                    spare = self._plus(spare, j, way, -1)
            if way is not None:
                self._start(j, way, now)

    def _ranking(self, pool: int, now: float) -> list[int]:
        """The pool's queue, best first."""
        queue = sorted(
            (j for j in self.queue if self.jobs.pool[j] == pool), key=lambda j: (self.jobs.submit_s[j], j)
        )
        scores = dict(zip(queue, self.scores(now, queue), strict=True))
        return sorted(queue, key=lambda j: (scores[j], self.jobs.submit_s[j], j))

    def _base_scores(self, now: float, queue: list[int]) -> list[float]:
        jobs = self.jobs
        return [
            self.score(float(jobs.submit_s[j]), float(jobs.estimate_s[j]), int(jobs.gpus[j]), now - jobs.submit_s[j])
            for j in queue
        ]

    def _reserve(self, head: int, now: float) -> tuple[float, Free]:
        """(When the head fits, what is free then beside it), by the expected ends of the pool's running jobs."""
        expected = {j: self._expected_end(j, now) for j in self.running if self.jobs.pool[j] == self.jobs.pool[head]}
        for time in sorted(set(expected.values())):
            then = self.free
            for j, end in expected.items():
                if end <= time:
                    then = self._plus(then, j, self.allocation[j], +1)
            way = self._place(head, then)
            if way is not None:
                self.reservations.append((now, head, time))
                return time, self._plus(then, head, way, -1)
        raise AssertionError(f"job {head} does not fit its empty pool")

    def _expected_end(self, j: int, now: float) -> float:
        end = self.start[j] + float(self.jobs.estimate_s[j])
        so_far = now - self.start[j]
        return end if end > now else now + so_far

    def _place(self, j: int, free: Free) -> Allocation | None:
        """Where a job goes on what is free, by the rule; None where it does not fit."""
        found = []
        for kind, full in enumerate(self.jobs.full[j].tolist()):
            way = self._place_on(j, kind, free) if full >= 0 else None
            if way is not None:
                last = list(way)[-1]
                found.append((free[last][0] - way[last], kind, way))
        if not found:
            return None
        return found[0][2] if self.placement == "first_fit" else min(found, key=lambda f: f[:2])[2]

    def _place_on(self, j: int, kind: int, free: Free) -> Allocation | None:
        """The same on the nodes of one GPU type, chunk by chunk, the remainder last."""
        size, full, rem = (int(x[j, kind]) for x in (self.jobs.size, self.jobs.full, self.jobs.rem))
        way: Allocation = {}
        for gpus in [size] * full + [rem] * (rem > 0):
            able = [
                m
                for m in self.nodes_of_pool[self.jobs.pool[j]]
                if self.node_type[m] == kind
                and m not in way
                and all(have >= need for have, need in zip(free[m], self._needs(j, m, gpus)))
            ]
            if not able:
                return None
            best = min(able) if self.placement == "first_fit" else min(able, key=lambda m: (free[m][0] - gpus, m))
            way[best] = gpus
        return way

    def _needs(self, j: int, m: int, gpus: int) -> tuple[int, int, int]:
        """What a chunk takes on a node: its own CPUs and memory, else those that go with its GPUs there."""
        node_gpus, node_cpu, node_mem = self.capacity[m]
        cpu, mem = int(self.jobs.cpu_milli[j]), int(self.jobs.mem_mb[j])
        return (
            gpus,
            gpus * (cpu if cpu >= 0 else node_cpu // node_gpus),
            gpus * (mem if mem >= 0 else node_mem // node_gpus),
        )

    def _plus(self, free: Free, j: int, way: Allocation, sign: int) -> Free:
        """A copy of ``free`` with a job's allocation given back (+1) or taken (−1)."""
        out = dict(free)
        for m, gpus in way.items():
            out[m] = tuple(have + sign * need for have, need in zip(out[m], self._needs(j, m, gpus)))
        return out

    def _start(self, j: int, way: Allocation, now: float) -> None:
        assert j not in self.start, f"job {j} starts twice"
        assert now >= self.jobs.submit_s[j], f"job {j} starts before its submission"
        assert sum(way.values()) == self.jobs.gpus[j], f"job {j} gets {sum(way.values())} GPUs"
        self.free = self._plus(self.free, j, way, -1)
        self.queue.remove(j)
        self.running.append(j)
        self.start[j], self.allocation[j] = now, way

    def _end(self, j: int) -> float:
        return self.start[j] + float(self.jobs.run_s[j])

    def _check(self) -> None:
        """Free and used add up to the capacity, per node and resource."""
        used = {m: (0, 0, 0) for m in self.capacity}
        for j in self.running:
            for m, gpus in self.allocation[j].items():
                used[m] = tuple(a + b for a, b in zip(used[m], self._needs(j, m, gpus)))
        for m, have in self.capacity.items():
            adds_up = all(f >= 0 and f + u == c for f, u, c in zip(self.free[m], used[m], have))
            assert adds_up, f"node {m}: free and used do not add up to its capacity"
