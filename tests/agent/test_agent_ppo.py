"""PPO: advantages against worked examples, ragged softmax against a loop, updates that stop, split and slow down."""

import numpy as np
import pytest
import tensorflow as tf
from agent_fakes import workload

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.ppo import CREDITED, PPO, Advantages, gae, log_softmax, relative, set_up, waiting_saved
from rltune.agent.rollout import Batch, RandomRanker
from rltune.config.preset import BUILT_IN
from rltune.environment.observation import CRITIC_WIDTH
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import BSLD_FLOOR_S
from rltune.simulator.state import MAX_VISIBLE

WIDTH = 8
QUICK = BUILT_IN["quick"]


@pytest.mark.parametrize(
    ("lam", "advantage"),
    [
        (0.0, [-0.25, 0.75, 1.0, -1.75]),  # the next value − this one; the reward − the last value
        (0.5, [0.375, 1.25, 1.0, -1.75]),
        (1.0, [1.5, 1.75, 1.0, -1.75]),  # the reward − the value
    ],
)
def test_advantages_of_a_worked_example(lam, advantage):
    values, sequence = np.array([0.5, 0.25, 1.0, 0.75]), np.array([0, 0, 0, 1])
    found = gae(values, sequence, np.array([2.0, -1.0]), lam)
    assert found[0] == pytest.approx(advantage) and found[1] == pytest.approx([2.0, 2.0, 2.0, -1.0])


def test_rewards_of_rollouts_are_relative_to_their_sequence():
    assert relative(np.array([1.0, 3.0, 10.0, 10.0]), 2).tolist() == [-1.0, 1.0, 0.0, 0.0]
    assert relative(np.array([1.0, 3.0]), 1).tolist() == [1.0, 3.0]


GROUPS, ROLLOUTS, LENGTH = 2, 3, 40
JOBS, LAYOUT = workload(200, seed=3)


@pytest.fixture(scope="module")
def state():
    first = np.repeat([0, 60], ROLLOUTS)
    ranker = RandomRanker(np.random.default_rng(1))
    return simulate(JOBS, LAYOUT, first, np.full(len(first), LENGTH), SchedulerConfig("fifo"), ranker)


def decisions(sequence: np.ndarray, now_s: np.ndarray) -> Batch:
    nothing, whole = np.zeros(len(sequence), np.float32), np.zeros(len(sequence), np.int64)
    return Batch(nothing[:, None], nothing[:, None], nothing, whole + 1, whole, nothing, sequence, now_s, nothing)


def waiting_after(state, s: int, now: float, metric: str, horizon_s: float) -> float:
    """Waiting of sequence ``s`` after ``now``, weighted, by numerical integration."""
    total = 0.0
    for i in range(LENGTH):
        j = state.first[s] + i
        a, b = max(JOBS.submit_s[j], now), state.start[s, i]
        weight = 1 / max(JOBS.run_s[j], BSLD_FLOOR_S) if metric == "bsld" else 1.0
        if b > a:
            steps = np.linspace(a, b, 2001)
            middle = (steps[1:] + steps[:-1]) / 2
            total += weight * float(np.sum(np.exp(-(middle - now) / horizon_s)) * (b - a) / 2000)
    return total


@pytest.mark.parametrize("metric", CREDITED)
@pytest.mark.parametrize("horizon_s", [300.0, 1e9])
def test_waiting_saved_is_what_its_formula_says(state, metric, horizon_s):
    rng = np.random.default_rng(2)
    sequence = rng.integers(0, GROUPS * ROLLOUTS, size=30)
    now = np.array([rng.uniform(*JOBS.submit_s[[f, f + LENGTH - 1]]) for f in state.first[sequence]])
    batch = decisions(sequence, now)
    found = waiting_saved(metric, state, JOBS, batch, ROLLOUTS, horizon_s)
    for d, (s, t) in enumerate(zip(sequence, now, strict=True)):
        group = range(s - s % ROLLOUTS, s - s % ROLLOUTS + ROLLOUTS)
        waits = [waiting_after(state, other, t, metric, horizon_s) for other in group]
        expected = sum(waits) / ROLLOUTS - waits[s % ROLLOUTS]
        assert found[d] == pytest.approx(expected, rel=2e-3, abs=2e-3 * max(waits) + 1e-6)
    assert np.abs(found).max() > 0


def test_log_softmax_by_segment_equals_a_loop():
    rng = np.random.default_rng(1)
    segment = np.repeat(np.arange(4, dtype=np.int32), [1, 5, 2, 9])
    logits = rng.normal(size=17).astype(np.float32) * 30
    got = log_softmax(tf.constant(logits), tf.constant(segment), tf.constant(4)).numpy()
    for i in range(4):
        x = logits[segment == i].astype(np.float64)
        assert got[segment == i] == pytest.approx(x - x.max() - np.log(np.exp(x - x.max()).sum()), abs=1e-4)


