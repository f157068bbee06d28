"""The compiled engine and its plain-Python twin do the same, start by start and node by node."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from workload_cases import random_case

from rltune.cluster.fit import Jobs
from rltune.policies import IDS
from rltune.simulator import twin
from rltune.simulator.batch import Setting, simulate
from rltune.simulator.state import State

SETTINGS = list(itertools.product(IDS, ("none", "fits", "easy"), ("first_fit", "best_fit")))


def allocations(state: State, s: int) -> list[dict[int, int]]:
    """Node → GPUs of each job of a sequence."""
    out = []
    for at, length in zip(state.alloc_at[s, : state.n[s]], state.alloc_len[s, : state.n[s]], strict=True):
        chunks = slice(at, at + length)
        out.append(dict(zip(state.alloc_node[s, chunks].tolist(), state.alloc_gpus[s, chunks].tolist(), strict=True)))
    return out


def taken(column: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows of a column, writable or not as it was: one signature, one compilation."""
    out = column[rows]
    out.flags.writeable = column.flags.writeable
    return out


@pytest.mark.parametrize("seed", range(30))
def test_engine_equals_twin_under_every_setting(seed: int) -> None:
    jobs, layout = random_case(seed, n=40)
    n = len(jobs.gpus)
    half = n // 2
    first, length = np.array([0, half, 0]), np.array([n, n - half, max(half, 1)])
    for setting in SETTINGS:
        state = simulate(jobs, layout, first, length, Setting(*setting))
        for s in range(3):
            start, allocation = twin.run(jobs, layout, int(first[s]), int(length[s]), *setting)
            np.testing.assert_array_equal(state.start[s, : length[s]], start, err_msg=f"{setting}, sequence {s}")
            assert allocations(state, s) == allocation, (setting, s)


def test_random_cases_are_worth_comparing() -> None:
    """They queue, span pools, types and nodes of different sizes, and tell the settings apart."""
    cases = [random_case(seed, n=40) for seed in range(30)]
    assert sum(len(layout.pools) > 1 for _, layout in cases) > 10
    assert sum(len(layout.types) > 1 for _, layout in cases) > 10
    assert sum((jobs.full >= 0).sum(axis=1).max() > 1 for jobs, _ in cases) > 5
    assert sum(int((jobs.full + (jobs.rem > 0)).max(axis=1).max()) > 1 for jobs, _ in cases) > 10
    assert sum((jobs.cpu_milli >= 0).any() and (jobs.mem_mb >= 0).any() for jobs, _ in cases) > 10
    starts = {setting: [] for setting in SETTINGS}
    for jobs, layout in cases:
        for setting in SETTINGS:
            starts[setting].append(simulate(jobs, layout, [0], [len(jobs.gpus)], Setting(*setting)).start.sum())
    assert len({tuple(v) for v in starts.values()}) == len(SETTINGS)


@pytest.mark.parametrize("blocking", ["none", "fits", "easy"])
def test_sequences_of_a_batch_do_not_influence_each_other(blocking: str) -> None:
    jobs, layout = random_case(4, n=60)
    n = len(jobs.gpus)
    rng = np.random.default_rng(0)
    first = rng.integers(0, n - 5, 20)
    length = np.array([rng.integers(1, n - f + 1) for f in first])
    setting = Setting("wfp3", blocking, "best_fit")
    together = simulate(jobs, layout, first, length, setting)
    for s in range(20):
        alone = simulate(jobs, layout, first[s : s + 1], length[s : s + 1], setting)
        np.testing.assert_array_equal(together.start[s, : length[s]], alone.start[0])
        assert allocations(together, s) == allocations(alone, 0)
        np.testing.assert_array_equal(together.counts[s], alone.counts[0])


@pytest.mark.parametrize("blocking", ["none", "fits", "easy"])
def test_pools_do_not_influence_each_other(blocking: str) -> None:
    for seed in range(10):
        jobs, layout = random_case(seed, n=50, pools=3)
        setting = Setting("saf", blocking, "best_fit")
        together = simulate(jobs, layout, [0], [len(jobs.gpus)], setting).start[0]
        for pool in range(3):
            mine = np.flatnonzero(jobs.pool == pool)
            if len(mine):
                own = Jobs(*(taken(x, mine) for x in jobs))
                np.testing.assert_array_equal(together[mine], simulate(own, layout, [0], [len(mine)], setting).start[0])


@pytest.mark.parametrize("setting", SETTINGS)
def test_everything_is_free_again_at_the_end(setting: tuple[str, str, str]) -> None:
    """No job is lost, none starts before its submission, and no GPU, CPU or MB goes missing."""
    jobs, layout = random_case(11, n=60)
    n = len(jobs.gpus)
    state = simulate(jobs, layout, [0], [n], Setting(*setting))
    assert (state.start[0, :n] >= jobs.submit_s).all()
    used = np.zeros((3, len(layout.nodes.gpus)), np.int64)
    running = state.heap_job[0, : state.running[0]]
    for r in running:
        for m, gpus in allocations(state, 0)[r].items():
            cpu = jobs.cpu_milli[r] if jobs.cpu_milli[r] >= 0 else layout.nodes.cpu_milli[m] // layout.nodes.gpus[m]
            mem = jobs.mem_mb[r] if jobs.mem_mb[r] >= 0 else layout.nodes.mem_mb[m] // layout.nodes.gpus[m]
            used[:, m] += gpus * np.array([1, cpu, mem])
    np.testing.assert_array_equal(used[0] + state.free_gpus[0], layout.nodes.gpus)
    np.testing.assert_array_equal(used[1] + state.free_cpu[0], layout.nodes.cpu_milli)
    np.testing.assert_array_equal(used[2] + state.free_mem[0], layout.nodes.mem_mb)
