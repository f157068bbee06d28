"""PPO: advantages against a hand-made case, ragged softmax against a loop, and a task it has to learn."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rltune.agent.decisions import Batch, advantages, relative
from rltune.agent.networks import log_softmax, pad, set_up
from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.ppo import PPO
from rltune.config.preset import BUILT_IN
from rltune.environment.observation import CRITIC_WIDTH

WIDTH = 8


def test_advantages_by_hand():
    values = np.array([0.5, 0.25, 1.0])
    sequence = np.array([0, 0, 1])
    advantage, returns = advantages(values, sequence, np.array([2.0, -1.0]), discount=0.9, gae_lambda=0.5)
    last = 2.0 - 0.25
    assert advantage == pytest.approx([0.9 * 0.25 - 0.5 + 0.9 * 0.5 * last, last, -2.0])
    assert returns == pytest.approx([0.9 * 2.0, 2.0, -1.0])


def test_without_discount_every_decision_of_a_sequence_gets_its_reward():
    rng = np.random.default_rng(0)
    sequence = np.repeat([0, 1, 2], [4, 1, 7])
    reward = rng.normal(size=3)
    values = rng.normal(size=12)
    advantage, returns = advantages(values, sequence, reward, 1.0, 1.0)
    assert returns == pytest.approx(reward[sequence])
    assert advantage == pytest.approx(reward[sequence] - values)


@pytest.mark.parametrize(
    ("discount", "gae_lambda", "advantage", "returns"),
    [
        (
            1.0,
            0.0,
            [-0.25, 0.75, 1.0, -1.75],
            [2.0, 2.0, 2.0, -1.0],
        ),  # the next value - its own, reward - the last value
        (0.5, 0.0, [-0.375, 0.25, 1.0, -1.75], [0.5, 1.0, 2.0, -1.0]),  # half of the next value - its own
        (
            0.5,
            1.0,
            [0.0, 0.75, 1.0, -1.75],
            [0.5, 1.0, 2.0, -1.0],
        ),  # the reward halved with every decision - its own value
    ],
)
def test_advantages_without_what_lies_ahead_and_discounted(
    discount: float, gae_lambda: float, advantage: list[float], returns: list[float]
) -> None:
    values, sequence = np.array([0.5, 0.25, 1.0, 0.75]), np.array([0, 0, 0, 1])
    found = advantages(values, sequence, np.array([2.0, -1.0]), discount, gae_lambda)
    assert found[0] == pytest.approx(advantage) and found[1] == pytest.approx(returns)


def test_log_softmax_by_segment_equals_a_loop():
    rng = np.random.default_rng(1)
    lengths = np.array([1, 5, 2, 9])
    logits = rng.normal(size=17).astype(np.float32) * 30
    segment = np.repeat(np.arange(4, dtype=np.int32), lengths)
    got = log_softmax(tf.constant(logits), tf.constant(segment), tf.constant(4)).numpy()
    for i in range(4):
        x = logits[segment == i].astype(np.float64)
        expected = x - x.max() - np.log(np.exp(x - x.max()).sum())
        assert got[segment == i] == pytest.approx(expected, abs=1e-4)


def test_pad_puts_rows_in_place_and_zeros_behind():
    rows = np.arange(3 * CRITIC_WIDTH, dtype=np.float32).reshape(3, CRITIC_WIDTH) + 1
    out = pad(rows, np.array([1, 2])).reshape(2, -1, CRITIC_WIDTH)
    assert (out[0, 0] == rows[0]).all() and not out[0, 1:].any()
    assert (out[1, :2] == rows[1:]).all() and not out[1, 2:].any()


@pytest.mark.parametrize("attention", [0, 5])
def test_numpy_snapshot_equals_the_network(attention):
    set_up(3)
    preset = BUILT_IN["quick"].model_copy(update={"attention": attention})
    ppo, lengths = PPO(preset, np.random.default_rng(3), WIDTH), np.array([1, 20, 29])
    obs = np.random.default_rng(3).normal(size=(50, WIDTH)).astype(np.float32)
    policy, offsets = TrainedPolicy(ppo.weights(), ppo.facts), np.append(0, np.cumsum(lengths))
    segment = np.repeat(np.arange(3, dtype=np.int32), lengths)
    got = policy.logits(obs, offsets)
    assert got == pytest.approx(ppo.actor(obs, segment, 3).numpy(), abs=1e-5)
    alone = policy.logits(obs[1:21])
    assert alone == pytest.approx(got[1:21], abs=1e-5), "a queue is answered by itself"
    changed = obs.copy()
    changed[1] += 3.0
    same = np.isclose(policy.logits(changed, offsets), got)
    assert same[0] and same[21:].all() and same[2:21].all() == (not attention), "attention sees its own queue alone"


def test_with_attention_it_learns_what_depends_on_the_others():
    """The job to pick is the smallest where the queue's second features are high on average, else the largest."""
    set_up(8)
    rng = np.random.default_rng(8)
    preset = BUILT_IN["quick"].model_copy(update={"actor_lr": 1e-2, "attention": 8, "critic_iterations": 1})
    ppo, scores = PPO(preset, rng, WIDTH), []
    for _ in range(60):
        length = np.full(400, 3)
        offsets = np.arange(401) * 3
        obs = rng.random((1200, WIDTH)).astype(np.float32) - 0.5
        up = np.repeat(rng.random(400) < 0.5, 3)
        obs[:, 1] = 0.0
        obs[::3, 1] = np.where(up[::3], 1.0, -1.0)  # told by one job alone
        logits = TrainedPolicy(ppo.weights(), ppo.facts).logits(obs, offsets).reshape(400, 3).astype(float)
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        action = (p.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1).clip(max=2)
        first = obs[:, 0].reshape(400, 3)
        best = np.where(up[::3], first.argmin(axis=1), first.argmax(axis=1))
        reward = (action == best).astype(np.float32)
        log_prob = np.log(p[np.arange(400), action]).astype(np.float32)
        batch = Batch(
            obs,
            np.zeros((1200, CRITIC_WIDTH), np.float32),
            np.zeros(1200, np.float32),
            length,
            action,
            log_prob,
            np.arange(400),
            np.zeros(400),
            reward,
        )
        ppo.update(batch)
        scores.append(reward.mean())
    assert scores[0] < 0.5 and np.mean(scores[-5:]) > 0.8


