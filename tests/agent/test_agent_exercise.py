"""What a learner practises on: where sequences start, by what estimates they are run, what they are worth."""

from __future__ import annotations

import numpy as np
import pytest
from agent_fakes import workload

from rltune.agent.exercise import Exercise
from rltune.agent.learners import ranker_of
from rltune.agent.policy_file import TrainedPolicy
from rltune.config import Cell, LookaheadConfig, Preset
from rltune.environment.reward import rewards, scores
from rltune.errors import ConfigError
from rltune.traces.split import split_points

JOBS, LAYOUT = workload(1500, seed=6, load=2)
CELL = Cell("t", "c", "fifo", "wait", "none", "best_fit", "strict", "unsampled", "exact", "quick", 1)
SHORT = Preset(sequence_jobs=32, trajectories=200, validation_windows=4)
SMALLEST = TrainedPolicy((-np.eye(8)[:, 1:2], np.zeros(1)), {"agent": "rltune", "features": "unsampled"})


def exercise(cell: Cell = CELL, preset: Preset = SHORT, jobs=JOBS, calibrated=None) -> Exercise:
    split = split_points(1500, 0.8, 0.2)
    return Exercise(cell, preset, LookaheadConfig(), jobs, LAYOUT, split, calibrated=calibrated)


def test_sequences_lie_in_the_training_part_and_are_drawn_anew() -> None:
    mine = exercise()
    one, two = mine.draw(), mine.draw()
    assert list(one) != list(two) and list(exercise().draw()) == list(one)
    assert one.min() >= 0 and one.max() + 32 <= mine.split.train[1] and len(one) == 200
    assert (mine.held >= mine.split.validation[0]).all() and (mine.held + 32 <= mine.split.validation[1]).all()


def test_a_share_of_them_is_contended() -> None:
    even, many = exercise(), exercise(preset=SHORT.model_copy(update={"contended": 0.8}))
    waits = [e.run(e.draw())["wait_s"].to_numpy() for e in (even, many)]
    assert len(waits[1]) == 200 and waits[1].mean() > 1.2 * waits[0].mean()
    calm = np.median(waits[0])
    assert 0.7 < (waits[1] >= calm).mean() < 0.97, "0.8, and half of the others, but for the neighbourhood"


def test_the_agent_goes_by_what_it_uses_calibrated_and_the_base_policy_by_what_is_given() -> None:
    calibrated = JOBS._replace(row=JOBS.row.copy())
    calibrated.row["estimate_s"] = JOBS.run_s[::-1]
    cell = CELL.but(policy="sjf", backfill="easy")
    plain, other = exercise(cell), exercise(cell, calibrated=calibrated)
    other.calibrated = calibrated  # as if it had chosen to
    first = np.arange(0, 600, 32)
    assert plain.run(first)["wait_s"].tolist() == other.run(first)["wait_s"].tolist()
    assert (plain.held_base, plain.held_random) == (other.held_base, other.held_random)
    runs = [e.run(first, ranker_of(SMALLEST, e.calibrated, LAYOUT))["wait_s"].to_numpy() for e in (plain, other)]
    assert runs[0].mean() < 0.95 * runs[1].mean(), "the order of the estimates is worth something"


def test_the_same_numbers_are_the_same_jobs_whatever_memory_holds_between_them() -> None:
    copy = JOBS._replace(row=JOBS.row.copy())
    between = np.ones(copy.row.dtype.itemsize, bool)
    for field, offset in copy.row.dtype.fields.values():
        between[offset : offset + field.itemsize] = False
    assert between.any()
    copy.row.view(np.uint8).reshape(len(copy.row), -1)[:, between] = 7
    mine = exercise()
    assert exercise(jobs=copy, calibrated=copy).identity == mine.identity
    for name, last in {"run_s": mine.split.validation[1] - 1, "gpus": 0}.items():
        copy.row[name][last] += 1
        assert (
            exercise(jobs=copy).identity["jobs"] != mine.identity["jobs"] != exercise(calibrated=copy).identity["jobs"]
        )
        copy.row[name][last] = JOBS.row[name][last]
    copy.row["run_s"][mine.split.test[0] :] += 1
    assert exercise(jobs=copy).identity == mine.identity, "training does not see the test part"


def test_metrics_are_minimised_and_rewarded() -> None:
    mine = exercise()
    first = np.arange(0, 600, 32)
    base, agent = mine.run(first), mine.run(first, ranker_of(SMALLEST, JOBS, LAYOUT))
    for metric, column in (("wait", "wait_s"), ("jct", "jct_s"), ("bsld", "bsld")):
        assert scores(metric, base, agent).tolist() == agent[column].tolist()
        larger = np.maximum(np.maximum(base[column], agent[column]), 1.0)
        assert rewards(metric, base, agent) == pytest.approx(((base[column] - agent[column]) / larger).to_numpy())
    assert scores("utilisation", base, agent).tolist() == (-agent["utilisation_span"]).tolist()
    better = rewards("utilisation", base, agent) > 0
    assert better.tolist() == (agent["utilisation_span"] > base["utilisation_span"]).tolist() and better.any()
    nothing = base.assign(utilisation_span=0.0)
    tiny = base.assign(utilisation_span=5e-4)
    assert rewards("utilisation", nothing, tiny) == pytest.approx(0.5), "the floor is 0.001"
    at_once = (side.assign(utilisation_span=np.nan, utilisation=used) for side, used in ((base, 0.2), (agent, 0.4)))
    assert rewards("utilisation", *at_once) == pytest.approx(0.5), "without a span, the makespan's"


def test_a_mix_is_the_weighted_sum_and_its_base_policy_scores_nothing() -> None:
    mix = exercise(CELL.but(metric="0.7*wait+0.3*utilisation"))
    first = np.repeat(np.arange(0, 300, 32), 2)  # several rollouts of a sequence
    base, agent = mix.run(first), mix.run(first, ranker_of(SMALLEST, JOBS, LAYOUT))
    parts = 0.7 * rewards("wait", base, agent) + 0.3 * rewards("utilisation", base, agent)
    assert mix.reward(base, agent) == pytest.approx(parts)
    assert agent["score"].to_numpy() == pytest.approx(-parts)
    assert mix.held_base == 0 and not base["score"].any() and mix.held_random != 0


def test_a_metric_that_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="found 'fairness', expected wait, jct"):
        exercise(CELL.but(metric="fairness")).run(np.array([0]))
