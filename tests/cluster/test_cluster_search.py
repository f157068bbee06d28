"""Where a job goes: the compiled search on its index against looking at every node, and known answers."""

import numpy as np
import pytest
from free_cases import by_node, capacity, free_cases, free_gpus, indexed, placed, random_free
from workload_cases import cluster, compiled, group, random_case, simple

from rltune.cluster.free import all_free, change
from rltune.cluster.search import ANY, BEST_FIT, EXCLUSIVE, EXTRA, FIRST_FIT, RULES, SPREAD
from rltune.reference.placement import Placement


@pytest.mark.parametrize("rule", RULES)
def test_search_equals_looking_at_every_node(rule):
    """Under every number of nodes more than strict, on random free nodes."""
    strict = split = missed = 0
    for seed, rng in free_cases():
        jobs, layout = random_case(seed, n=20)
        plain = Placement(jobs, layout, rule)
        for _ in range(2):
            free = random_free(layout, rng)
            index, left = indexed(layout, free), dict(enumerate(by_node(free)))
            for j in range(len(jobs.gpus)):
                for extra in (0, 1, int(EXTRA[ANY])):
                    chunks = placed(jobs, layout, j, index, RULES[rule], extra)
                    assert chunks == list((plain.find(j, left, extra) or {}).items()), (seed, j, extra)
                    strict, missed = strict + (bool(chunks) and not extra), missed + (not chunks)
                    split += bool(chunks) and plain.is_split(j, dict(chunks))
    assert strict > 300 and missed > 300 and split > 20


def test_one_chunk():
    jobs, layout = simple(cluster([group(4, 4)]), (0, 1, 2))
    free = free_gpus(layout, 3, 2, 4, 2)
    assert placed(jobs, layout, 0, free, FIRST_FIT) == [(0, 2)]
    assert placed(jobs, layout, 0, free, BEST_FIT) == [(1, 2)]
    assert placed(jobs, layout, 0, free, SPREAD) == [(2, 2)]
    assert placed(jobs, layout, 0, free, EXCLUSIVE) == [(2, 2)]
    assert placed(jobs, layout, 0, free_gpus(layout, 3, 2, 3, 2), EXCLUSIVE) == []
    assert placed(jobs, layout, 0, free_gpus(layout, 4, 3, 4, 3), SPREAD) == [(0, 2)]  # the lowest of the emptiest


def test_split():
    """Six GPUs, strictly 4 + 2, on nodes with 3, 2, 3 and 1 free."""
    jobs, layout = simple(cluster([group(4, 4)]), (0, 1, 6), (0, 1, 7), (0, 1, 5))
    free = free_gpus(layout, 3, 2, 3, 1)
    assert placed(jobs, layout, 0, free, BEST_FIT) == []
    # two nodes are enough, so it counts as no node more than strict, but strict does not cut so
    assert placed(jobs, layout, 0, free, BEST_FIT, 1) == [(0, 3), (2, 3)]
    # 3 + 3 + 1: the last chunk by the rule
    assert placed(jobs, layout, 1, free, FIRST_FIT, 1) == [(0, 3), (2, 3), (1, 1)]
    assert placed(jobs, layout, 1, free, BEST_FIT, 1) == [(0, 3), (2, 3), (3, 1)]
    assert placed(jobs, layout, 1, free, SPREAD, 1) == [(0, 3), (2, 3), (1, 1)]
    # 3 + 2: the most room first, the rest where fewest GPUs are free
    assert placed(jobs, layout, 2, free, BEST_FIT, 1) == [(0, 3), (1, 2)]
    assert placed(jobs, layout, 2, free, SPREAD, 1) == [(0, 3), (2, 2)]
    # 2 + 2 + 2 + 1 would be two nodes more than strict
    assert placed(jobs, layout, 1, free_gpus(layout, 2, 2, 2, 2), BEST_FIT, 1) == []
    assert placed(jobs, layout, 1, free_gpus(layout, 2, 2, 2, 2), BEST_FIT, 2) == [(0, 2), (1, 2), (2, 2), (3, 1)]


def test_a_gpu_type_is_never_mixed_and_the_tighter_one_is_preferred():
    config = cluster([group(1, 8, "V100"), group(1, 4, "P100"), group(1, 4, "K80")])
    rows = [{"gpus": 3}, {"gpus": 3, "gpu_type": "V100|K80"}, {"gpus": 6}]
    jobs, layout = compiled(config, rows)
    free = indexed(layout, capacity(layout))
    assert placed(jobs, layout, 0, free, BEST_FIT) == [(1, 3)]
    assert placed(jobs, layout, 0, free, EXCLUSIVE) == [(1, 3)]
    assert placed(jobs, layout, 0, free, FIRST_FIT) == [(0, 3)]
    assert placed(jobs, layout, 0, free, SPREAD) == [(0, 3)]
    assert placed(jobs, layout, 1, free, BEST_FIT) == [(2, 3)]
    assert placed(jobs, layout, 2, free, BEST_FIT) == [(0, 6)]


def test_nodes_beyond_one_word_of_the_index_are_found():
    """150 nodes: three words for every number of free GPUs."""
    jobs, layout = simple(cluster([group(150, 2)]), (0, 1, 1), (0, 1, 2), (0, 1, 5))
    free = capacity(layout)

    def found(j: int, rule: int = BEST_FIT) -> list[tuple[int, int]]:
        return placed(jobs, layout, j, indexed(layout, free), rule)

    for left, chunks in (([149], [(149, 1)]), ([140, 70], [(70, 1)]), ([63, 64, 128], [(63, 1)])):
        free[0][:] = 0
        free[0][left] = 2
        assert [found(0, rule) for rule in (FIRST_FIT, BEST_FIT, SPREAD)] == [chunks] * 3
    assert found(1) == [(63, 2)]
    assert found(2) == [(63, 2), (64, 2), (128, 1)]
    free[0][149] = 1
    assert found(0) == [(149, 1)]


def test_the_index_follows_every_change():
    for seed, rng in free_cases():
        _, layout = random_case(seed, n=5)
        nodes, start = layout.nodes, random_free(layout, rng)
        free = indexed(layout, start)
        for d, domain in enumerate(nodes.domain):
            members = nodes.member[domain["member_at"] : domain["member_at"] + domain["nodes"]]
            assert free.total[d] == start[0][members].sum()
            for gpus in range(domain["largest"] + 1):
                assert free.count[domain["bucket_at"] + gpus] == (start[0][members] == gpus).sum()
                words = free.words[domain["word_at"] + gpus * domain["words"] :][: domain["words"]]
                bits = {64 * w + b for w, word in enumerate(words.tolist()) for b in range(64) if word >> b & 1}
                assert bits == set(np.flatnonzero(start[0][members] == gpus).tolist())
        for m, given in enumerate(zip(*(a - b for a, b in zip(capacity(layout), start, strict=True)))):
            change(nodes, free, m, *map(int, given))
        assert all((a == b[0]).all() for a, b in zip(free, all_free(nodes, 1), strict=True))
