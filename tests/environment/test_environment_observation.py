"""Observations: known values, an oracle in plain Python on random states, ranges, order, memory."""

import math

import numpy as np
import pytest
from agent_fakes import CLUSTER, workload
from environment_oracle import seen_of, shown
from workload_cases import compiled, random_case

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.environment.features import CRITIC, FEATURE_SETS, FEATURES, Column, bounds_of
from rltune.environment.observation import CRITIC_WIDTH, Observer, width_of
from rltune.simulator.batch import SchedulerConfig, Simulation, simulate
from rltune.simulator.state import State

SETTINGS = {
    "none": SchedulerConfig("fifo"),
    "easy": SchedulerConfig("saf", "easy", "first_fit"),
    "exclusive": SchedulerConfig("wfp3", "greedy", "exclusive"),
    "any": SchedulerConfig("sjf", "none", "spread", "any", multi_node_slowdown=1.5),
    "head": SchedulerConfig("saf", "easy", sticky_head=True),
    "now": SchedulerConfig("smallest", "easy", overrun="now"),
}


def two_jobs_ask(estimate: float = 600.0) -> tuple[Jobs, Layout, State]:
    """One 16-GPU job runs from 0 on both large nodes; two jobs submitted together at 100 s ask for a ranking."""
    rows = [
        {"submit_s": 0.0, "run_s": 900.0, "gpus": 16, "requested_s": estimate},
        {"submit_s": 100.0, "run_s": 50.0, "gpus": 1},
        {"submit_s": 100.0, "run_s": 60.0, "gpus": 4},
    ]
    jobs, layout = compiled(CLUSTER, rows)
    run = Simulation(jobs, layout, [0], [3], SchedulerConfig("fifo"), visible=256)
    assert list(run.advance()) == [0] and run.state.now[0] == 100.0
    return jobs, layout, run.state


def observe(jobs: Jobs, layout: Layout, state: State, features: str) -> tuple[np.ndarray, np.ndarray]:
    seen = Observer(jobs, layout, features)(state, np.array([0]))
    assert list(seen.jobs) == list(state.queued_jobs(0)) and list(seen.length) == [len(seen.rows)]
    return seen.rows, seen.critic


def test_known_values_of_unsampled_features():
    obs, seen_by_critic = observe(*two_jobs_ask(), "unsampled")
    # 4 GPUs are free, two on each small node; the 16 of the large nodes are expected back at 600 s, within the hour
    small, large = obs
    assert small[0] == pytest.approx(math.log2(2) / 7)
    assert small[1] == pytest.approx(math.log10(51) / 8)
    assert small[2] == 0
    assert small[3] == pytest.approx(0.25 / 1.25)
    assert small[4] == pytest.approx((4 - 1 + 16) / 20)
    assert small[5] == 1 and small[6] == pytest.approx(1 / 8), "the two free nodes are alike: one candidate"
    assert small[7] == 0, "all free GPUs lie on empty nodes"
    assert large[5] == 0 and large[6] == 0, "4 GPUs need a large node under strict locality"
    assert large[3] == pytest.approx(1 / 2)
    assert seen_by_critic[0, 3] == 1 and seen_by_critic[1, 3] == 0


def test_an_unknown_feature_set_is_refused():
    for call in (lambda: Observer(*workload(20), "cooked"), lambda: width_of("cooked"), lambda: bounds_of("cooked")):
        with pytest.raises(ValueError, match="features: found 'cooked', expected one of raw, engineered, "):
            call()


