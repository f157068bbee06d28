"""Training as a whole: it learns, it starts from the base policy where it should, it reports what it does."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from agent_fakes import TOY_CELL, TOY_LENGTH, TOY_PRESET, TOY_TEST, mean_wait_s, task_of, toy_queue, trained, workload
from pydantic import ValidationError

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.ppo import PPO
from rltune.agent.progress import ProgressLogger
from rltune.agent.rollout import AgentRanker, ranker_of
from rltune.agent.task import TrainingTask
from rltune.agent.trainer import fit, make_trainer
from rltune.config import Cell, Preset
from rltune.config.cells import POLICIES
from rltune.environment.observation import Observer
from rltune.errors import ConfigError
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.traces.split import split_points

CELL = Cell("t", "c", "fifo", "wait", "none", "best_fit", "strict", "engineered", "exact", "quick", 1)
CRITIC = dict(trajectories=48, rollouts=1, critic_lr=1e-2, gae_lambda=0.5)
"""Trainings of which only a good critic makes much."""


@pytest.mark.parametrize(
    ("base_policy_bias", "advantages"),
    [
        (0.0, CRITIC),
        (0.3, CRITIC),
        (0.0, dict(rollouts=4)),
        (0.3, dict(rollouts=4, credit_horizon_s=3000.0, gae_lambda=0.97)),
    ],
    ids=["critic", "critic, biased", "other rollouts", "waiting saved"],
)
def test_the_best_order_is_learned_from_a_policy_that_knows_nothing(base_policy_bias, advantages, monkeypatch):
    case = toy_queue()
    if "credit_horizon_s" in advantages:  # rewards say nothing then
        monkeypatch.setattr(TrainingTask, "reward", lambda self, base, agent: np.zeros(len(agent)))
    preset = TOY_PRESET.model_copy(update={"epochs": 30, "base_policy_bias": base_policy_bias, **advantages})

    def wait_s(policy: TrainedPolicy | None) -> float:
        ranker = ranker_of(policy, *case) if policy else None
        return mean_wait_s(case, TOY_TEST, TOY_LENGTH, SchedulerConfig("fifo"), ranker)

    run_s = np.sort(case[0].run_s[TOY_TEST[0] : TOY_TEST[-1] + TOY_LENGTH].reshape(-1, TOY_LENGTH), axis=1)
    best = (np.cumsum(run_s, axis=1) - run_s).mean()
    trainer = make_trainer(task_of(TOY_CELL, preset, case), None, 1)
    assert min(wait_s(None), wait_s(trainer.policy())) > 1.5 * best
    policy, history = fit(trainer), trainer.history
    assert wait_s(policy) == pytest.approx(best, rel=0.01) and policy.facts["learned"]
    if preset.has_critic and preset.rollouts == 1:
        assert history["explained_variance"].iloc[-1] > 0.3
    assert history["value_loss"].isna().all() != preset.has_critic


def test_without_a_critic_a_reward_at_the_end_counts_for_every_decision():
    """Also with a λ below 1, of metrics whose waiting is not credited to decisions."""
    preset = TOY_PRESET.model_copy(update={"rollouts": 4, "credit_horizon_s": 3000.0, "gae_lambda": 0.5})
    trainer = make_trainer(task_of(TOY_CELL.but(metric="utilisation"), preset, toy_queue()), None, 1)
    batch = trainer.collect()
    assert batch.reward.any() and np.allclose(trainer.advantages(batch).advantage, batch.reward[batch.sequence])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"credit_horizon_s": 60.0}, "credit_horizon_s: found with one rollout"),
        ({"margin": 1.0}, "margin: found above 0"),
        ({"agent": "rlscheduler", "base_policy_bias": 0.2}, "rlscheduler: base_policy_bias: found 0.2, expected 0"),
        ({"agent": "schedinspector"}, "schedinspector: base_policy_bias: found 0, expected more"),
    ],
)
def test_presets_that_cannot_work_are_refused(fields, reason):
    with pytest.raises(ValidationError, match=reason):
        Preset(**fields)


START = Preset(base_policy_bias=0.7, epochs=1, trajectories=4, sequence_jobs=64, validate_every=1)
CROWDED = workload(900, seed=4, load=6)


@pytest.mark.parametrize("backfill", ["none", "greedy", "easy"])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_first_agent_starts_every_job_when_its_base_policy_does(policy, backfill):
    ppo = PPO(START, np.random.default_rng(1), 8)
    logits, observer = TrainedPolicy(ppo.weights(), {}).logits, Observer(*CROWDED, "engineered")
    ranker = AgentRanker(logits, observer, base_policy_bias=0.7)
    args = *CROWDED, [0, 300], [300, 500], SchedulerConfig(policy, backfill)
    base = simulate(*args)
    np.testing.assert_array_equal(simulate(*args, ranker).start, base.start)
    assert base.status["queue_sum"].sum() > 20 * 800, "queues are long enough to differ in"


def test_where_nothing_better_than_the_base_policy_comes_it_says_that_it_has_learned_nothing():
    cell, preset = CELL.but(policy="saf"), START.model_copy(update={"actor_lr": 1e-12})
    facts = trained(task_of(cell, preset, CROWDED, split_points(900, validation=0.3)))[0].facts
    assert facts["validation_metric"] == facts["validation_base"] and facts["best_epoch"] == 0
    assert facts["learned"] is False


def test_a_margin_that_one_validation_window_can_never_show_is_said(capsys):
    for windows in (1, 2):
        split = split_points(900, validation=(64 * windows + 1) / 810)
        make_trainer(task_of(CELL, START.model_copy(update={"margin": 1.0}), CROWDED, split), None, 1)
        assert ("nothing that it learns is kept (margin 1)" in capsys.readouterr().out) == (windows == 1)


def test_a_validation_part_that_holds_no_sequence_is_refused():
    with pytest.raises(ConfigError, match="sequence_jobs: found 64, but the validation part has only 60 jobs"):
        task_of(CELL, START, CROWDED, split_points(900, validation=60 / 810))


def row(epoch: int, rl: float = math.nan, base: float = math.nan) -> dict[str, float]:
    return {"epoch": epoch, "reward": 0.25, "validation_rl": rl, "validation_base": base}


@pytest.mark.parametrize(
    ("epochs", "rows", "expected"),
    [
        (
            100,
            [(100, row(1)), (110, row(2, rl=5, base=6)), (139, row(3)), (140.1, row(4)), (141, row(5))],
            {1: "2 h 45 min", 2: "1 h 29 min", 4: "56 min 02 s"},
        ),
        (60, [(30, row(41)), (60, row(42, rl=5, base=6))], {41: "9 min 30 s", 42: "9 min 00 s"}),
    ],
    ids=["from the beginning", "resumed"],
)
def test_a_line_for_the_first_epoch_every_validation_and_after_a_while(epochs, rows, expected, monkeypatch):
    clock, lines = SimpleNamespace(now_s=1000.0), []
    monkeypatch.setattr("rltune.agent.progress.time", SimpleNamespace(perf_counter=lambda: clock.now_s))
    logger = ProgressLogger(epochs, lines.append)
    for after_s, one in rows:
        clock.now_s = 1000.0 + after_s
        logger(one)
    assert [line.split()[1] for line in lines] == list(map(str, expected))
    for line, (epoch, left) in zip(lines, expected.items(), strict=True):
        validation = "; validation 5, base 6" * (epoch in (2, 42))
        assert line == f"epoch {epoch} of {epochs}: reward +0.250{validation}; {left} left"
