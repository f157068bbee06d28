"""Where the plain-Python twin puts a job: placement rules and localities, by looking at every node.

A job is cut into full chunks and at most one remainder, each on a separate node, all of one GPU type (strict
locality). The rules go chunk by chunk: ``first_fit`` takes the lowest node; ``best_fit`` the one with the fewest free
GPUs, then the lowest; ``isolating_best_fit`` likewise, but a job of several GPUs first takes nodes on which no other
such job runs; ``spread`` the one with the most free GPUs, then the lowest; ``exclusive`` the smallest idle node, then
the lowest, and the job has all of it. Of several GPU types those of the lowest rank go first; of these first_fit takes
the first in which the job fits, best_fit and exclusive the one whose last chunk leaves the fewest GPUs on its node,
isolating_best_fit too, but one where it shares no node first, spread the most; then the first.

A job that does not fit so may be *split*, on as few nodes as hold it and on ``extra`` more than strict at most: those
with the most GPUs for it (isolating_best_fit: then those without such a job), each to the full, and the last chunk by
the rule. Of several types the one with the fewest nodes, then the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rltune.cluster.fit import Jobs
    from rltune.cluster.layout import Layout

Allocation = dict[int, int]
"""Node → GPUs, in the order of the chunks."""
Amount = tuple[int, int, int]
"""GPUs, thousandths of a CPU, MB."""
Free = dict[int, Amount]
"""Node → what is free on it."""

RULES = ("first_fit", "best_fit", "spread", "exclusive", "isolating_best_fit")


def _plus(a: Amount, b: Amount, sign: int) -> Amount:
    return a[0] + sign * b[0], a[1] + sign * b[1], a[2] + sign * b[2]


def _within(need: Amount, have: Amount) -> bool:
    return need[0] <= have[0] and need[1] <= have[1] and need[2] <= have[2]


class Placement:
    """One rule on one cluster; jobs are rows of ``jobs``."""

    def __init__(self, jobs: Jobs, layout: Layout, rule: str) -> None:
        if rule not in RULES:
            raise ValueError(f"found placement {rule!r}, expected one of {', '.join(RULES)}")
        node, pool = layout.nodes.row, layout.nodes.pool
        self.rule, self.row = rule, jobs.row
        self.cut = [[tuple(cut)[:3] for cut in row] for row in jobs.cut.tolist()]
        self.rank = jobs.cut["rank"].tolist()
        self.own = list(zip(jobs.row["cpu_milli"].tolist(), jobs.row["mem_mb"].tolist()))
        self.capacity: Free = dict(
            enumerate(zip(node["gpus"].tolist(), node["cpu_milli"].tolist(), node["mem_mb"].tolist()))
        )
        self.kind = node["type"].tolist()
        self.multi_gpu_jobs: dict[int, int] = {}
        """Node → running jobs of several GPUs on it."""
        self.nodes_of_pool = [list(range(a, b)) for a, b in zip(pool["start"].tolist(), pool["stop"].tolist())]

    def needs(self, j: int, m: int, gpus: int) -> Amount:
        """What a chunk needs of a node: its own CPUs and memory, else those that go with its GPUs there."""
        node_gpus, node_cpu, node_mem = self.capacity[m]
        cpu, mem = self.own[j]
        return (
            gpus,
            gpus * (cpu if cpu >= 0 else node_cpu // node_gpus),
            gpus * (mem if mem >= 0 else node_mem // node_gpus),
        )

    def takes(self, j: int, m: int, gpus: int) -> Amount:
        """What a chunk takes of a node."""
        return self.capacity[m] if self.rule == "exclusive" else self.needs(j, m, gpus)

    def with_job(self, free: Free, j: int, allocation: Allocation, sign: int) -> Free:
        """A copy of ``free`` with a job's allocation released (+1) or taken (−1)."""
        out = dict(free)
        for m, gpus in allocation.items():
            out[m] = _plus(out[m], self.takes(j, m, gpus), sign)
        return out

    def find(self, j: int, free: Free, extra: float, only: int | None = None) -> Allocation | None:
        """Where a job goes on what is free, on ``extra`` nodes more than strict at most; None where it does not fit.

        ``only``: the one GPU type to look at.
        """
        allocation = self._strict(j, free, only)
        return self.split(j, free, extra, only) if allocation is None and extra > 0 else allocation

    def strict_nodes(self, j: int, kind: int) -> int:
        """Nodes of a strict allocation on one GPU type."""
        _, full, rem = self.cut[j][kind]
        return full + (rem > 0)

    def is_split(self, j: int, allocation: Allocation) -> bool:
        """Whether an allocation has more nodes than a strict one of its type."""
        return len(allocation) > self.strict_nodes(j, self.kind[next(iter(allocation))])

    def _strict(self, j: int, free: Free, only: int | None) -> Allocation | None:
        found = []
        for kind in self.kinds(j) if only is None else [only]:
            allocation = self._chunks(j, kind, free)
            if allocation is not None:
                last = list(allocation)[-1]
                left = free[last][0] - allocation[last]
                shares = any(self._shares(j, m) for m in allocation)
                found.append(((self.rank[j][kind], shares, -left if self.rule == "spread" else left), kind, allocation))
        if not found:
            return None
        if self.rule == "first_fit":
            return min(found, key=lambda f: (f[0][0], f[1]))[2]
        return min(found, key=lambda f: f[:2])[2]

    def _chunks(self, j: int, kind: int, free: Free) -> Allocation | None:
        """A strict allocation on one GPU type, chunk by chunk, the remainder last."""
        size, full, rem = self.cut[j][kind]
        if size == 0:
            nodes = self._fewest(j, kind, free)
            return self._unequal_chunks(j, kind, nodes, free) if nodes is not None and len(nodes) <= full else None
        allocation: Allocation = {}
        for gpus in [size] * full + [rem] * (rem > 0):
            able = [m for m in self._nodes(j, kind) if m not in allocation and self._holds(j, m, gpus, free)]
            if not able:
                return None
            allocation[self._choose(j, able, free)] = gpus
        return allocation

    def split(self, j: int, free: Free, extra: float, only: int | None = None) -> Allocation | None:
        """On the fewest nodes possible, and on ``extra`` more than strict at most."""
        found: list[tuple[int, int, int, list[int]]] = []
        for kind in self.kinds(j) if only is None else [only]:
            nodes = self._fewest(j, kind, free)
            allowed = self.strict_nodes(j, kind) + extra
            if nodes is not None and len(nodes) <= allowed:
                found.append((self.rank[j][kind], len(nodes), kind, nodes))
        if not found:
            return None
        _, _, kind, nodes = min(found, key=lambda f: f[:3])
        return self._unequal_chunks(j, kind, nodes, free)

    def _fewest(self, j: int, kind: int, free: Free) -> list[int] | None:
        """The fewest nodes on which the job fits if its chunks may be unequal, those with the most GPUs for it first."""
        most = {m: self._available(j, m, free) for m in self._nodes(j, kind)}
        nodes = sorted((m for m in most if most[m] > 0), key=lambda m: (-most[m], self._shares(j, m), m))
        wanted = int(self.row["gpus"][j])
        n = next((n for n in range(1, len(nodes) + 1) if sum(most[m] for m in nodes[:n]) >= wanted), None)
        return None if n is None else nodes[:n]

    def _unequal_chunks(self, j: int, kind: int, nodes: list[int], free: Free) -> Allocation:
        """All but the last of these nodes to the full; the rest on the node the rule prefers."""
        allocation = {m: self._available(j, m, free) for m in nodes[:-1]}
        left = int(self.row["gpus"][j]) - sum(allocation.values())
        able = [m for m in self._nodes(j, kind) if m not in allocation and self._holds(j, m, left, free)]
        allocation[self._choose(j, able, free)] = left
        return allocation

    def _choose(self, j: int, able: list[int], free: Free) -> int:
        """The node the rule prefers."""
        if self.rule == "first_fit":
            return min(able)
        return min(able, key=lambda m: (self._shares(j, m), -free[m][0] if self.rule == "spread" else free[m][0], m))

    def _shares(self, j: int, m: int) -> bool:
        """Whether the job would rather not go to a node."""
        return self.rule == "isolating_best_fit" and self.row["gpus"][j] > 1 and self.multi_gpu_jobs.get(m, 0) > 0

    def kinds(self, j: int) -> list[int]:
        """GPU types the job may use and that could hold it."""
        return [kind for kind, (_, full, _) in enumerate(self.cut[j]) if full >= 0]

    def _nodes(self, j: int, kind: int) -> list[int]:
        return [m for m in self.nodes_of_pool[self.row["pool"][j]] if self.kind[m] == kind]

    def _holds(self, j: int, m: int, gpus: int, free: Free) -> bool:
        """Whether a chunk fits on a node."""
        idle = free[m] == self.capacity[m]
        return _within(self.needs(j, m, gpus), free[m]) and (idle or self.rule != "exclusive")

    def _available(self, j: int, m: int, free: Free) -> int:
        """GPUs a node can give the job."""
        return max((g for g in range(1, free[m][0] + 1) if self._holds(j, m, g, free)), default=0)
