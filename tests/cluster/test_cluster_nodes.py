"""Where a job can go, against enumeration of all its allocations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from workload_cases import cluster, compiled, group, random_case, simple

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.nodes import BEST_FIT, FIRST_FIT, MAX_WAYS, classes, count_ways, find

Free = list[np.ndarray]  # GPUs, thousandths of a CPU, MB, each [M]
Way = tuple[int, tuple[int, ...], int]  # type, nodes of the full chunks, node of the last one or −1


def room_for(jobs: Jobs, layout: Layout, j: int, gpus: int, m: int, free: Free) -> bool:
    """Whether a chunk fits a node."""
    nodes = layout.nodes
    cpu = jobs.cpu_milli[j] if jobs.cpu_milli[j] >= 0 else nodes.cpu_milli[m] // nodes.gpus[m]
    mem = jobs.mem_mb[j] if jobs.mem_mb[j] >= 0 else nodes.mem_mb[m] // nodes.gpus[m]
    return bool(free[0][m] >= gpus and free[1][m] >= gpus * cpu and free[2][m] >= gpus * mem)


def all_ways(jobs: Jobs, layout: Layout, j: int, free: Free) -> Iterator[Way]:
    """Every allocation of a job."""
    nodes = layout.nodes
    pool = range(nodes.pool_start[jobs.pool[j]], nodes.pool_start[jobs.pool[j] + 1])
    for kind in range(jobs.full.shape[1]):
        size, full, rem = (int(x[j, kind]) for x in (jobs.size, jobs.full, jobs.rem))
        if full < 0:
            continue
        mine = [m for m in pool if nodes.type[m] == kind]
        for whole in combinations([m for m in mine if room_for(jobs, layout, j, size, m, free)], full):
            if not rem:
                yield kind, whole, -1
            for m in mine:
                if rem and m not in whole and room_for(jobs, layout, j, rem, m, free):
                    yield kind, whole, m


def distinct(layout: Layout, ways: list[Way], free: Free) -> int:
    """How many are left when identical nodes may be swapped."""

    def alike(m: int) -> tuple:
        return (layout.nodes.group[m], *(f[m] for f in free)) if m >= 0 else ()

    return len({(k, tuple(sorted(Counter(map(alike, whole)).items())), alike(m)) for k, whole, m in ways})


def random_free(layout: Layout, rng: np.random.Generator) -> Free:
    """What is left of each node; few levels, so that nodes are often alike."""
    share = rng.choice([0.0, 0.25, 0.5, 1.0, 1.0, 1.0], len(layout.nodes.gpus))
    extra = rng.choice([0.5, 1.0, 1.0, 1.0], len(share))
    nodes = layout.nodes
    return [
        np.floor(nodes.gpus * share).astype(np.int64),
        np.floor(nodes.cpu_milli * share * extra).astype(np.int64),
        np.floor(nodes.mem_mb * share).astype(np.int64),
    ]


def placed(jobs: Jobs, layout: Layout, j: int, free: Free, rule: int) -> list[tuple[int, int]]:
    """(node, GPUs) of each chunk."""
    room = 2 * int(jobs.full.max() + 1)
    node, gpus = np.zeros(room, np.int64), np.zeros(room, np.int64)
    n = find(layout.nodes, jobs, j, *free, rule, node, gpus)
    return list(zip(node[:n].tolist(), gpus[:n].tolist(), strict=True))


def ways_of(jobs: Jobs, layout: Layout, j: int, free: Free) -> int:
    out = np.empty((96, 6), np.int64)
    k = classes(layout.nodes, jobs.pool[j], *free, out)
    return count_ways(layout.nodes, jobs, j, out, k)


def cases() -> Iterator[tuple[int, np.random.Generator]]:
    """Seeds of cases, each with a generator of its own for what is free."""
    return ((seed, np.random.default_rng(1000 + seed)) for seed in range(40))


@pytest.mark.parametrize("rule", [FIRST_FIT, BEST_FIT])
def test_find_finds_a_way_where_there_is_one(rule: int) -> None:
    found = missed = 0
    for seed, rng in cases():
        jobs, layout = random_case(seed, n=30)
        free = random_free(layout, rng)
        for j in range(len(jobs.gpus)):
            chunks = placed(jobs, layout, j, free, rule)
            ways = list(all_ways(jobs, layout, j, free))
            assert bool(chunks) == bool(ways)
            found, missed = found + bool(chunks), missed + (not chunks)
            if chunks:
                nodes = [m for m, _ in chunks]
                kind = layout.nodes.type[nodes[0]]
                full = int(jobs.full[j, kind])
                assert (kind, tuple(sorted(nodes[:full])), nodes[full] if len(nodes) > full else -1) in ways
                assert sum(g for _, g in chunks) == jobs.gpus[j]
    assert found > 200 < missed


def test_one_chunk_goes_to_the_lowest_or_the_tightest_node() -> None:
    for seed, rng in cases():
        jobs, layout = random_case(seed, n=30)
        free = random_free(layout, rng)
        for j in range(len(jobs.gpus)):
            ways = list(all_ways(jobs, layout, j, free))
            if not ways or any(len(whole) + (m >= 0) > 1 for _, whole, m in ways):
                continue
            node = [(kind, whole[0] if whole else m) for kind, whole, m in ways]
            assert placed(jobs, layout, j, free, FIRST_FIT)[0][0] == min(node)[1]
            tightest = min(node, key=lambda w: (free[0][w[1]], *w))
            assert placed(jobs, layout, j, free, BEST_FIT)[0][0] == tightest[1]


def test_ways_are_counted_up_to_swapping_identical_nodes() -> None:
    seen = set()
    for seed, rng in cases():
        jobs, layout = random_case(seed, n=30)
        for _ in range(2):
            free = random_free(layout, rng)
            for j in range(len(jobs.gpus)):
                expected = distinct(layout, list(all_ways(jobs, layout, j, free)), free)
                assert ways_of(jobs, layout, j, free) == min(expected, MAX_WAYS), (seed, j)
                seen.add(min(expected, MAX_WAYS))
    assert len(seen) >= 5


def test_ways_by_hand() -> None:
    jobs, layout = simple(cluster([group(4, 4)]), (0, 1, 2), (0, 1, 8), (0, 1, 6), (0, 1, 16))

    def ways(j: int, *free_gpus: int) -> int:
        free = np.array(free_gpus)
        return ways_of(jobs, layout, j, [free, free * 8000, free * 32000])

    assert ways(0, 4, 4, 4, 4) == 1  # four identical nodes
    assert ways(0, 4, 3, 2, 1) == 3  # a node of its own kind each, the last too small
    assert ways(0, 0, 1, 1, 0) == 0
    assert ways(1, 4, 4, 4, 0) == 1
    assert ways(1, 4, 3, 3, 3) == 0
    assert ways(2, 4, 4, 3, 2) == 3  # the rest of two on another whole node, on the three, or on the two
    assert ways(2, 4, 3, 3, 1) == 1
    assert ways(2, 4, 1, 1, 1) == 0
    assert ways(3, 4, 4, 4, 4) == 1


def test_two_groups_of_full_nodes_make_every_mixture_a_way() -> None:
    """Two of two nodes with many CPUs and two with few: 2 + 0, 1 + 1, 0 + 2; the rest goes to either."""
    config = cluster([group(2, 4, cpus=64), group(2, 4, cpus=32)])
    jobs, layout = simple(config, (0, 1, 8), (0, 1, 9), (0, 1, 16), (0, 1, 13))
    free = [layout.nodes.gpus.copy(), layout.nodes.cpu_milli.copy(), layout.nodes.mem_mb.copy()]
    assert [ways_of(jobs, layout, j, free) for j in range(4)] == [3, 4, 1, 2]


def test_classes_partition_the_nodes_with_free_gpus() -> None:
    for seed, rng in cases():
        _, layout = random_case(seed, n=5)
        nodes = layout.nodes
        free = random_free(layout, rng)
        for pool in range(len(layout.pools)):
            out = np.empty((96, 6), np.int64)
            k = classes(nodes, pool, *free, out)
            mine = [m for m in range(nodes.pool_start[pool], nodes.pool_start[pool + 1]) if free[0][m] > 0]
            alike = Counter((nodes.group[m], *(f[m] for f in free)) for m in mine)
            assert {tuple(row[:4]): row[4] for row in out[:k]} == alike
            for row in out[:k]:
                assert row[5] == min(m for m in mine if (nodes.group[m], *(f[m] for f in free)) == tuple(row[:4]))


def test_a_gpu_type_is_never_mixed_and_the_tighter_one_is_preferred() -> None:
    config = cluster([group(1, 8, "V100"), group(1, 4, "P100"), group(1, 4, "K80")])
    rows = [{"gpus": 3}, {"gpus": 3, "gpu_type": "V100|K80"}, {"gpus": 6}]
    jobs, layout = compiled(config, rows)
    free = [layout.nodes.gpus.copy(), layout.nodes.cpu_milli.copy(), layout.nodes.mem_mb.copy()]
    by_id = dict(zip(("any", "two", "six"), range(3), strict=True))
    assert placed(jobs, layout, by_id["any"], free, BEST_FIT) == [(1, 3)]
    assert placed(jobs, layout, by_id["any"], free, FIRST_FIT) == [(0, 3)]
    assert placed(jobs, layout, by_id["two"], free, BEST_FIT) == [(2, 3)]
    assert placed(jobs, layout, by_id["six"], free, BEST_FIT) == [(0, 6)]