@pytest.mark.parametrize("name", list(SETTINGS))
def test_observations_equal_the_oracle_on_random_states(name, monkeypatch):
    """Every feature, every column of every set, both regimes, on clusters of several pools, types and queues."""
    monkeypatch.setitem(FEATURE_SETS, "every", tuple(Column((n, n)) for n in FEATURES))
    compared, scattered = 0, 0
    for seed in range(6):
        jobs, layout = random_case(50 + seed, n=40)
        half = len(jobs.row) // 2
        n = [len(jobs.row), len(jobs.row) - half]
        run = Simulation(jobs, layout, [0, half], n, SETTINGS[name], visible=7)
        observers = {features: Observer(jobs, layout, features) for features in reversed(FEATURE_SETS)}
        rng = np.random.default_rng(seed)
        while len(asking := run.advance()):
            seen = {features: observer(run.state, asking) for features, observer in observers.items()}
            offsets = seen["raw"].offsets
            for a, s in enumerate(asking):
                mine = slice(offsets[a], offsets[a + 1])
                facts = seen_of(jobs, layout, run.state, s)
                for features, it in seen.items():
                    for found, columns in ((it.rows, FEATURE_SETS[features]), (it.critic, CRITIC)):
                        expected = [[shown(column, f) for column in columns] for f in facts]
                        np.testing.assert_allclose(found[mine], expected, rtol=3e-6, atol=2e-7, err_msg=features)
                run.state.score[s, : len(facts)] = rng.random(len(facts))
                compared += len(facts)
                scattered += sum(f["cff"] > 0.5 for f in facts)
    assert compared > 100
    if name == "exclusive":
        assert scattered == 0, "jobs take whole nodes"
    else:
        assert 0 < scattered < compared


def test_an_observer_may_watch_run_after_run():
    """What it remembers of a run does not leak into the next, which may have longer queues."""
    jobs, layout = workload(200, seed=6)
    observer, kept = Observer(jobs, layout, "rich"), []

    def watch(begin: int, n: int, watcher: Observer) -> list[np.ndarray]:
        rows: list[np.ndarray] = []

        def ranker(state: State, asking: np.ndarray) -> None:
            seen = watcher(state, asking)
            rows.append(seen.rows)
            state.score[0, : len(seen.rows)] = seen.rows[:, 1]

        simulate(jobs, layout, [begin], [n], SchedulerConfig("fifo"), ranker)
        return rows

    for begin, n in ((0, 30), (60, 120), (0, 30), (120, 60)):
        kept = watch(begin, n, observer)
        for a, b in zip(kept, watch(begin, n, Observer(jobs, layout, "rich")), strict=True):
            np.testing.assert_array_equal(a, b)
    assert kept


def in_bounds(features: str, obs: np.ndarray) -> bool:
    """Whether all values are finite and within the bounds of their columns."""
    low, high = bounds_of(features)
    assert low.dtype == high.dtype == np.float32
    return bool((np.isfinite(obs) & (obs >= low) & (obs <= high)).all())


@pytest.mark.parametrize("features", list(FEATURE_SETS))
def test_features_stay_in_range(features):
    jobs, layout = workload(300, seed=4)
    observer, kept = Observer(jobs, layout, features), []
    assert observer.width == width_of(features)

    def ranker(state: State, asking: np.ndarray) -> None:
        seen = observer(state, asking)
        assert seen.rows.shape[1] == observer.width and seen.critic.shape[1] == CRITIC_WIDTH
        kept.append(seen.rows)
        for s in asking:
            state.score[s, : state.visible[s]] = 0

    simulate(jobs, layout, [0, 100], [200, 200], SchedulerConfig("fifo", "easy"), ranker)
    obs = np.concatenate(kept)
    assert obs.dtype == np.float32 and in_bounds(features, obs)
    assert np.abs(obs).max() <= 2.4 and (features in ("raw", "rlscheduler") or (obs.std(axis=0) > 0).all())


def test_the_largest_jobs_stay_in_range():
    rows = [{"submit_s": 0.0, "run_s": 1e9, "gpus": 16}, {"submit_s": 5e8, "run_s": 9e8, "gpus": 16}]
    jobs, layout = compiled(CLUSTER, [*rows, {"submit_s": 5e8, "run_s": 1.0, "gpus": 16}])
    run = Simulation(jobs, layout, [0], [3], SchedulerConfig("fifo"), visible=256)
    while len(run.advance()):
        for features in FEATURE_SETS:
            obs = Observer(jobs, layout, features)(run.state, np.array([0])).rows
            assert len(obs) and in_bounds(features, obs)
        run.state.score[0, : run.state.visible[0]] = 0
