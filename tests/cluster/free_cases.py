"""What is free on every node, at random; where a job could go, by enumeration; what the compiled search answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from rltune.cluster.candidates import classes, count_candidates, room
from rltune.cluster.fit import Jobs
from rltune.cluster.free import CHUNK, Free, all_free, change
from rltune.cluster.layout import Layout
from rltune.cluster.search import find

Vectors = list[np.ndarray]  # GPUs, thousandths of a CPU, MB, each [M]
Way = tuple[int, tuple[int, ...], int]  # type, nodes of the full chunks, node of the last one or −1


def capacity(layout: Layout) -> Vectors:
    """Every node idle."""
    return [layout.nodes.row[name].copy() for name in ("gpus", "cpu_milli", "mem_mb")]


def random_free(layout: Layout, rng: np.random.Generator) -> Vectors:
    """What is left of each node; few levels, so that nodes are often alike."""
    share = rng.choice([0.0, 0.25, 0.5, 1.0, 1.0, 1.0], len(layout.nodes.gpus))
    extra = rng.choice([0.5, 1.0, 1.0, 1.0], len(share))
    gpus, cpu, mem = capacity(layout)
    return [np.floor(x).astype(np.int64) for x in (gpus * share, cpu * share * extra, mem * share)]


def indexed(layout: Layout, free: Vectors) -> Free:
    """The same with its index."""
    out = Free(*(column[0] for column in all_free(layout.nodes, 1)))
    for m, taken in enumerate(zip(*(now - whole for now, whole in zip(free, capacity(layout), strict=True)))):
        change(layout.nodes, out, m, *map(int, taken))
    return out


def placed(jobs: Jobs, layout: Layout, j: int, free: Vectors, rule: int, extra: int = 0) -> list[tuple[int, int]]:
    """(node, GPUs) of each chunk; empty where the job does not fit."""
    place = np.zeros(int(max(jobs.gpus.max(), jobs.cut["full"].max() + 1)), CHUNK)
    n = find(layout.nodes, jobs, indexed(layout, free), j, rule, extra, place)
    return [tuple(chunk) for chunk in place[:n].tolist()]


def ways_of(jobs: Jobs, layout: Layout, j: int, free: Vectors) -> int:
    """Ways of a job as the simulator counts them."""
    out = room(layout.nodes)
    k = classes(layout.nodes, int(jobs.pool[j]), indexed(layout, free), False, out)
    return count_candidates(layout.nodes, jobs, j, out, k)


def has_room(jobs: Jobs, layout: Layout, j: int, gpus: int, m: int, free: Vectors) -> bool:
    """Whether a chunk fits a node."""
    row, node = jobs.row[j], layout.nodes.row[m]
    cpu = row["cpu_milli"] if row["cpu_milli"] >= 0 else node["cpu_milli"] // node["gpus"]
    mem = row["mem_mb"] if row["mem_mb"] >= 0 else node["mem_mb"] // node["gpus"]
    return bool(free[0][m] >= gpus and free[1][m] >= gpus * cpu and free[2][m] >= gpus * mem)


def all_ways(jobs: Jobs, layout: Layout, j: int, free: Vectors) -> Iterator[Way]:
    """Every allocation of a job in equal chunks and a rest."""
    nodes = layout.nodes
    pool = range(nodes.pool_start[jobs.pool[j]], nodes.pool_start[jobs.pool[j] + 1])
    for kind, (size, full, rem, *_) in enumerate(jobs.cut[j].tolist()):
        if full < 0 or size == 0:
            continue
        mine = [m for m in pool if nodes.row["type"][m] == kind]
        for whole in combinations([m for m in mine if has_room(jobs, layout, j, size, m, free)], full):
            if not rem:
                yield kind, whole, -1
            for m in mine:
                if rem and m not in whole and has_room(jobs, layout, j, rem, m, free):
                    yield kind, whole, m


def distinct(layout: Layout, ways: list[Way], free: Vectors) -> int:
    """How many are left when identical nodes may be swapped."""

    def alike(m: int) -> tuple:
        return (layout.nodes.row["group"][m], *(f[m] for f in free)) if m >= 0 else ()

    return len({(k, tuple(sorted(Counter(map(alike, whole)).items())), alike(m)) for k, whole, m in ways})


def free_cases() -> Iterator[tuple[int, np.random.Generator]]:
    """Seeds of workloads, each with a generator of its own for what is free."""
    return ((seed, np.random.default_rng(1000 + seed)) for seed in range(40))
