"""The compiled engine and its plain-Python twin do the same, start by start and node by node."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from random_cases import times
from twin_cases import BACKFILLS, LOCALITIES, PLACEMENTS, Case, assert_same, cases
from workload_cases import cluster, compiled, group, random_case

from rltune.config.cells import PLANNED_TYPES
from rltune.policies import IDS
from rltune.simulator.batch import SchedulerConfig, only_gpus_count


def test_engine_equals_twin():
    """Any workload, any policy, any rules, any ranking from outside, some sequences side by side.

    The cases are worth comparing: they queue, run past their estimates, span pools, types and nodes, are split and pass each other.
    """
    seen: Counter[str] = Counter()

    @times(10)
    @given(cases())
    def compare(case: Case) -> None:
        twin, jobs, scheduler = assert_same(case), case.jobs, case.scheduler
        start = np.array([twin.start[j] for j in twin.rows])
        seen[scheduler.policy] += 1
        seen["waits"] += (start > jobs.submit_s).sum() > 3
        seen["at the same time"] += len(set(jobs.submit_s)) < len(start)
        seen["pools"] += len(set(jobs.pool)) > 1
        seen["types"] += (jobs.cut["full"] >= 0).sum(axis=1).max() > 1
        seen["nodes"] += max(map(len, twin.allocation.values())) > 1
        seen["own CPUs and memory"] += bool((jobs.row["cpu_milli"] >= 0).any() and (jobs.row["mem_mb"] >= 0).any())
        seen["overruns"] += bool((jobs.estimate_s < jobs.run_s).any())
        seen["agreements"] += bool(jobs.row["sla"].any())
        seen["past the maximum wait"] += any(twin._urgency(j, twin.start[j])[:2] == (True, False) for j in twin.rows)
        seen["accounts"] += len(set(jobs.account)) > 1
        seen["batches"] += len(case.first) > 1
        if any(twin.place.is_split(j, allocation) for j, allocation in twin.allocation.items()):
            seen[scheduler.locality] += 1
        if (np.diff(start) < 0).any():
            seen[scheduler.backfill] += 1

    compare()
    expected = (
        "waits, at the same time, pools, types, nodes, own CPUs and memory, overruns, agreements, past the maximum wait"
    )
    assert set(+seen) >= {*IDS, *BACKFILLS, *expected.split(", "), "accounts", "batches", "plus_one", "any"}
    assert not seen["strict"]


def test_engine_equals_twin_where_many_queue():
    """And where jobs are split under every locality that allows it."""
    split = set()
    for seed, (i, policy) in product(range(3), enumerate(IDS)):
        jobs, layout = random_case(seed, n=150, pools=1)
        placement, locality = PLACEMENTS[(i + seed) % 4], LOCALITIES[(i // 2 + seed) % 5]
        backfill, visible = ("none", "greedy", "easy")[(i + seed) % 3], [None, 0, 20][(i + 2 * seed) % 3]
        scheduler = SchedulerConfig(policy, backfill, placement, locality, multi_node_slowdown=1.5)
        twin = assert_same(Case(jobs, layout, [0], [len(jobs.gpus)], scheduler, visible))
        split |= {locality for j, allocation in twin.allocation.items() if twin.place.is_split(j, allocation)}
    assert split == {*LOCALITIES} - {"strict"}


@pytest.mark.parametrize("types", ["auto", "least", "joint"])
def test_engine_equals_twin_where_many_queue_under_every_rule(types):
    """Long queues under each kind of backfilling, placement and head, also where the types are planned."""
    backfills, heads = (["conservative"], [False]) if types in PLANNED_TYPES else (BACKFILLS, [False, True])
    for i, (backfill, placement, sticky_head) in enumerate(product(backfills, PLACEMENTS, heads)):
        jobs, layout = random_case(4 + i // 5, n=40 if types == "joint" else 80, pools=1)
        scheduler = SchedulerConfig("saf", backfill, placement, "any", sticky_head=sticky_head, types=types)
        assert_same(Case(jobs, layout, [0], [len(jobs.gpus)], scheduler, None))


@pytest.mark.parametrize("cpus", [None, 3.0, 9.0])
@pytest.mark.parametrize("types", ["auto", "least"])
def test_engine_equals_twin_where_many_alike_queue(types, cpus):
    """Jobs of equal GPUs but other estimates, so that a search serves the next; a free GPU is not enough where CPUs are scarce."""
    config, rng = cluster([group(2, 8, "V100"), group(2, 4, "P100")]), np.random.default_rng(0)
    rows = []
    for i in range(50):
        gpus, run_s = int(rng.choice([1, 4, 4, 8])), float(rng.integers(20, 2000))
        row = {"submit_s": 9.0 * (i // 5), "gpus": gpus, "run_s": run_s}
        row["requested_s"] = run_s * float(rng.choice([0.4, 1, 1, 3]))
        rows.append(row | ({"cpus": gpus * cpus} if cpus and i % 3 else {}))
    jobs, layout = compiled(config, rows)
    assert only_gpus_count(jobs, layout) == (cpus != 9.0)
    for placement in ("best_fit", "spread"):
        twin = assert_same(
            Case(jobs, layout, [0], [50], SchedulerConfig("fifo", "conservative", placement, types=types), None)
        )
        assert sum(twin.start[j] > jobs.submit_s[j] for j in twin.rows) > 30
