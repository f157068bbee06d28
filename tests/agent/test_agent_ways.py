"""What an agent chooses besides the order, against scores whose best is known."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from agent_fakes import workload

from rltune.agent.exercise import Exercise
from rltune.agent.learners import train
from rltune.agent.peers.linear_score import AREA, LinearRanker
from rltune.agent.rollout import RandomRanker
from rltune.agent.trials import NAME, Trials
from rltune.agent.ways import POLICIES, RESERVATIONS, Way, choose, difference, way_of
from rltune.config import Cell, LookaheadConfig, Preset, SimulationConfig
from rltune.config.run import EvaluationConfig
from rltune.evaluation.evaluate import evaluate
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table
from rltune.traces.split import split_points

START = way_of(SchedulerConfig("fifo", "easy"))
COST = {
    "saf": -30.0,
    "sjf": -10.0,
    "conservative": -20.0,
    "isolating_best_fit": -5.0,
    "any": -7.0,
    "soonest_end": -8.0,
    True: -4.0,
}
JOBS, LAYOUT = workload(1200, seed=5)
RESERVED = workload(1200, seed=6)
"""Jobs for which conservative backfilling is the better choice."""
SPLIT = split_points(1200, 0.8, 0.2)
CELL = Cell("t", "c", "fifo", "wait", "easy", "best_fit", "strict", "rich", "exact", "tuned", 1)
TUNED = Preset(
    epochs=2,
    trajectories=2,
    rollouts=2,
    sequence_jobs=32,
    base_policy_bias=1.0,
    critic_iterations=0,
    actor_iterations=2,
    validate_every=1,
    validation_windows=4,
    margin=1.0,
    chooses="reservations",
    choice_windows=20,
    credit_horizon_s=3600.0,
)


def cheapest(noise: float = 0.0) -> Callable[[Way], np.ndarray]:
    """Scores that are a sum over the fields, so that the best is known; with other noise for every way."""

    def scores(way: Way) -> np.ndarray:
        values = [v for k, v in asdict(way).items() if k != "split_worth"]
        total = 100.0 + sum(COST.get(v, 0.0) for v in values)
        return total + noise * np.random.default_rng(len(repr(way))).normal(size=50)

    return scores


@pytest.mark.parametrize(
    ("chooses", "beliefs", "expected"),
    [
        ("reservations", True, replace(START, policy="saf", backfill="conservative", uses_calibrated=True)),
        ("reservations", False, replace(START, policy="saf", backfill="conservative")),
        (
            "ways",
            True,
            replace(
                START,
                policy="saf",
                backfill="conservative",
                placement="isolating_best_fit",
                locality="soonest_end",
                uses_calibrated=True,
            ),
        ),
    ],
)
def test_the_best_is_found_where_every_choice_counts_by_itself(chooses, beliefs: bool, expected: Way) -> None:
    best, rows = choose(START, chooses, beliefs, cheapest())
    assert best == expected
    table = pd.DataFrame(rows)
    assert table.loc[0, "score"] == 100 and table["kept"].sum() >= 3
    assert not table.duplicated(list(asdict(START))).any(), "nothing is tried twice"


def test_what_could_be_chance_is_not_taken() -> None:
    assert choose(START, "ways", True, lambda way: np.full(20, 5.0))[0] == START
    alternating = np.tile([0.0, 10.0], 10)

    def scores(way: Way) -> np.ndarray:
        return alternating if way == START else alternating[::-1] - 0.1

    gain, error = difference(scores(START), scores(replace(START, policy="saf")))
    assert 0 < gain < error and choose(START, "ways", True, scores)[0] == START


@pytest.mark.parametrize("backfill", list(RESERVATIONS))
def test_never_fewer_reservations_than_the_cell_has(backfill: str) -> None:
    ladder = ["none", "greedy", "easy", "conservative"]
    tried = {row["backfill"] for row in choose(replace(START, backfill=backfill), "ways", True, cheapest())[1]}
    assert tried == set(RESERVATIONS[backfill])
    assert min(map(ladder.index, tried)) == ladder.index(backfill) and (backfill == "none") == (tried == {"none"})


def test_it_is_chosen_on_training_rows_alone() -> None:
    poisoned = JOBS._replace(row=JOBS.row.copy())
    poisoned.row["run_s"][SPLIT.train[1] + 32 :] *= 50
    poisoned.row["estimate_s"][SPLIT.train[1] + 32 :] = 1.0
    found = [
        Exercise(CELL, TUNED, LookaheadConfig(), jobs, LAYOUT, SPLIT, calibrated=jobs) for jobs in (JOBS, poisoned)
    ]
    assert found[0].way == found[1].way and found[0].choice == found[1].choice
    assert len(found[0].choice) >= len(POLICIES) and found[0].way.policy != "fifo"


def test_the_base_policy_keeps_the_cells_rules_and_the_agent_has_its_own() -> None:
    mine = Exercise(CELL, TUNED, LookaheadConfig(), JOBS, LAYOUT, SPLIT)
    plain = Exercise(CELL, TUNED.model_copy(update={"chooses": "nothing"}), LookaheadConfig(), JOBS, LAYOUT, SPLIT)
    first = np.arange(0, 320, 32)
    assert mine.run(first)["wait_s"].tolist() == plain.run(first)["wait_s"].tolist()
    assert mine.own != mine.scheduler == plain.own == plain.scheduler and mine.calibrated is mine.jobs


@pytest.mark.parametrize(
    ("cell", "chooses", "practised", "judged"),
    [
        ("easy", "reservations", "easy", "conservative"),
        ("easy", "nothing", "easy", "easy"),
        ("greedy", "reservations", "easy", "conservative"),
        ("conservative", "reservations", "conservative", "conservative"),
    ],
)
def test_only_reservations_that_were_chosen_are_left_out_in_practice(
    cell: str, chooses: str, practised: str, judged: str
) -> None:
    jobs, layout = RESERVED
    preset = TUNED.model_copy(update={"chooses": chooses})
    mine = Exercise(CELL.but(backfill=cell), preset, LookaheadConfig(), jobs, layout, SPLIT)
    assert mine.own.backfill == judged and mine.practised == replace(mine.own, backfill=practised)
    first, ranker = np.arange(0, 320, 32), LinearRanker(jobs, layout, AREA[None])

    def jct_s(backfill: str) -> list[float]:
        state = simulate(jobs, layout, first, np.full(10, 32), replace(mine.own, backfill=backfill), ranker)
        return sequence_table(jobs, state, layout.gpus)["jct_s"].tolist()

    assert mine.run(first, ranker, practice=True)["jct_s"].tolist() == jct_s(practised)
    assert mine.run(first, ranker)["jct_s"].tolist() == jct_s(judged)
    assert jct_s("easy") != jct_s("conservative")


@pytest.mark.parametrize("agent", ["rltune", "linear"])
def test_an_order_for_chosen_reservations_is_learned_without_and_judged_with_them(
    agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, layout = RESERVED
    mine = Exercise(CELL, Preset(**TUNED.model_dump() | {"agent": agent}), LookaheadConfig(), jobs, layout, SPLIT)
    runs = []

    def spying(jobs, layout, first, n, scheduler, ranker=None, placer=None):
        if ranker is not None and not isinstance(ranker, RandomRanker):
            runs.append((bool((first < SPLIT.train[1]).all()), scheduler.backfill))
        return simulate(jobs, layout, first, n, scheduler, ranker, placer)

    monkeypatch.setattr("rltune.agent.exercise.simulate", spying)
    train(mine)
    assert set(runs) == {(True, "easy"), (False, "conservative")}, "on the training part, on the validation part"


def test_a_policy_is_judged_by_the_way_it_was_trained_for() -> None:
    result = train(Exercise(CELL, TUNED, LookaheadConfig(), JOBS, LAYOUT, SPLIT, calibrated=JOBS))
    assert result.policy.facts["way"]["policy"] != "fifo"
    ids = np.array([f"j{i}" for i in range(1200)])
    config = EvaluationConfig(sequence_jobs=[32], bootstrap=200)
    windows, _ = evaluate(
        CELL, result.policy, JOBS, ids, LAYOUT, SPLIT, config, LookaheadConfig(), SimulationConfig(), calibrated=JOBS
    )
    ours = windows[windows["role"] == "rltune"]
    assert set(ours["policy"]) == {result.policy.facts["way"]["policy"]}
    assert set(windows.loc[windows["role"] == "base", "policy"]) == {"fifo"}


def test_all_ways_are_settings() -> None:
    for policy, backfill in itertools.product(POLICIES, RESERVATIONS):
        scheduler = SchedulerConfig(policy, backfill, "isolating_best_fit", "worth_it", split_worth=0.3)
        assert way_of(scheduler).of(SchedulerConfig("fifo")) == scheduler


def test_trials_are_kept_and_an_interrupted_choice_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    scores, tried = cheapest(3.0), []

    def dying(way: Way) -> np.ndarray:
        if len(tried) == 5:
            raise KeyboardInterrupt
        tried.append(way)
        return scores(way)

    of = {"cell": "a", "jobs": "x"}
    with pytest.raises(KeyboardInterrupt):
        choose(START, "ways", True, Trials(dying, of, tmp_path))
    again: list[Way] = []
    resumed = choose(START, "ways", True, Trials(lambda way: again.append(way) or scores(way), of, tmp_path))
    assert resumed == choose(START, "ways", True, scores)
    assert len(again) > 3 and not set(again) & set(tried), "nothing that was known is tried again"
    assert "5 known from before" in capsys.readouterr().out
    choose(START, "ways", True, Trials(lambda way: again.append(way) or scores(way), {**of, "jobs": "y"}, tmp_path))
    assert set(tried) <= set(again), "trials of other jobs are not used"
    (tmp_path / NAME).write_text('{"of": ')
    assert choose(START, "ways", True, Trials(scores, of, tmp_path)) == resumed
    assert "cannot be read" in capsys.readouterr().out
