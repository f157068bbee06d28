"""Training as a whole: it learns, it repeats itself, it keeps its hands off what it must not see."""

from __future__ import annotations

import numpy as np
import pytest
from agent_fakes import workload

from rltune.agent.policy_file import TrainedPolicy, load_policy, save_policy
from rltune.agent.rollout import AgentRanker
from rltune.agent.training import train
from rltune.config import Cell, LookaheadConfig, Preset
from rltune.environment.observation import Observer
from rltune.errors import DataError
from rltune.simulator.batch import Setting, simulate
from rltune.simulator.metrics import sequence_table
from rltune.traces.split import split_points

TINY = Preset(
    epochs=12, trajectories=12, sequence_jobs=48, actor_lr=5e-3, critic_lr=5e-3, actor_iterations=15,
    critic_iterations=10, target_kl=0.05, validate_every=4, validation_windows=3,
)  # fmt: skip
CELL = Cell("t", "c", "fifo", "wait", "none", "best_fit", "strict", "engineered", "exact", "quick", 1)


def _train(cell=CELL, preset=TINY, jobs_and_layout=None):
    jobs, layout = jobs_and_layout or workload(2000, seed=9)
    return train(cell, preset, LookaheadConfig(), jobs, layout, split_points(len(jobs.gpus)))


def test_it_beats_the_base_policy_on_sequences_it_has_not_seen():
    jobs, layout = workload(2000, seed=9)
    result = _train(jobs_and_layout=(jobs, layout))
    first = np.array([1800, 1848, 1896])
    n = np.full(3, 48)
    setting = Setting("fifo", "none", "best_fit")
    base = sequence_table(jobs, simulate(jobs, layout, first, n, setting), layout.gpus)["wait_s"].mean()
    ranker = AgentRanker(result.policy.logits, Observer(jobs, layout, "engineered"))
    agent = sequence_table(jobs, simulate(jobs, layout, first, n, setting, ranker), layout.gpus)["wait_s"].mean()
    assert agent < 0.9 * base
    assert list(result.history["epoch"]) == list(range(1, 13))


def test_one_seed_gives_the_same_bytes_and_two_do_not(tmp_path):
    short = TINY.model_copy(update={"epochs": 3, "validate_every": 3})
    for name, cell in {"a": CELL, "b": CELL, "c": CELL.but(seed=2)}.items():
        save_policy(tmp_path / f"{name}.npz", _train(cell, short).policy)
    a, b, c = ((tmp_path / f"{n}.npz").read_bytes() for n in "abc")
    assert a == b
    assert a != c


def test_variants_train_on_the_same_sequences():
    short = TINY.model_copy(update={"epochs": 2, "validate_every": 2})
    pro, naive = (_train(CELL.but(features=f), short).history for f in ("engineered", "raw"))
    assert list(pro["base_s"]) == list(naive["base_s"])
    assert list(pro["rl_s"]) != list(naive["rl_s"])


def test_several_rollouts_of_a_sequence_count_relative_to_their_mean():
    short = TINY.model_copy(update={"epochs": 2, "validate_every": 2, "rollouts": 3})
    result = _train(CELL, short)
    assert result.history["reward"].notna().all() and result.policy.facts["preset"]["rollouts"] == 3


def test_an_agent_says_whether_it_learned():
    facts = _train().policy.facts
    assert facts["learned"] == (facts["validation_metric"] < min(facts["validation_base"], facts["validation_random"]))


def test_lookahead_is_counted_in_the_history():
    short = TINY.model_copy(update={"epochs": 2, "validate_every": 2})
    history = _train(CELL.but(placement="lookahead"), short).history
    assert (history["milp_settled"] > 0).all()
    answers = history[["milp_settled", "milp_cached", "milp_calls"]].sum(axis=1)
    assert (history["milp_asked"] == answers).all()
    assert not history[["milp_infeasible", "milp_limit", "milp_failure"]].any().any()


def test_policy_file_round_trip_and_its_errors(tmp_path):
    policy = TrainedPolicy((np.eye(8, 3), np.zeros(3), np.ones((3, 1)), np.zeros(1)), {"features": "raw"})
    path = tmp_path / "policy.npz"
    save_policy(path, policy)
    back = load_policy(path)
    obs = np.random.default_rng(0).normal(size=(5, 8))
    assert back.features == "raw" and (back.logits(obs) == policy.logits(obs)).all()
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match="not a policy file"):
        load_policy(path)
    with pytest.raises(DataError, match="train the cell first"):
        load_policy(tmp_path / "none.npz")
