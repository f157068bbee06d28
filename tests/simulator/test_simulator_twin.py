"""The compiled engine and its plain-Python twin do the same, start by start and node by node."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from twin_cases import BACKFILLS, LOCALITIES, PLACEMENTS, Case, allocations, assert_same, cases, run_engine, twin_of
from workload_cases import random_case

from rltune.cluster.fit import Jobs
from rltune.policies import IDS
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.state import latest_s

proof = settings.get_profile("proof")


@proof
@given(cases())
def test_engine_equals_twin(case: Case) -> None:
    """Any workload, any policy, any rules, any ranking from outside, some sequences side by side."""
    assert_same(case)


def _some_overdue(jobs: Jobs, scheduler: SchedulerConfig, start: np.ndarray) -> bool:
    if not scheduler.max_wait_h:
        return False
    latest = latest_s(jobs.submit_s, jobs.gpus, scheduler.max_wait_h)
    return bool((start > latest[: len(start)]).any())


def test_random_cases_are_worth_comparing() -> None:
    """They queue, run past their estimates, span pools, types and nodes, are split and pass each other."""
    seen: Counter[str] = Counter()

    @settings(proof, max_examples=600)
    @given(cases())
    def look(case: Case) -> None:
        jobs, scheduler = case.jobs, case.scheduler
        twin = twin_of(jobs, case.layout, case.first[0], case.n[0], scheduler, case.visible, case.taste)
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

    look()
    assert {what for what, n in seen.items() if n >= 4} >= {
        *IDS,
        "waits",
        "at the same time",
        "pools",
        "types",
        "nodes",
        "own CPUs and memory",
        "overruns",
        "agreements",
        "past the maximum wait",
        "accounts",
        "batches",
        "plus_one",
        "any",
        "worth_it",
        *BACKFILLS,
    }
    assert seen["waits"] > 100 and not seen["strict"]


@pytest.mark.parametrize("seed", range(3))
def test_engine_equals_twin_where_many_queue(seed: int) -> None:
    jobs, layout = random_case(seed, n=150, pools=1)
    for i, policy in enumerate(IDS):
        placement, locality = PLACEMENTS[(i + seed) % 4], LOCALITIES[(i // 2 + seed) % 4]
        scheduler = SchedulerConfig(
            policy, ("none", "greedy", "easy")[(i + seed) % 3], placement, locality, multi_node_slowdown=1.5
        )
        assert_same(Case(jobs, layout, [0], [len(jobs.gpus)], scheduler, [None, 0, 20][(i + 2 * seed) % 3]))


@pytest.mark.parametrize("sticky_head", [False, True])
@pytest.mark.parametrize("backfill", BACKFILLS)
def test_sequences_of_a_batch_do_not_influence_each_other(backfill: str, sticky_head: bool) -> None:
    jobs, layout = random_case(4, n=60)
    n = len(jobs.gpus)
    rng = np.random.default_rng(0)
    first = rng.integers(0, n - 5, 20)
    length = np.array([rng.integers(1, n - f + 1) for f in first])
    for policy in ("wfp3", "multifactor"):
        scheduler = SchedulerConfig(
            policy, backfill, "best_fit", "any", sticky_head=sticky_head, multi_node_slowdown=1.5
        )
        together = run_engine(jobs, layout, first, length, scheduler)
        for s in range(20):
            alone = run_engine(jobs, layout, first[s : s + 1], length[s : s + 1], scheduler)
            np.testing.assert_array_equal(together.start[s, : length[s]], alone.start[0])
            assert allocations(together, s) == allocations(alone, 0)
            for count in ("decisions", "choices", "queue_sum", "cut", "events"):
                assert together.status[count][s] == alone.status[count][0]


@pytest.mark.parametrize("backfill", BACKFILLS)
def test_pools_do_not_influence_each_other(backfill: str) -> None:
    """Where each has its own queue and no policy looks at what the others use."""
    for seed in range(10):
        jobs, layout = random_case(seed, n=50, pools=3)
        scheduler = SchedulerConfig("saf", backfill, "best_fit")
        together = simulate(jobs, layout, [0], [len(jobs.gpus)], scheduler).start[0]
        for pool in range(3):
            mine = np.flatnonzero(jobs.pool == pool)
            if len(mine):
                alone = simulate(jobs.take(mine), layout, [0], [len(mine)], scheduler).start[0]
                np.testing.assert_array_equal(together[mine], alone)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("backfill", BACKFILLS)
def test_everything_is_free_again_at_the_end(backfill: str, placement: str) -> None:
    """No job is lost, none starts before its submission, and no GPU, CPU or MB goes missing."""
    jobs, layout = random_case(11, n=60)
    n = len(jobs.gpus)
    state = simulate(
        jobs, layout, [0], [n], SchedulerConfig("sjf", backfill, placement, "any", multi_node_slowdown=2.0)
    )
    assert (state.start[0, :n] >= jobs.submit_s).all()
    nodes, free, where = layout.nodes.row, state.free.row[0], allocations(state, 0)
    used = np.zeros((3, len(nodes)), np.int64)
    for j in state.heap["job"][0, : state.status["running"][0]]:
        for m, gpus in where[j].items():
            node, (cpu, mem) = nodes[m], jobs.row[["cpu_milli", "mem_mb"]][j]
            own = gpus * np.array(
                [
                    1,
                    cpu if cpu >= 0 else node["cpu_milli"] // node["gpus"],
                    mem if mem >= 0 else node["mem_mb"] // node["gpus"],
                ]
            )
            used[:, m] += [node["gpus"], node["cpu_milli"], node["mem_mb"]] if placement == "exclusive" else own
    np.testing.assert_array_equal(used[0] + free["gpus"], nodes["gpus"])
    np.testing.assert_array_equal(used[1] + free["cpu"], nodes["cpu_milli"])
    np.testing.assert_array_equal(used[2] + free["mem"], nodes["mem_mb"])
