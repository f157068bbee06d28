"""Every allocation to place a job on what is free, by looking at every node: what the oracles of tests/cluster and
tests/placement share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout

Allocation = tuple[tuple[int, int], ...]  # (node, GPUs) of each chunk, a remainder last


class Allocations:
    """On the nodes of the pool of one of the jobs; ``free``: node → GPUs, thousandths of a CPU, MB."""

    def __init__(self, jobs: Jobs, layout: Layout, chosen: int) -> None:
        self.jobs, self.node, self.chosen = jobs, layout.nodes.row, chosen
        here = layout.nodes.pool[jobs.pool[chosen]]
        self.pool = range(here["start"], here["stop"])
        self.largest = max(int(self.node["gpus"][m]) for m in self.pool)

    def needs(self, j: int, gpus: int, m: int) -> tuple[int, int, int]:
        """GPUs, thousandths of a CPU and MB of a chunk on a node."""
        row, node = self.jobs.row[j], self.node[m]
        cpu = int(row["cpu_milli"]) if row["cpu_milli"] >= 0 else int(node["cpu_milli"] // node["gpus"])
        mem = int(row["mem_mb"]) if row["mem_mb"] >= 0 else int(node["mem_mb"] // node["gpus"])
        return gpus, gpus * cpu, gpus * mem

    def fits(self, j: int, gpus: int, m: int, free: tuple) -> bool:
        """Whether a chunk fits a node."""
        return all(have >= need for have, need in zip(free[m], self.needs(j, gpus, m), strict=True))

    def alike(self, allocation: Allocation, *free: tuple) -> tuple:
        """Equal for allocations that differ by swapping nodes of a group on which equally much is free at all of these times."""
        return tuple(sorted((gpus, int(self.node["group"][m]), *(left[m] for left in free)) for m, gpus in allocation))

    def strict_nodes(self, j: int, kind: int) -> int:
        """Nodes of a job that is not split."""
        _, full, rem = self.jobs.cut[j, kind].tolist()[:3]
        return full + (rem > 0)

    def whole(self, j: int, free: tuple, unequal: bool = False) -> Iterator[Allocation]:
        """Every allocation in equal chunks and a rest; ``unequal``: also of jobs that are never cut so."""
        for kind, (size, full, rem, *_) in enumerate(self.jobs.cut[j].tolist()):
            if full < 0:
                continue
            if size == 0:
                if unequal:
                    yield from self.cut_anyhow(j, kind, free, full)
                continue
            mine = [m for m in self.pool if self.node["type"][m] == kind]
            for nodes in combinations([m for m in mine if self.fits(j, size, m, free)], full):
                chunks = tuple((m, size) for m in nodes)
                if not rem:
                    yield chunks
                for m in mine if rem else []:
                    if m not in nodes and self.fits(j, rem, m, free):
                        yield (*chunks, (m, rem))

    def cut_anyhow(self, j: int, kind: int, free: tuple, most_nodes: int) -> Iterator[Allocation]:
        """Every allocation on the fewest nodes of a type, so many at most, with any GPUs on each."""
        mine = [m for m in self.pool if self.node["type"][m] == kind]
        room = {m: max(g for g in range(free[m][0] + 1) if self.fits(j, g, m, free)) for m in mine}
        total = int(self.jobs.gpus[j])
        for n in range(1, min(len(mine), most_nodes) + 1):
            found = False
            for nodes in combinations(mine, n):
                for gpus in product(*(range(1, room[m] + 1) for m in nodes[:-1])):
                    if 1 <= total - sum(gpus) <= room[nodes[-1]]:
                        found = True
                        yield tuple(zip(nodes, (*gpus, total - sum(gpus)), strict=True))
            if found:
                return
