"""Training that starts from the base policy: at first the agent is that policy, job by job."""

from __future__ import annotations

import numpy as np
import pytest
from agent_fakes import workload

from rltune.agent.exercise import Exercise
from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.ppo import PPO
from rltune.agent.rollout import AgentRanker
from rltune.agent.training import learn
from rltune.config import Cell, LookaheadConfig, Preset
from rltune.config.cells import POLICIES
from rltune.environment.observation import Observer
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.traces.split import split_points

JOBS, LAYOUT = workload(900, seed=4, load=6)
START = Preset(base_policy_bias=0.7, epochs=1, trajectories=4, sequence_jobs=64, validate_every=1)


@pytest.mark.parametrize("backfill", ["none", "greedy", "easy"])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_first_agent_starts_every_job_when_its_base_policy_does(policy: str, backfill: str) -> None:
    ppo = PPO(START, np.random.default_rng(1), 8)
    ranker = AgentRanker(
        TrainedPolicy(ppo.weights(), {}).logits, Observer(JOBS, LAYOUT, "engineered"), base_policy_bias=0.7
    )
    how = JOBS, LAYOUT, [0, 300], [300, 500], SchedulerConfig(policy, backfill)
    np.testing.assert_array_equal(simulate(*how, ranker).start, simulate(*how).start)
    assert simulate(*how).status["queue_sum"].sum() > 20 * 800, "queues are long enough to differ in"


def test_nothing_better_than_the_base_policy_is_not_learned() -> None:
    """Steps too small to change an order: the start is kept, and it says that it has learned nothing."""
    cell = Cell("t", "c", "saf", "wait", "none", "best_fit", "strict", "engineered", "exact", "quick", 1)
    preset = START.model_copy(update={"actor_lr": 1e-12})
    exercise = Exercise(cell, preset, LookaheadConfig(), JOBS, LAYOUT, split_points(900, validation=0.3))
    facts = learn(exercise).policy.facts
    assert facts["validation_metric"] == facts["validation_base"] and facts["best_epoch"] == 0
    assert facts["learned"] is False
