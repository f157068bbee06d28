"""Observations: known values by hand, ranges on random states, and what an answer does to the engine."""

from __future__ import annotations

import math

import numpy as np
import pytest
from agent_fakes import workload

from rltune.agent.features import CRITIC_WIDTH, FEATURE_SETS, HORIZON_S, WIDTH, answer, observe
from rltune.agent.rollout import AgentRanker
from rltune.cluster.fit import Jobs
from rltune.simulator.batch import Setting, simulate
from rltune.simulator.engine import EXTERNAL, advance_all
from rltune.simulator.state import RANK, new_state


def _two_jobs_ask(estimate: float = 600.0):
    """One 16-GPU job runs from 0 on both large nodes; two jobs submitted together at 100 s ask for a ranking."""
    _, layout = workload(2)
    one = np.ones(3, np.int64)
    jobs = Jobs(
        np.array([0.0, 100.0, 100.0]), np.array([900.0, 50.0, 60.0]), np.array([estimate, 50.0, 60.0]),
        np.array([16, 1, 4]), -one, -one, 0 * one, np.full((3, 1), 8), np.array([[2], [0], [0]]),
        np.array([[0], [1], [4]]),
    )  # fmt: skip
    state = new_state(jobs, layout.nodes, np.array([0]), np.array([3]))
    ranks, places = advance_all(layout.nodes, jobs, state, EXTERNAL, 0, 0, 1, False)
    assert (ranks, places) == (1, 0) and state.phase[0] == RANK and state.now[0] == 100.0
    return jobs, layout, state


def _observe(jobs, layout, state, features):
    asking = np.flatnonzero(state.phase == RANK)
    offsets = np.concatenate([[0], np.cumsum(state.visible[asking])])
    obs = np.full((offsets[-1], WIDTH), np.nan, np.float32)
    critic = np.full((offsets[-1], CRITIC_WIDTH), np.nan, np.float32)
    observe(layout.nodes, jobs, state, asking, FEATURE_SETS[features], offsets, obs, critic)
    return obs, critic


def test_engineered_features_by_hand():
    obs, critic = _observe(*_two_jobs_ask(), "engineered")
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


def test_future_availability_looks_one_hour_ahead():
    obs, _ = _observe(*_two_jobs_ask(estimate=100 + HORIZON_S + 1), "engineered")
    assert obs[0, 4] == pytest.approx((4 - 1) / 20)


def test_raw_features_by_hand():
    jobs, layout, state = _two_jobs_ask()
    obs, _ = _observe(jobs, layout, state, "raw")
    assert obs[1] == pytest.approx([4 / 64, 60 / 43200, 100 / 43200, 4 * 4 / 512, 4 * 16 / 4096, 0, 0, 0], rel=1e-5)


@pytest.mark.parametrize("features", list(FEATURE_SETS))
def test_features_stay_in_range(features):
    jobs, layout = workload(300, seed=4)
    seen = []

    def logits(obs):
        seen.append(obs)
        return np.zeros(len(obs), np.float32)

    ranker = AgentRanker(logits, jobs, layout, features, np.random.default_rng(0))
    simulate(jobs, layout, np.array([0, 100]), np.array([200, 200]), Setting("fifo", "easy", "best_fit"), ranker)
    obs = np.concatenate(seen)
    assert np.isfinite(obs).all() and obs.min() >= -1 and obs.max() <= 1.2
    assert (obs.std(axis=0) > 0).sum() >= 5


def test_answer_picks_the_best_and_reports_its_probability():
    jobs, layout, state = _two_jobs_ask()
    asking, offsets = np.array([0]), np.array([0, 2])
    action, log_prob = np.empty(1, np.int64), np.empty(1, np.float32)
    logits = np.array([0.0, math.log(3)], np.float32)
    answer(state, asking, offsets, logits, np.zeros(2, np.float32), action, log_prob)
    assert action[0] == 1 and log_prob[0] == pytest.approx(math.log(0.75))
    assert state.score[0, 1] < state.score[0, 0]


def test_gumbel_noise_samples_the_softmax():
    jobs, layout, state = _two_jobs_ask()
    rng = np.random.default_rng(2)
    picks = []
    for _ in range(4000):
        action, log_prob = np.empty(1, np.int64), np.empty(1, np.float32)
        logits = np.array([0.0, math.log(3)], np.float32)
        answer(state, np.array([0]), np.array([0, 2]), logits, rng.gumbel(size=2).astype(np.float32), action, log_prob)
        picks.append(action[0])
    assert np.mean(picks) == pytest.approx(0.75, abs=0.03)


def test_a_batch_is_sorted_by_sequence_and_complete():
    jobs, layout = workload(300, seed=5)
    ranker = AgentRanker(lambda x: x[:, 0], jobs, layout, "engineered", np.random.default_rng(1))
    state = simulate(jobs, layout, np.array([0, 50, 100]), np.full(3, 100), Setting("fifo", "none", "best_fit"), ranker)
    batch = ranker.batch(np.zeros(3))
    assert (np.diff(batch.sequence) >= 0).all()
    assert list(np.bincount(batch.sequence)) == list(state.counts[:, 1])
    assert len(batch.obs) == len(batch.critic) == batch.length.sum()
    assert (batch.length >= 2).all() and (batch.action < batch.length).all()
    ends = np.cumsum(batch.length)
    for end, n, action, log_prob in zip(ends, batch.length, batch.action, batch.log_prob, strict=True):
        x = batch.obs[end - n : end, 0].astype(float)
        assert log_prob == pytest.approx(x[action] - np.log(np.exp(x).sum()), abs=1e-4)
