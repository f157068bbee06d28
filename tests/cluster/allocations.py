"""Every allocation to place a job on what is free, by looking at every node: what the oracles of tests/cluster and
tests/placement share."""

from collections.abc import Iterator
from itertools import combinations, product

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.reference.placement import Placement

Allocation = tuple[tuple[int, int], ...]  # (node, GPUs) of each chunk, a remainder last


class Allocations(Placement):
    """On the nodes of the pool of one of the jobs; ``free``: node → GPUs, thousandths of a CPU, MB."""

    def __init__(self, jobs: Jobs, layout: Layout, chosen: int) -> None:
        super().__init__(jobs, layout, "best_fit")
        self.jobs, self.node, self.chosen = jobs, layout.nodes.row, chosen
        self.pool = self.nodes_of_pool[jobs.pool[chosen]]
        self.largest = max(self.capacity[m][0] for m in self.pool)

    def alike(self, allocation: Allocation, *free: tuple) -> tuple:
        """Equal for allocations that differ by swapping nodes of a group on which equally much is free at all of these times."""
        return tuple(sorted((gpus, int(self.node["group"][m]), *(left[m] for left in free)) for m, gpus in allocation))

    def whole(self, j: int, free: tuple, unequal: bool = False) -> Iterator[Allocation]:
        """Every allocation in equal chunks and a rest; ``unequal``: also of jobs without equal chunks."""
        for kind, (size, full, rem) in enumerate(self.cut[j]):
            if full < 0:
                continue
            if size == 0:
                if unequal:
                    yield from self.unequal_chunks(j, kind, free, full)
                continue
            mine = [m for m in self.pool if self.kind[m] == kind]
            for nodes in combinations([m for m in mine if self._holds(j, m, size, free)], full):
                chunks = tuple((m, size) for m in nodes)
                if not rem:
                    yield chunks
                for m in mine if rem else []:
                    if m not in nodes and self._holds(j, m, rem, free):
                        yield (*chunks, (m, rem))

    def unequal_chunks(self, j: int, kind: int, free: tuple, most_nodes: int) -> Iterator[Allocation]:
        """Every allocation on the fewest nodes of a type, so many at most, with any GPUs on each."""
        mine = [m for m in self.pool if self.kind[m] == kind]
        most = {m: self._available(j, m, free) for m in mine}
        total = int(self.jobs.gpus[j])
        for n in range(1, min(len(mine), most_nodes) + 1):
            found = False
            for nodes in combinations(mine, n):
                for gpus in product(*(range(1, most[m] + 1) for m in nodes[:-1])):
                    if 1 <= total - sum(gpus) <= most[nodes[-1]]:
                        found = True
                        yield tuple(zip(nodes, (*gpus, total - sum(gpus)), strict=True))
            if found:
                return
