"""Ways a job could be placed, against enumeration of all its allocations."""

from __future__ import annotations

from allocations import Allocations
from free_cases import by_node, capacity, free_cases, free_gpus, indexed, random_free, ways_of
from workload_cases import cluster, group, random_case, simple

from rltune.cluster.candidates import MAX_CANDIDATES


def test_candidates_are_counted_up_to_swapping_identical_nodes() -> None:
    seen = set()
    for seed, rng in free_cases():
        jobs, layout = random_case(seed, n=30)
        for _ in range(2):
            free = random_free(layout, rng)
            index, left = indexed(layout, free), by_node(free)
            for j in range(len(jobs.gpus)):
                every = Allocations(jobs, layout, j)
                distinct = {every.alike(one, left) for one in every.whole(j, left)}
                expected = min(len(distinct), MAX_CANDIDATES)
                assert ways_of(jobs, layout, j, index) == expected, (seed, j)
                seen.add(expected)
    assert len(seen) >= 5


def test_candidates_by_hand() -> None:
    jobs, layout = simple(cluster([group(4, 4)]), (0, 1, 2), (0, 1, 8), (0, 1, 6), (0, 1, 16))

    def ways(j: int, *gpus: int) -> int:
        return ways_of(jobs, layout, j, free_gpus(layout, *gpus))

    assert ways(0, 4, 4, 4, 4) == 1  # four identical nodes
    assert ways(0, 4, 3, 2, 1) == 3  # a node of its own kind each, the last too small
    assert ways(0, 0, 1, 1, 0) == 0
    assert ways(1, 4, 4, 4, 0) == 1
    assert ways(1, 4, 3, 3, 3) == 0
    assert ways(2, 4, 4, 3, 2) == 3  # the rest of two on another whole node, on the three, or on the two
    assert ways(2, 4, 3, 3, 1) == 1
    assert ways(2, 4, 1, 1, 1) == 0
    assert ways(3, 4, 4, 4, 4) == 1


def test_two_groups_of_full_nodes_make_every_mixture_a_candidate() -> None:
    """Two of two nodes with many CPUs and two with few: 2 + 0, 1 + 1, 0 + 2; the rest goes to either."""
    config = cluster([group(2, 4, cpus=64), group(2, 4, cpus=32)])
    jobs, layout = simple(config, (0, 1, 8), (0, 1, 9), (0, 1, 16), (0, 1, 13))
    free = indexed(layout, capacity(layout))
    assert [ways_of(jobs, layout, j, free) for j in range(4)] == [3, 4, 1, 2]