def _bandit(ppo: PPO, rng: np.random.Generator, decisions: int = 400) -> tuple[Batch, float]:
    """One-decision sequences of 2 to 6 jobs; picking the job with the smallest first feature is rewarded."""
    length = rng.integers(2, 7, size=decisions)
    obs = rng.random((length.sum(), WIDTH)).astype(np.float32)
    critic = np.zeros((length.sum(), CRITIC_WIDTH), np.float32)
    logits = TrainedPolicy(ppo.weights(), {}).logits(obs)
    action, log_prob, reward = np.empty(decisions, np.int64), np.empty(decisions, np.float32), np.empty(decisions)
    at = 0
    for i, n in enumerate(length):
        p = np.exp(logits[at : at + n] - logits[at : at + n].max())
        p /= p.sum()
        action[i] = rng.choice(n, p=p)
        log_prob[i] = np.log(p[action[i]])
        reward[i] = float(action[i] == obs[at : at + n, 0].argmin())
        at += n
    prior = np.zeros(len(obs), np.float32)
    batch = Batch(
        obs,
        critic,
        prior,
        length,
        action,
        log_prob,
        np.arange(decisions),
        np.zeros(decisions),
        reward.astype(np.float32),
    )
    return batch, reward.mean()


def test_it_learns_to_pick_the_smallest():
    set_up(5)
    rng = np.random.default_rng(5)
    ppo = PPO(BUILT_IN["quick"].model_copy(update={"actor_lr": 5e-3}), rng, WIDTH)
    first = None
    for _ in range(40):
        batch, score = _bandit(ppo, rng)
        first = score if first is None else first
        ppo.update(batch)
    assert first < 0.5
    assert score > 0.85


