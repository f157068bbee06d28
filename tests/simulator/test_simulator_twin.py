"""The compiled engine and its plain-Python twin do the same, start by start and node by node."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
from hypothesis import given
from random_cases import times
from twin_cases import BACKFILLS, LOCALITIES, PLACEMENTS, Case, assert_same, cases
from workload_cases import random_case

from rltune.cluster.fit import Jobs
from rltune.policies import IDS
from rltune.simulator.batch import SchedulerConfig
from rltune.simulator.state import latest_s


def test_engine_equals_twin() -> None:
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
        seen["past the maximum wait"] += _some_overdue(jobs, scheduler, start)
        seen["accounts"] += len(set(jobs.account)) > 1
        seen["batches"] += len(case.first) > 1
        if any(twin.place.is_split(j, way) for j, way in twin.allocation.items()):
            seen[scheduler.locality] += 1
        if (np.diff(start) < 0).any():
            seen[scheduler.backfill] += 1

    compare()
    expected = (
        "waits, at the same time, pools, types, nodes, own CPUs and memory, overruns, agreements, past the maximum wait"
    )
    assert set(+seen) >= {*IDS, *BACKFILLS, *expected.split(", "), "accounts", "batches", "plus_one", "any"}
    assert not seen["strict"]


def _some_overdue(jobs: Jobs, scheduler: SchedulerConfig, start: np.ndarray) -> bool:
    if not scheduler.max_wait_h:
        return False
    latest = latest_s(jobs.submit_s, jobs.gpus, scheduler.max_wait_h)
    return bool((start > latest[: len(start)]).any())


def test_engine_equals_twin_where_many_queue() -> None:
    """And where jobs are split under every locality that allows it."""
    split = set()
    for seed, (i, policy) in product(range(3), enumerate(IDS)):
        jobs, layout = random_case(seed, n=150, pools=1)
        placement, locality = PLACEMENTS[(i + seed) % 4], LOCALITIES[(i // 2 + seed) % 5]
        backfill, visible = ("none", "greedy", "easy")[(i + seed) % 3], [None, 0, 20][(i + 2 * seed) % 3]
        scheduler = SchedulerConfig(policy, backfill, placement, locality, multi_node_slowdown=1.5)
        twin = assert_same(Case(jobs, layout, [0], [len(jobs.gpus)], scheduler, visible))
        split |= {locality for j, way in twin.allocation.items() if twin.place.is_split(j, way)}
    assert split == {*LOCALITIES} - {"strict"}
