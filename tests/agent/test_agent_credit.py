"""What decisions are credited with, against the sum it stands for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from agent_fakes import workload

from rltune.agent.credit import CREDITED, credit
from rltune.agent.rollout import RandomRanker
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import BSLD_FLOOR_S

JOBS, LAYOUT = workload(200, seed=3)
GROUPS, ROLLOUTS, LENGTH = 2, 3, 40


@pytest.fixture(scope="module")
def state():
    first = np.repeat([0, 60], ROLLOUTS)
    ranker = RandomRanker(np.random.default_rng(1))
    return simulate(JOBS, LAYOUT, first, np.full(len(first), LENGTH), SchedulerConfig("fifo"), ranker)


def later(state, s: int, now: float, metric: str, horizon_s: float) -> float:
    """Waiting of sequence ``s`` after ``now``, weighted, in steps of an eighth of a second where it is discounted."""
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
def test_credit_is_the_waiting_saved_against_the_mean(state, metric: str, horizon_s: float) -> None:
    rng = np.random.default_rng(2)
    sequence = rng.integers(0, GROUPS * ROLLOUTS, size=30)
    now = state.first[sequence] * 0.0 + np.array(
        [rng.uniform(*JOBS.submit_s[[f, f + LENGTH - 1]]) for f in state.first[sequence]]
    )
    found = credit(metric, state, JOBS.run_s, JOBS.submit_s, now, sequence, ROLLOUTS, horizon_s)
    for d, (s, t) in enumerate(zip(sequence, now, strict=True)):
        group = range(s - s % ROLLOUTS, s - s % ROLLOUTS + ROLLOUTS)
        waits = [later(state, other, t, metric, horizon_s) for other in group]
        expected = sum(waits) / ROLLOUTS - later(state, s, t, metric, horizon_s)
        assert found[d] == pytest.approx(expected, rel=2e-3, abs=2e-3 * max(waits) + 1e-6)
    assert np.abs(found).max() > 0


def test_before_anything_the_credit_is_the_difference_in_waiting(state) -> None:
    sequence = np.arange(GROUPS * ROLLOUTS)
    now = JOBS.submit_s[state.first]
    found = credit("wait", state, JOBS.run_s, JOBS.submit_s, now, sequence, ROLLOUTS, 1e12)
    rows = state.first[:, None] + np.arange(LENGTH)
    waits = (state.start[:, :LENGTH] - JOBS.submit_s[rows]).sum(axis=1).reshape(GROUPS, ROLLOUTS)
    assert found == pytest.approx((waits.mean(axis=1, keepdims=True) - waits).ravel(), rel=1e-2, abs=1.0)
    assert found.reshape(GROUPS, ROLLOUTS).sum(axis=1) == pytest.approx([0, 0], abs=10.0)
    assert not math.isclose(float(found.std()), 0.0)