def test_updates_stop_at_the_target_divergence():
    set_up(6)
    rng = np.random.default_rng(6)
    wild = BUILT_IN["quick"].model_copy(update={"actor_lr": 0.1, "target_kl": 0.001, "actor_iterations": 50})
    ppo = PPO(wild, rng, WIDTH)
    batch, _ = _bandit(ppo, rng)
    assert ppo.update(batch).actor_iterations < 50


def test_minibatches_hold_whole_decisions():
    ppo = PPO(BUILT_IN["quick"].model_copy(update={"batch_decisions": 64}), np.random.default_rng(7), WIDTH)
    batch, _ = _bandit(ppo, np.random.default_rng(7))
    pick = ppo._draw(batch)
    rows, segment, action = batch.rows_of(pick)
    begins = np.cumsum(batch.length) - batch.length
    assert len(pick) == 64 and len(set(pick)) == 64
    for i, decision in enumerate(pick):
        mine = rows[segment == i]
        assert list(mine) == list(range(begins[decision], begins[decision] + batch.length[decision]))
        assert rows[action[i]] == begins[decision] + batch.action[decision]


def test_a_queue_padded_to_its_class_has_the_value_of_one_padded_to_the_window():
    ppo = PPO(BUILT_IN["paper"], np.random.default_rng(8), WIDTH)
    rng = np.random.default_rng(8)
    length = np.array([2, 256, 17, 16, 40, 3])
    rows = rng.random((length.sum(), CRITIC_WIDTH)).astype(np.float32)
    nothing = np.zeros(length.sum(), np.float32)
    batch = Batch(rows, rows, nothing, length, np.zeros(6, int), nothing[:6], np.arange(6), np.zeros(6), nothing[:6])
    assert ppo.values(batch) == pytest.approx(ppo.critic(pad(rows, length)).numpy()[:, 0], abs=1e-5)


def test_a_large_batch_in_parts_gives_the_gradient_of_the_whole(monkeypatch):
    def weights(most_rows: int) -> list[np.ndarray]:
        set_up(9)
        monkeypatch.setattr("rltune.agent.ppo.MOST_ROWS", most_rows)
        ppo = PPO(
            BUILT_IN["paper"].model_copy(update={"actor_iterations": 3, "critic_iterations": 2}),
            np.random.default_rng(9),
            WIDTH,
        )
        ppo.update(_bandit(ppo, np.random.default_rng(9))[0])
        return [*ppo.weights(), *ppo.critic.get_weights()]

    for whole, parts in zip(weights(10**9), weights(100), strict=True):
        np.testing.assert_allclose(whole, parts, atol=2e-5)


def test_the_average_of_the_weights_follows_them():
    set_up(10)
    preset = BUILT_IN["quick"].model_copy(update={"average": 0.5, "actor_iterations": 2})
    ppo = PPO(preset, np.random.default_rng(1), WIDTH)
    batch, _ = _bandit(ppo, np.random.default_rng(10))
    seen, step = [ppo.weights()], ppo._actor_step
    ppo._actor_step = lambda gradient: (step(gradient), seen.append(ppo.weights()))
    ppo.update(batch)
    assert len(seen) == 3
    for kept, zero, one, two in zip(ppo.kept_weights(), *seen, strict=True):
        np.testing.assert_allclose(kept, 0.25 * zero + 0.25 * one + 0.5 * two, atol=1e-6)


def test_steps_get_smaller_along_a_cosine():
    ppo = PPO(BUILT_IN["tuned"], np.random.default_rng(11), WIDTH)
    found = []
    for done in (0.0, 0.5, 1.0):
        ppo.schedule(done)
        found.append(float(ppo.actor_optimiser.learning_rate.numpy()))
    rate = BUILT_IN["tuned"].actor_lr
    assert found == pytest.approx([rate, rate / 2, 0.0], abs=1e-9)


def test_rewards_of_rollouts_are_relative_to_their_sequence():
    assert relative(np.array([1.0, 3.0, 10.0, 10.0]), 2).tolist() == [-1.0, 1.0, 0.0, 0.0]
    assert relative(np.array([1.0, 3.0]), 1).tolist() == [1.0, 3.0]
