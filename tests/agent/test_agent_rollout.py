"""From logits to orders of queues: what is picked, how probable it was, what is remembered."""

import math

import numpy as np
import pytest
from agent_fakes import workload

from rltune.agent.rollout import AgentRanker, answer
from rltune.environment.observation import Observer
from rltune.simulator.batch import SchedulerConfig, simulate

LOGITS = np.array([0.0, math.log(3)], np.float32)


def pick(noise: np.ndarray, order: tuple[int, int] = (0, 1)) -> tuple[np.ndarray, int, float]:
    """(scores, action, log-probability) of two jobs with LOGITS; ``order``: the queue's row of each logit."""
    score, action, log_prob = np.full((3, 2), np.nan), np.empty(1, np.int64), np.empty(1, np.float32)
    answer(score, np.array([1]), np.array([0, 2]), np.array(order), LOGITS, noise.astype(np.float32), action, log_prob)
    assert np.isnan(score[[0, 2]]).all()
    return score[1], int(action[0]), float(log_prob[0])


def test_answer_picks_the_best_and_reports_its_probability():
    score, action, log_prob = pick(np.zeros(2))
    assert action == 1 and log_prob == pytest.approx(math.log(0.75))
    assert score[1] < score[0]
    score, action, _ = pick(np.zeros(2), (1, 0))
    assert action == 1 and score[0] < score[1], "scores go to the rows of the queue"


def test_gumbel_noise_samples_the_softmax():
    rng = np.random.default_rng(2)
    picks = [pick(rng.gumbel(size=2))[1] for _ in range(4000)]
    assert np.mean(picks) == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize("policy", ["fifo", "saf"])
def test_a_batch_is_sorted_by_sequence_and_complete(policy):
    jobs, layout = workload(300, seed=5)
    ranker = AgentRanker(lambda x: 3 * x[:, 0], Observer(jobs, layout, "engineered"), np.random.default_rng(1))
    state = simulate(jobs, layout, [0, 50, 100], [100] * 3, SchedulerConfig(policy), ranker)
    batch = ranker.memory.batch(np.zeros(3))
    assert (np.diff(batch.sequence) >= 0).all()
    assert list(np.bincount(batch.sequence)) == list(state.status["choices"])
    assert len(batch.obs) == len(batch.critic) == batch.length.sum()
    assert (batch.length >= 2).all() and (batch.action < batch.length).all()
    ends, first, likely = np.cumsum(batch.length), [], []
    for end, n, action, log_prob in zip(ends, batch.length, batch.action, batch.log_prob, strict=True):
        x = 3 * batch.obs[end - n : end, 0].astype(float)
        assert log_prob == pytest.approx(x[action] - np.log(np.exp(x).sum()), abs=1e-4)
        assert (np.diff(batch.critic[end - n : end, 0]) >= 0).all(), "in the order of submission"
        chance = np.exp(x) / np.exp(x).sum()
        first.append(action == chance.argmax())
        likely.append(chance.max())
    error = np.sqrt((np.array(likely) * (1 - np.array(likely))).mean() / len(likely))
    assert abs(np.mean(first) - np.mean(likely)) < 4 * error < 0.2, "picks are samples of the softmax"


def test_what_an_agent_does_depends_on_its_base_policy_only_where_that_orders():
    """The whole queue is in sight: one seed, one run, whatever the base policy."""
    jobs, layout = workload(300, seed=5)

    def starts(policy: str) -> np.ndarray:
        ranker = AgentRanker(lambda x: -x[:, 1], Observer(jobs, layout, "engineered"), np.random.default_rng(1))
        return simulate(jobs, layout, [0], [300], SchedulerConfig(policy), ranker).start

    np.testing.assert_array_equal(starts("fifo"), starts("wfp3"))
    np.testing.assert_array_equal(starts("fifo"), starts("sjf"))
