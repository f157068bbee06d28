"""Training as a whole: it learns, it repeats itself, it keeps its hands off what it must not see."""

from __future__ import annotations

import numpy as np
import pytest
from agent_fakes import workload
from pydantic import ValidationError

from rltune.agent.exercise import Exercise
from rltune.agent.learners import train
from rltune.agent.policy_file import save_policy
from rltune.agent.rollout import AgentRanker
from rltune.config import Cell, LookaheadConfig, Preset
from rltune.environment.observation import Observer
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table
from rltune.traces.split import split_points

TINY = Preset(
    epochs=12,
    trajectories=12,
    sequence_jobs=48,
    actor_lr=5e-3,
    critic_lr=5e-3,
    actor_iterations=15,
    critic_iterations=10,
    target_kl=0.05,
    validate_every=4,
    validation_windows=3,
)
CELL = Cell("t", "c", "fifo", "wait", "none", "best_fit", "strict", "engineered", "exact", "quick", 1)


def _train(cell=CELL, preset=TINY, jobs_and_layout=None):
    jobs, layout = jobs_and_layout or workload(2000, seed=9)
    return train(Exercise(cell, preset, LookaheadConfig(), jobs, layout, split_points(len(jobs.gpus))))


def test_it_beats_the_base_policy_on_sequences_it_has_not_seen():
    jobs, layout = workload(2000, seed=9)
    result = _train(jobs_and_layout=(jobs, layout))
    first = np.array([1800, 1848, 1896])
    n = np.full(3, 48)
    scheduler = SchedulerConfig("fifo", "none", "best_fit")
    base = sequence_table(jobs, simulate(jobs, layout, first, n, scheduler), layout.gpus)["wait_s"].mean()
    ranker = AgentRanker(result.policy.logits, Observer(jobs, layout, "engineered"))
    agent = sequence_table(jobs, simulate(jobs, layout, first, n, scheduler, ranker), layout.gpus)["wait_s"].mean()
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
    assert list(pro["base"]) == list(naive["base"])
    assert list(pro["rl"]) != list(naive["rl"])


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


def test_what_the_test_part_holds_changes_nothing(tmp_path):
    short = TINY.model_copy(update={"epochs": 2, "validate_every": 1, "contended": 0.5, "base_policy_bias": 0.5})
    jobs, layout = workload(2000, seed=9)
    poisoned = jobs._replace(row=jobs.row.copy())
    rows = slice(split_points(2000).test[0], None)
    poisoned.row["run_s"][rows], poisoned.row["estimate_s"][rows] = 1e7, 1.0
    for name, given in {"clean": jobs, "poisoned": poisoned}.items():
        result = _train(CELL.but(policy="wfp3", backfill="easy"), short, (given, layout))
        save_policy(tmp_path / f"{name}.npz", result.policy)
        result.history.drop(columns=[c for c in result.history if "second" in c]).to_csv(tmp_path / f"{name}.csv")
    for kind in ("npz", "csv"):
        assert (tmp_path / f"clean.{kind}").read_bytes() == (tmp_path / f"poisoned.{kind}").read_bytes()


@pytest.mark.parametrize("metric", ["bsld", "0.5*jct+0.5*utilisation"])
def test_other_metrics_are_learned_and_judged_by_themselves(metric):
    result = _train(CELL.but(metric=metric))
    facts = result.policy.facts
    assert facts["validation_metric"] < facts["validation_base"], "lower is better"
    assert facts["validation_metric"] == result.history["validation_rl"].min()
    assert result.history["reward"].iloc[-3:].mean() > 0.05


def test_a_critic_or_several_rollouts_are_needed():
    with pytest.raises(ValidationError, match="critic_iterations: found 0 with one rollout"):
        Preset(critic_iterations=0)
    assert (
        _train(CELL, Preset(**{**TINY.model_dump(), "epochs": 1, "critic_iterations": 0, "rollouts": 2}))
        .history["value_loss"]
        .eq(0)
        .all()
    )


def test_a_trace_in_which_nobody_waits_teaches_nothing():
    jobs, layout = workload(400, seed=2, load=0.001)
    preset = TINY.model_copy(update={"epochs": 2, "validate_every": 1, "validation_windows": 1, "sequence_jobs": 20})
    result = _train(CELL, preset, (jobs, layout))
    assert not result.history["choices"].any() and result.policy.facts["learned"] is False
    assert result.history["kl"].isna().all() and (result.history["actor_iterations"] == 0).all()
