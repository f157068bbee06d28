"""Observations: known values by hand, an oracle in plain numpy on random states, ranges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from agent_fakes import CLUSTER, workload
from workload_cases import compiled, random_case

from rltune.cluster.fit import Jobs
from rltune.cluster.free import Free
from rltune.cluster.layout import Layout
from rltune.cluster.search import EXCLUSIVE, find
from rltune.cluster.ways import MAX_WAYS, classes, count_ways, room
from rltune.environment.observation import CRITIC_WIDTH, FEATURE_SETS, HORIZON_S, TIME_SCALE_S, WIDTH, Observer
from rltune.simulator.batch import Run, Setting, simulate
from rltune.simulator.state import State


def two_jobs_ask(estimate: float = 600.0) -> tuple[Jobs, Layout, State]:
    """One 16-GPU job runs from 0 on both large nodes; two jobs submitted together at 100 s ask for a ranking."""
    rows = [
        {"submit_s": 0.0, "run_s": 900.0, "gpus": 16, "requested_s": estimate},
        {"submit_s": 100.0, "run_s": 50.0, "gpus": 1}, {"submit_s": 100.0, "run_s": 60.0, "gpus": 4},
    ]  # fmt: skip
    jobs, layout = compiled(CLUSTER, rows)
    run = Run(jobs, layout, [0], [3], Setting("fifo"), visible=256, track=True)
    assert list(run.advance()) == [0] and run.state.now[0] == 100.0
    return jobs, layout, run.state


def observe(jobs: Jobs, layout: Layout, state: State, features: str) -> tuple[np.ndarray, np.ndarray]:
    seen = Observer(jobs, layout, features)(state, np.array([0]))
    assert list(seen.jobs) == list(state.queued_jobs(0)) and list(seen.length) == [len(seen.rows)]
    return seen.rows, seen.critic


def test_engineered_features_by_hand() -> None:
    obs, critic = observe(*two_jobs_ask(), "engineered")
    # 4 GPUs are free, two on each small node; the 16 of the large nodes are expected back at 600 s, within the hour
    small, large = obs
    assert small[0] == pytest.approx(math.log2(2) / 7)
    assert small[1] == pytest.approx(math.log10(51) / 8)
    assert small[2] == 0
    assert small[3] == pytest.approx(0.25 / 1.25)
    assert small[4] == pytest.approx((4 - 1 + 16) / 20)
    assert small[5] == 1 and small[6] == pytest.approx(1 / 8), "the two free nodes are alike: one way"
    assert small[7] == 0, "all free GPUs lie on empty nodes"
    assert large[5] == 0 and large[6] == 0, "4 GPUs need a large node under strict locality"
    assert large[3] == pytest.approx(1 / 2)
    assert critic[0, 3] == 1 and critic[1, 3] == 0


def test_future_availability_looks_one_hour_ahead() -> None:
    obs, _ = observe(*two_jobs_ask(estimate=100 + HORIZON_S + 1), "engineered")
    assert obs[0, 4] == pytest.approx((4 - 1) / 20)


def test_raw_features_by_hand() -> None:
    obs, _ = observe(*two_jobs_ask(), "raw")
    assert obs[1] == pytest.approx([4 / 64, 60 / 43200, 100 / 43200, 4 * 4 / 512, 4 * 16 / 4096, 0, 0, 0], rel=1e-5)


def test_an_unknown_feature_set_is_refused() -> None:
    with pytest.raises(ValueError, match="features: found 'cooked', expected one of raw, engineered"):
        Observer(*workload(20), "cooked")


def expected(jobs: Jobs, layout: Layout, state: State, s: int, features: str) -> tuple[np.ndarray, np.ndarray]:
    """The rows of one sequence, from first principles."""
    nodes, how, now, first = layout.nodes, state.how, state.now[s], state.first[s]
    node, left, run = nodes.row, state.free.row[s], state.run[s]
    free = Free(*(column[s] for column in state.free))
    running = [i for i in range(state.n[s]) if not np.isnan(run["start"][i]) and run["end"][i] > now]
    rows, critics = [], []
    for i in state.queued_jobs(s):
        job = jobs.row[first + i]
        p, gpus, estimate, wait = job["pool"], job["gpus"], job["estimate_s"], now - job["submit_s"]
        here = np.arange(nodes.pool["start"][p], nodes.pool["stop"][p])
        table = room(nodes)
        k = classes(nodes, p, free, how.rule == EXCLUSIVE, table)
        ways = count_ways(nodes, jobs, first + i, table, k)
        if ways == 0:
            place = np.zeros_like(state.place[s])
            ways = int(find(nodes, jobs, free, first + i, how.rule, how.extra, place) > 0)
        kinds = np.flatnonzero(jobs.cut["full"][first + i] >= 0)
        mine = here[np.isin(node["type"][here], kinds)]
        supply, capacity, back = left["gpus"][mine].sum(), node["gpus"][mine].sum(), 0
        for r in running:
            due = run["due"][r] if run["due"][r] > now else now + (now - run["start"][r])
            chunk = state.chunk[s, run["at"][r] : run["at"][r] + run["len"][r]]
            if due <= now + HORIZON_S:
                back += chunk["gpus"][np.isin(chunk["node"], mine)].sum()
        ratio, weight = gpus / max(supply, 1), (node["gpus"] * left["gpus"])[here].sum()
        cpu = job["cpu_milli"] if job["cpu_milli"] >= 0 else node["share_cpu"][here[0]]
        mem = job["mem_mb"] if job["mem_mb"] >= 0 else node["share_mem"][here[0]]
        since, waited, asked = (
            min(x / TIME_SCALE_S, 1) for x in (job["submit_s"] - jobs.submit_s[first], wait, estimate)
        )
        rows.append({
            "engineered": [
                np.log2(1 + gpus) / 7, np.log10(1 + gpus * estimate) / 8, wait / (wait + estimate), ratio / (1 + ratio),
                np.clip((supply - gpus + back) / capacity, -1, 1), ways > 0, ways / MAX_WAYS,
                1 - (left["gpus"][here] ** 2).sum() / weight if weight else 0,
            ],
            "raw": [
                min(gpus / 64, 1), asked, since, min(gpus * cpu / 512e3, 1), min(gpus * mem / 4096e3, 1),
                p / len(nodes.pool), kinds[0] / jobs.cut.shape[1], waited,
            ],
        }[features])  # fmt: skip
        critics.append([since, asked, min(gpus / 64, 1), ways > 0, waited])
    return np.array(rows, float), np.array(critics, float)


@pytest.mark.parametrize("features", list(FEATURE_SETS))
@pytest.mark.parametrize("setting", [
    Setting("fifo"), Setting("saf", "easy", "first_fit"), Setting("wfp3", "fits", "exclusive"),
    Setting("sjf", "none", "spread", "any", stretch=1.5), Setting("saf", "easy", commit="head"),
], ids=["none", "easy", "exclusive", "any", "head"])  # fmt: skip
def test_observations_equal_the_oracle_on_random_states(features: str, setting: Setting) -> None:
    compared = 0
    for seed in range(6):
        jobs, layout = random_case(50 + seed, n=40)
        half = len(jobs.row) // 2
        run = Run(jobs, layout, [0, half], [len(jobs.row), len(jobs.row) - half], setting, visible=7, track=True)
        observer, rng = Observer(jobs, layout, features), np.random.default_rng(seed)
        while len(asking := run.advance()):
            seen = observer(run.state, asking)
            assert (seen.rows.shape[1], seen.critic.shape[1]) == (WIDTH, CRITIC_WIDTH)
            for a, s in enumerate(asking):
                mine = slice(seen.offsets[a], seen.offsets[a + 1])
                rows, critic = expected(jobs, layout, run.state, s, features)
                np.testing.assert_allclose(seen.rows[mine], rows, rtol=2e-6, atol=1e-7)
                np.testing.assert_allclose(seen.critic[mine], critic, rtol=2e-6, atol=1e-7)
                run.state.score[s, : len(rows)] = rng.random(len(rows))
                compared += len(rows)
    assert compared > 100


def test_an_observer_may_watch_run_after_run() -> None:
    """What it remembers of a run does not leak into the next."""
    jobs, layout = workload(200, seed=6)
    observer, kept = Observer(jobs, layout, "engineered"), []

    def watch(begin: int, watcher: Observer) -> list[np.ndarray]:
        rows: list[np.ndarray] = []

        def ranker(state: State, asking: np.ndarray) -> None:
            seen = watcher(state, asking)
            rows.append(seen.rows)
            state.score[0, : len(seen.rows)] = seen.rows[:, 1]

        simulate(jobs, layout, [begin], [60], Setting("fifo"), ranker)
        return rows

    for begin in (0, 60, 0, 120):
        kept = watch(begin, observer)
        for a, b in zip(kept, watch(begin, Observer(jobs, layout, "engineered")), strict=True):
            np.testing.assert_array_equal(a, b)
    assert kept


@pytest.mark.parametrize("features", list(FEATURE_SETS))
def test_features_stay_in_range(features: str) -> None:
    jobs, layout = workload(300, seed=4)
    observer, kept = Observer(jobs, layout, features), []

    def ranker(state: State, asking: np.ndarray) -> None:
        kept.append(observer(state, asking).rows)
        for s in asking:
            state.score[s, : state.visible[s]] = 0

    simulate(jobs, layout, [0, 100], [200, 200], Setting("fifo", "easy"), ranker)
    obs = np.concatenate(kept)
    assert np.isfinite(obs).all() and obs.min() >= -1 and obs.max() <= 1.2
    assert (obs.std(axis=0) > 0).sum() >= 5