def test_the_policy_in_numpy_equals_the_network():
    set_up(3)
    ppo = PPO(QUICK, np.random.default_rng(3), WIDTH)
    obs = np.random.default_rng(3).normal(size=(50, WIDTH)).astype(np.float32)
    assert TrainedPolicy(ppo.weights(), {}).logits(obs) == pytest.approx(ppo.actor(obs).numpy()[:, 0], abs=1e-5)


def _bandit(ppo: PPO, rng: np.random.Generator, count: int = 400) -> Batch:
    """One-decision sequences of 2 to 6 jobs; picking the job with the smallest first feature is rewarded."""
    length = rng.integers(2, 7, size=count)
    obs = rng.random((length.sum(), WIDTH)).astype(np.float32)
    logits = TrainedPolicy(ppo.weights(), {}).logits(obs)
    action, log_prob, reward = np.empty(count, np.int64), np.empty(count, np.float32), np.empty(count, np.float32)
    for i, (end, n) in enumerate(zip(np.cumsum(length), length, strict=True)):
        p = np.exp(logits[end - n : end] - logits[end - n : end].max())
        p /= p.sum()
        action[i] = rng.choice(n, p=p)
        log_prob[i] = np.log(p[action[i]])
        reward[i] = float(action[i] == obs[end - n : end, 0].argmin())
    critic, prior = np.zeros((len(obs), CRITIC_WIDTH), np.float32), np.zeros(len(obs), np.float32)
    return Batch(obs, critic, prior, length, action, log_prob, np.arange(count), np.zeros(count), reward)


def _update(ppo: PPO, batch: Batch, done: float = 0.0):
    values = ppo.values(batch)
    return ppo.update(
        batch, Advantages(*gae(values, batch.sequence, batch.reward, ppo.preset.gae_lambda), values), done
    )


def test_it_learns_to_pick_the_smallest():
    set_up(5)
    rng, scores = np.random.default_rng(5), []
    ppo = PPO(QUICK.model_copy(update={"actor_lr": 5e-3}), rng, WIDTH)
    for _ in range(40):
        batch = _bandit(ppo, rng)
        scores.append(batch.reward.mean())
        _update(ppo, batch)
    assert scores[0] < 0.5 and scores[-1] > 0.85


def test_updates_stop_at_the_target_divergence():
    set_up(6)
    rng = np.random.default_rng(6)
    ppo = PPO(QUICK.model_copy(update={"actor_lr": 0.1, "target_kl": 0.001, "iterations": 50}), rng, WIDTH)
    assert _update(ppo, _bandit(ppo, rng)).actor_iterations < 50


def test_a_queue_padded_to_its_class_has_the_value_of_one_padded_to_the_window():
    ppo, rng = PPO(BUILT_IN["paper"], np.random.default_rng(8), WIDTH), np.random.default_rng(8)
    length = np.array([2, 256, 17, 16, 40, 3])
    rows = rng.random((length.sum(), CRITIC_WIDTH)).astype(np.float32)
    nothing = np.zeros(length.sum(), np.float32)
    batch = Batch(rows, rows, nothing, length, np.zeros(6, int), nothing[:6], np.arange(6), np.zeros(6), nothing[:6])
    whole = np.zeros((6, MAX_VISIBLE, CRITIC_WIDTH), np.float32)
    for queue, of_queue in zip(whole, np.split(rows, np.cumsum(length)[:-1]), strict=True):
        queue[: len(of_queue)] = of_queue
    expected = ppo.critic(whole.reshape(6, -1)).numpy()[:, 0]
    assert ppo.values(batch) == pytest.approx(expected, abs=1e-5)


def test_a_large_batch_in_parts_gives_the_gradient_of_the_whole(monkeypatch):
    def weights(max_rows: int) -> list[np.ndarray]:
        set_up(9)
        monkeypatch.setattr("rltune.agent.ppo.MAX_ROWS", max_rows)
        ppo = PPO(BUILT_IN["paper"].model_copy(update={"iterations": 3}), np.random.default_rng(9), WIDTH)
        _update(ppo, _bandit(ppo, np.random.default_rng(9)))
        return [*ppo.weights(), *ppo.critic.get_weights()]

    for whole, parts in zip(weights(10**9), weights(100), strict=True):
        np.testing.assert_allclose(whole, parts, atol=2e-5)


@pytest.mark.parametrize(("preset", "factors"), [("tuned", [1.0, 0.5, 0.0]), ("quick", [1.0, 1.0, 1.0])])
def test_steps_get_smaller_along_a_cosine_where_training_starts_from_the_base_policy(preset, factors):
    constants, found = BUILT_IN[preset], []
    ppo = PPO(constants, np.random.default_rng(11), WIDTH)
    batch = _bandit(ppo, np.random.default_rng(11))
    for done in (0.0, 0.5, 1.0):
        _update(ppo, batch, done)
        found.append(float(ppo.actor_optimiser.learning_rate.numpy()))
    assert found == pytest.approx([constants.actor_lr * factor for factor in factors], abs=1e-9)
