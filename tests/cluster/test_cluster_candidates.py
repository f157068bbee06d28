"""Candidate placements of a job, against enumeration of all its allocations."""

from allocations import Allocations
from free_cases import by_node, candidates_of, free_cases, indexed, random_free
from workload_cases import random_case

from rltune.cluster.candidates import MAX_CANDIDATES


def test_candidates_are_counted_up_to_swapping_identical_nodes():
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
                assert candidates_of(jobs, layout, j, index) == expected, (seed, j)
                seen.add(expected)
    assert len(seen) >= 5
