"""What an agent is trained on: where sequences start, which estimates they use, and the scheduler that is chosen."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from agent_fakes import SMALLEST, task_of, trained, whole_workload, workload
from workload_cases import with_rows

from rltune.agent.peers.linear_score import AREA, LinearRanker
from rltune.agent.rollout import RandomRanker, ranker_of
from rltune.agent.scheduler_choice import (
    CHOSEN,
    POLICIES,
    RESERVATIONS,
    TRIALS,
    AgentScheduler,
    Trials,
    choose,
    difference,
    type_plan,
)
from rltune.agent.task import TrainingTask
from rltune.cluster.types import PRICES
from rltune.config import Cell, Preset
from rltune.environment.reward import rewards
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table
from rltune.traces.split import split_points

CASE = JOBS, LAYOUT = workload(1500, seed=6, load=2)
CELL = Cell("t", "c", "fifo", "wait", "none", "best_fit", "strict", "unsampled", "exact", "quick", 1)
SHORT = Preset(sequence_jobs=32, trajectories=200, validation_windows=4)
SPLIT = split_points(1500, 0.8, 0.2)
FIRST = np.arange(0, 600, 32)


def task(cell: Cell = CELL, preset: Preset = SHORT, case=CASE, calibrated=None):
    return task_of(cell, preset, case, split_points(len(case[0].row), 0.8, 0.2), calibrated)


def test_sequences_lie_in_the_training_part_and_each_draw_is_another():
    training = task()
    one, two = training.draw(), training.draw()
    assert list(one) != list(two)
    for same in (CELL, CELL.but(features="raw", placement="lookahead")):
        assert list(task(same).draw()) == list(one), "other features and placements train on the same"
    assert one.min() >= 0 and one.max() + 32 <= training.split.train[1] and len(one) == 200
    windows = training.validation
    assert (windows >= training.split.validation[0]).all() and (windows + 32 <= training.split.validation[1]).all()


def test_a_share_of_them_is_contended():
    even, many = task(), task(preset=SHORT.model_copy(update={"contended": 0.8}))
    waits = [e.run(e.draw())["wait_s"].to_numpy() for e in (even, many)]
    assert len(waits[1]) == 200 and waits[1].mean() > 1.2 * waits[0].mean()
    calm = np.median(waits[0])
    assert 0.7 < (waits[1] >= calm).mean() < 0.97, "0.8, and half of the others, but for the neighbourhood"


def test_the_agent_uses_its_estimates_and_the_base_policy_those_that_are_given():
    calibrated = with_rows(JOBS, estimate_s=JOBS.run_s[::-1])
    cell = CELL.but(policy="sjf", backfill="easy")
    plain, other = task(cell), task(cell, calibrated=calibrated)
    other.agent_jobs = calibrated  # as if it had chosen to
    assert plain.run(FIRST)["wait_s"].tolist() == other.run(FIRST)["wait_s"].tolist()
    assert (plain.base_score, plain.random_score) == (other.base_score, other.random_score)
    runs = [t.run(FIRST, ranker_of(SMALLEST, t.agent_jobs, LAYOUT))["wait_s"].to_numpy() for t in (plain, other)]
    assert runs[0].mean() < 0.95 * runs[1].mean(), "good estimates shorten the waits"


def test_training_goes_by_the_estimates_of_the_workload():
    """Sequences, validation and the choice of a scheduler."""
    load = whole_workload(1500)
    cell = CELL.but(policy="sjf", backfill="easy")
    given, exact = (TrainingTask(cell, SHORT, work) for work in (load, load.with_exact_estimates()))
    assert given.agent_jobs is given.jobs is load.jobs and exact.agent_jobs is exact.jobs
    assert exact.run(FIRST)["wait_s"].mean() < 0.95 * given.run(FIRST)["wait_s"].mean()
    assert exact.base_score != given.base_score and exact.identity != given.identity


def test_a_task_is_identified_by_its_numbers_but_for_those_of_the_test_part_and_by_its_code(monkeypatch):
    copy = JOBS._replace(row=JOBS.row.copy())
    between = np.ones(copy.row.dtype.itemsize, bool)
    for field, offset in copy.row.dtype.fields.values():
        between[offset : offset + field.itemsize] = False
    assert between.any()
    copy.row.view(np.uint8).reshape(len(copy.row), -1)[:, between] = 7  # whatever memory holds between the fields
    training = task()
    assert task(case=(copy, LAYOUT), calibrated=copy).identity == training.identity
    for name, last in {"run_s": SPLIT.validation[1] - 1, "gpus": 0}.items():
        copy.row[name][last] += 1
        for changed in (task(case=(copy, LAYOUT)), task(calibrated=copy)):
            assert changed.identity["jobs"] != training.identity["jobs"]
        copy.row[name][last] = JOBS.row[name][last]
    pools = LAYOUT.nodes.pool.copy()
    pools["priority"][0] /= 2
    other = replace(LAYOUT, nodes=LAYOUT.nodes._replace(pool=pools))
    assert task(case=(copy, other)).identity["jobs"] != training.identity["jobs"], "Slurm multifactor goes by it"
    copy.row["run_s"][SPLIT.test[0] :] += 1
    assert task(case=(copy, LAYOUT)).identity == training.identity
    monkeypatch.setattr("rltune.agent.task.sources.digest", lambda *starts: "0" * 12)
    assert task().identity != training.identity


def test_a_mix_is_the_weighted_sum_and_its_base_policy_scores_nothing():
    mix = task(CELL.but(metric="0.7*wait+0.3*utilisation"))
    first = np.repeat(FIRST[:10], 2)  # several rollouts of a sequence
    base, agent = mix.run(first), mix.run(first, ranker_of(SMALLEST, *CASE))
    parts = 0.7 * rewards("wait", base, agent) + 0.3 * rewards("utilisation", base, agent)
    assert mix.reward(base, agent) == pytest.approx(parts) and agent["score"].to_numpy() == pytest.approx(-parts)
    assert mix.base_score == 0 and not base["score"].any() and mix.random_score != 0


START = AgentScheduler(SchedulerConfig("fifo", "easy"))
COST = {
    "saf": -30.0,
    "sjf": -10.0,
    "conservative": -20.0,
    "isolating_best_fit": -5.0,
    "any": -7.0,
    "soonest_end": -8.0,
    True: -4.0,
}
RESERVED = workload(1200, seed=6)
"""Jobs for which conservative backfilling is the better choice."""
CHOOSING = CELL.but(backfill="easy", features="rich", preset="tuned")
TUNED = Preset(
    epochs=2,
    trajectories=2,
    rollouts=2,
    sequence_jobs=32,
    base_policy_bias=1.0,
    iterations=2,
    validate_every=1,
    validation_windows=4,
    margin=1.0,
    tunes="reservations",
    credit_horizon_s=3600.0,
)


@pytest.fixture(autouse=True)
def _few_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rltune.agent.task.MAX_WINDOWS", 20)
    # these trainings draw too few sequences to choose a scheduler on as many windows
    monkeypatch.setattr(Preset, "sequences", 1000)


def no_price(scheduler: SchedulerConfig) -> bool:
    return False


def cheapest(noise: float = 0.0) -> Callable[[AgentScheduler], np.ndarray]:
    """Scores that are a sum over the fields, so that the best is known; with other noise for every candidate."""

    def scored(candidate: AgentScheduler) -> np.ndarray:
        values = [v for k, v in candidate.facts().items() if k != "split_worth"]
        total = 100.0 + sum(COST.get(v, 0.0) for v in values)
        return total + noise * np.random.default_rng(len(repr(candidate))).normal(size=50)

    return scored


@pytest.mark.parametrize("has_calibrated", [False, True])
@pytest.mark.parametrize(
    ("tunes", "expected"),
    [
        ("reservations", dict(policy="saf", backfill="conservative")),
        (
            "scheduler",
            dict(policy="saf", backfill="conservative", placement="isolating_best_fit", locality="soonest_end"),
        ),
    ],
)
def test_the_best_is_found_where_every_choice_counts_by_itself(tunes, expected, has_calibrated):
    best, rows = choose(START, tunes, has_calibrated, no_price, cheapest())
    assert best == replace(START.but(**expected), uses_calibrated=has_calibrated)
    table = pd.DataFrame(rows)
    assert table.loc[0, "score"] == 100 and table["kept"].sum() >= 3
    assert not table.duplicated([*CHOSEN, "uses_calibrated"]).any(), "nothing is tried twice"


@pytest.mark.parametrize(("has_speeds", "backfill"), [(True, "easy"), (True, "none"), (False, "easy")])
def test_a_price_is_tried_where_types_differ_in_speed_and_every_job_is_planned(has_speeds, backfill, monkeypatch):
    monkeypatch.setitem(COST, 0.1, -6.0)
    monkeypatch.setitem(COST, "joint", 1.0)

    def has_price(scheduler: SchedulerConfig) -> bool:
        return has_speeds and scheduler.backfill == "conservative"

    best, rows = choose(START.but(backfill=backfill), "reservations", False, has_price, cheapest())
    priced = [row for row in rows if row["gpu_price"] > 0]
    assert {row["backfill"] for row in priced} == ({"conservative"} if has_speeds and backfill == "easy" else set())
    tried = {(row["types"], row["gpu_price"]) for row in priced}
    assert tried == ({*product(("auto", "joint"), PRICES)} if priced else set())
    assert len(priced) in (0, 2 * len(PRICES) + len(POLICIES) - 1), "and every other order at the price chosen"
    assert best.config.gpu_price == (0.1 if priced else 0.0)
    if priced:  # whoever takes the plan over takes the one that was chosen
        assert type_plan({"scheduler": best.facts()}) == {"types": "least", "gpu_price": 0.1}


@pytest.mark.parametrize("tunes", ["reservations", "scheduler"])
def test_planning_together_is_tried_where_planning_one_by_one_does_not_pay(tunes, monkeypatch):
    monkeypatch.setitem(COST, "conservative", 5.0)
    monkeypatch.setitem(COST, "joint", -9.0)
    monkeypatch.setitem(COST, 0.1, -6.0)
    best, _ = choose(START, tunes, True, lambda scheduler: scheduler.backfill == "conservative", cheapest())
    assert (best.config.backfill, best.config.types, best.config.gpu_price) == ("conservative", "joint", 0.1)


@pytest.mark.parametrize("has_speeds", [False, True])
def test_the_order_is_chosen_again_where_jobs_may_wait_for_a_type(has_speeds):
    """The best order differs under conservative backfilling; where types do not, that is too slow to try."""

    def scored(candidate: AgentScheduler) -> np.ndarray:
        best = "saf" if candidate.config.backfill == "conservative" else "wfp3"
        return cheapest()(candidate.but(policy="sjf" if candidate.config.policy == best else "fifo"))

    best, rows = choose(
        START, "reservations", False, lambda rule: has_speeds and rule.backfill == "conservative", scored
    )
    assert (best.config.policy, best.config.backfill) == ("saf" if has_speeds else "wfp3", "conservative")
    tried = {row["policy"] for row in rows if row["backfill"] == "conservative"}
    assert tried == ({*POLICIES} if has_speeds else {"wfp3"})


def test_from_qssf_the_same_order_is_not_tried_under_another_name():
    _, rows = choose(START.but(policy="qssf"), "scheduler", True, no_price, lambda candidate: np.full(20, 5.0))
    tried = {row["policy"] for row in rows}
    assert "qssf" in tried and "saf" not in tried and len(tried) == len(POLICIES)


def test_what_could_be_chance_is_not_taken():
    assert choose(START, "scheduler", True, no_price, lambda candidate: np.full(20, 5.0))[0] == START
    alternating = np.tile([0.0, 10.0], 10)

    def scored(candidate: AgentScheduler) -> np.ndarray:
        return alternating if candidate == START else alternating[::-1] - 0.1

    gain, error = difference(scored(START), scored(START.but(policy="saf")))
    assert 0 < gain < error and choose(START, "scheduler", True, no_price, scored)[0] == START


@pytest.mark.parametrize("backfill", list(RESERVATIONS))
def test_never_fewer_reservations_than_the_cell_has(backfill):
    order = ["none", "greedy", "easy", "conservative"]
    _, rows = choose(START.but(backfill=backfill), "scheduler", True, no_price, cheapest())
    expected = order[order.index(backfill) :] if backfill != "none" else ["none"]
    assert {row["backfill"] for row in rows} == set(expected)


@pytest.mark.parametrize(("sequences", "windows"), [(1, 2), (5, 5), (1000, 20)])
def test_schedulers_are_compared_on_as_many_windows_as_training_draws_sequences(sequences, windows, monkeypatch):
    seen = []

    def chosen(start: AgentScheduler, tunes: str, has_calibrated: bool, has_price: Callable, scores: Callable) -> tuple:
        seen.append(len(scores(start)))
        return start, []

    monkeypatch.setattr(Preset, "sequences", sequences)
    monkeypatch.setattr("rltune.agent.task.choose", chosen)
    task(CHOOSING, TUNED, (JOBS, LAYOUT), JOBS)
    assert seen == [windows]


def test_it_is_chosen_on_training_rows_alone_and_the_base_policy_keeps_the_cells_rules():
    poisoned = JOBS._replace(row=JOBS.row.copy())
    poisoned.row["run_s"][SPLIT.train[1] + 32 :] *= 50
    poisoned.row["estimate_s"][SPLIT.train[1] + 32 :] = 1.0
    found = [task(CHOOSING, TUNED, (jobs, LAYOUT), jobs) for jobs in (JOBS, poisoned)]
    assert found[0].agent_scheduler == found[1].agent_scheduler and found[0].trials == found[1].trials
    assert len(found[0].trials) >= len(POLICIES) and found[0].agent_scheduler.config.policy != "fifo"
    plain = task(CHOOSING, TUNED.model_copy(update={"tunes": "nothing"}))
    assert found[0].run(FIRST)["wait_s"].tolist() == plain.run(FIRST)["wait_s"].tolist()
    assert found[0].agent_scheduler.config != found[0].scheduler == plain.agent_scheduler.config == plain.scheduler


@pytest.mark.parametrize(
    ("cell", "tunes", "rollout", "chosen"),
    [
        ("easy", "reservations", "easy", "conservative"),
        ("easy", "nothing", "easy", "easy"),
        ("greedy", "reservations", "easy", "conservative"),
        ("conservative", "reservations", "conservative", "conservative"),
    ],
)
def test_only_reservations_that_were_chosen_are_left_out_of_rollouts(cell, tunes, rollout, chosen):
    training = task(CHOOSING.but(backfill=cell), TUNED.model_copy(update={"tunes": tunes}), RESERVED)
    scheduler = training.agent_scheduler.config
    assert scheduler.backfill == chosen and training.rollout_scheduler == replace(scheduler, backfill=rollout)
    first, ranker = np.arange(0, 320, 32), LinearRanker(*RESERVED, AREA[None])

    def jct_s(backfill: str) -> list[float]:
        state = simulate(*RESERVED, first, np.full(10, 32), replace(scheduler, backfill=backfill), ranker)
        return sequence_table(RESERVED[0], state, RESERVED[1].gpus)["jct_s"].tolist()

    assert training.run(first, ranker, rollout=True)["jct_s"].tolist() == jct_s(rollout)
    assert training.run(first, ranker)["jct_s"].tolist() == jct_s(chosen)
    assert jct_s("easy") != jct_s("conservative")


@pytest.mark.parametrize("agent", ["rltune", "linear"])
def test_an_order_for_chosen_reservations_is_learned_without_and_validated_with_them(agent, monkeypatch):
    training, runs = task(CHOOSING, TUNED.model_copy(update={"agent": agent}), RESERVED), []

    def spying(jobs, layout, first, n, config, ranker=None, placer=None):
        if ranker is not None and not isinstance(ranker, RandomRanker):
            runs.append((bool((first < training.split.train[1]).all()), config.backfill))
        return simulate(jobs, layout, first, n, config, ranker, placer)

    monkeypatch.setattr("rltune.agent.task.simulate", spying)
    policy, _ = trained(training)
    assert set(runs) == {(True, "easy"), (False, "conservative")}, "on the training part, on the validation part"
    assert policy.facts["scheduler"] == training.agent_scheduler.facts()


def test_trials_are_kept_and_an_interrupted_choice_goes_on(tmp_path, capsys):
    scored, tried, again = cheapest(3.0), [], []

    def dying(candidate: AgentScheduler) -> np.ndarray:
        if len(tried) == 5:
            raise KeyboardInterrupt
        tried.append(candidate)
        return scored(candidate)

    def counting(candidate: AgentScheduler) -> np.ndarray:
        again.append(candidate)
        return scored(candidate)

    of = {"cell": "a", "jobs": "x"}
    with pytest.raises(KeyboardInterrupt):
        choose(START, "scheduler", True, no_price, Trials(dying, of, tmp_path))
    resumed = choose(START, "scheduler", True, no_price, Trials(counting, of, tmp_path))
    assert resumed == choose(START, "scheduler", True, no_price, scored)
    assert len(again) > 3 and not set(again) & set(tried), "nothing that was known is tried again"
    assert "5 known from before" in capsys.readouterr().out
    choose(START, "scheduler", True, no_price, Trials(counting, {**of, "jobs": "y"}, tmp_path))
    assert set(tried) <= set(again), "trials of other jobs are not used"
    (tmp_path / TRIALS).write_text('{"of": ')
    assert choose(START, "scheduler", True, no_price, Trials(scored, of, tmp_path)) == resumed
    assert "cannot be read" in capsys.readouterr().out
