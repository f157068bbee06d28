"""What is free on every node, at random; what the compiled search answers."""

from collections.abc import Iterator

import numpy as np

from rltune.cluster.candidates import class_table, classes, count_candidates
from rltune.cluster.fit import Jobs
from rltune.cluster.free import CHUNK, Free, all_free, change
from rltune.cluster.layout import Layout
from rltune.cluster.search import find

Vectors = list[np.ndarray]  # GPUs, thousandths of a CPU, MB, each [M]


def capacity(layout: Layout) -> Vectors:
    """Every node idle."""
    return [layout.nodes.row[name].copy() for name in ("gpus", "cpu_milli", "mem_mb")]


def random_free(layout: Layout, rng: np.random.Generator) -> Vectors:
    """What is left of each node; few levels, so that nodes are often alike."""
    share = rng.choice([0.0, 0.25, 0.5, 1.0, 1.0, 1.0], len(layout.nodes.gpus))
    extra = rng.choice([0.5, 1.0, 1.0, 1.0], len(share))
    gpus, cpu, mem = capacity(layout)
    return [np.floor(x).astype(np.int64) for x in (gpus * share, cpu * share * extra, mem * share)]


def by_node(free: Vectors) -> tuple[tuple[int, int, int], ...]:
    """The same, node by node."""
    return tuple(zip(*(left.tolist() for left in free), strict=True))


def indexed(layout: Layout, free: Vectors) -> Free:
    """The same with its index, as the compiled search reads it."""
    out = Free(*(column[0] for column in all_free(layout.nodes, 1)))
    for m, taken in enumerate(zip(*(now - whole for now, whole in zip(free, capacity(layout), strict=True)))):
        change(layout.nodes, out, m, *map(int, taken))
    return out


def free_gpus(layout: Layout, *gpus: int) -> Free:
    """So many GPUs free on the nodes, each with 8 CPUs and 32 GB."""
    free = np.array(gpus)
    return indexed(layout, [free, free * 8000, free * 32000])


def placed(jobs: Jobs, layout: Layout, j: int, free: Free, rule: int, extra: int = 0) -> list[tuple[int, int]]:
    """(node, GPUs) of each chunk; empty where the job does not fit."""
    place = np.zeros(int(max(jobs.gpus.max(), jobs.cut["full"].max() + 1)), CHUNK)
    n = find(layout.nodes, jobs, free, j, rule, extra, place)
    return [tuple(chunk) for chunk in place[:n].tolist()]


def candidates_of(jobs: Jobs, layout: Layout, j: int, free: Free) -> int:
    """Candidates of a job as the simulator counts them."""
    out = class_table(layout.nodes)
    k = classes(layout.nodes, int(jobs.pool[j]), free, False, out)
    return count_candidates(layout.nodes, jobs, j, out, k)


def free_cases() -> Iterator[tuple[int, np.random.Generator]]:
    """Seeds of workloads, each with a generator for what is free."""
    return ((seed, np.random.default_rng(1000 + seed)) for seed in range(40))
