"""The learners RLTune is compared with: each learns a toy, repeats itself, survives the disk, and says if it failed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from agent_fakes import workload
from test_agent_toy import CELL as TOY
from test_agent_toy import CLUSTER, LENGTH, N, queue

from rltune.agent.exercise import Exercise
from rltune.agent.learners import Training, ranker_of, train
from rltune.agent.logs import TAGS
from rltune.agent.peers.inspecting import MOST_REJECTIONS, WIDTH, InspectorRanker
from rltune.agent.peers.linear_score import AREA, WEIGHTS, LinearRanker
from rltune.agent.policy_file import load_policy, save_policy
from rltune.cluster.fit import Jobs, compile_jobs, fit
from rltune.cluster.layout import Layout, build_layout
from rltune.config import Cell, LookaheadConfig, Preset, SimulationConfig
from rltune.config.run import EvaluationConfig
from rltune.environment.observation import Observer
from rltune.errors import DataError
from rltune.evaluation.evaluate import evaluate
from rltune.simulator.batch import Run, SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table
from rltune.traces.columns import empty_columns
from rltune.traces.split import split_points

CELL = Cell("t", "c", "fifo", "wait", "none", "best_fit", "strict", "rich", "exact", "toy", 3)
PPO = dict(
    trajectories=12,
    sequence_jobs=LENGTH,
    rollouts=4,
    actor_layers=[16],
    actor_lr=1e-2,
    lr_schedule="cosine",
    actor_iterations=15,
    critic_iterations=0,
    target_kl=0.1,
    gae_lambda=1.0,
    validate_every=5,
    validation_windows=4,
)
PRESETS = {
    "linear": Preset(
        agent="linear", epochs=15, trajectories=8, sequence_jobs=LENGTH, validate_every=5, validation_windows=4
    ),
    "rlscheduler": Preset(agent="rlscheduler", epochs=20, **PPO),
    "schedinspector": Preset(
        agent="schedinspector", epochs=20, base_policy_bias=1.0, credit_horizon_s=1500.0, **PPO | {"rollouts": 8}
    ),
}
SHORT = {name: preset.model_copy(update={"epochs": 2, "validate_every": 1}) for name, preset in PRESETS.items()}


def trained(agent: str, case: tuple[Jobs, Layout], presets: dict[str, Preset] = PRESETS, **cell: object) -> Training:
    return train(Exercise(CELL.but(**cell), presets[agent], LookaheadConfig(), *case, split_points(N)), 1)


def gate() -> tuple[Jobs, Layout]:
    """Pairs of jobs on one GPU: a long one, and a second later a short one; then nothing until both are over.

    The shortest goes first, but the long one is alone when it comes: only who holds it back for a second wins.
    """
    long = np.arange(N) % 2 == 0
    pair = np.arange(N) // 2
    frame = empty_columns(N).assign(
        job_id=[f"j{i:03d}" for i in range(N)],
        gpus=np.ones(N, np.int64),
        run_s=np.where(long, 1000.0, 10.0),
        submit_s=pair * 2000.0 + ~long,
    )
    fitted, _ = fit(frame, CLUSTER)
    return compile_jobs(fitted, fitted["run_s"].to_numpy(), CLUSTER), build_layout(CLUSTER)


def mean_wait_s(case: tuple[Jobs, Layout], policy: str, ranker=None) -> float:
    jobs, layout = case
    first = np.arange(N - 60, N - LENGTH + 1, LENGTH)
    state = simulate(jobs, layout, first, np.full(len(first), LENGTH), SchedulerConfig(policy), ranker)
    return sequence_table(jobs, state, layout.gpus)["wait_s"].mean()


@pytest.mark.parametrize(("agent", "most"), [("linear", 1.0), ("rlscheduler", 1.02)])
def test_the_best_order_is_learned(agent: str, most: float) -> None:
    """Shortest first, from a base policy that knows nothing; the linear score starts there and has nothing to learn."""
    case = queue()
    result = trained(agent, case, seed=TOY.seed)
    assert mean_wait_s(case, "fifo") > 1.5 * mean_wait_s(case, "sjf")
    if agent != "linear":
        still = {agent: PRESETS[agent].model_copy(update={"epochs": 1, "actor_lr": 1e-12})}
        untrained = trained(agent, case, still, seed=TOY.seed).policy
        assert mean_wait_s(case, "fifo", ranker_of(untrained, *case)) > 1.5 * mean_wait_s(case, "sjf")
    assert mean_wait_s(case, "fifo", ranker_of(result.policy, *case)) <= most * mean_wait_s(case, "sjf") + 1e-9
    assert result.policy.facts["learned"] == (agent != "linear")
    assert set(TAGS) <= set(result.history) and list(result.history["epoch"]) == list(range(1, len(result.history) + 1))


def test_a_linear_score_is_searched_where_the_area_is_a_bad_order() -> None:
    """Jobs under light load whose estimates are upside down: the longest are said to be the shortest."""
    jobs, layout = queue()
    upside_down = jobs._replace(row=jobs.row.copy())
    upside_down.row["estimate_s"] = 1e6 / jobs.run_s
    case = upside_down, layout
    result = trained("linear", case)
    assert result.policy.facts["learned"] and result.policy.facts["best_epoch"] > 0
    assert mean_wait_s(case, "fifo", ranker_of(result.policy, *case)) < 0.6 * mean_wait_s(case, "sjf")


def test_the_inspector_learns_to_hold_a_long_job_back_for_a_short_one() -> None:
    case = gate()
    result = trained("schedinspector", case, policy="sjf")
    assert mean_wait_s(case, "sjf") == pytest.approx(999 / 2)
    assert mean_wait_s(case, "sjf", ranker_of(result.policy, *case)) == pytest.approx(11 / 2)
    assert result.policy.facts["learned"] and result.policy.facts["best_epoch"] > 0


def test_area_weights_order_as_saf() -> None:
    jobs, layout = workload(300, load=4.0)
    first, n = np.array([0, 100]), np.array([200, 200])
    for backfill in ("none", "easy"):
        saf = simulate(jobs, layout, first, n, SchedulerConfig("saf", backfill))
        linear = simulate(
            jobs, layout, first, n, SchedulerConfig("fifo", backfill), LinearRanker(jobs, layout, AREA[None])
        )
        np.testing.assert_array_equal(saf.start, linear.start)


def test_candidates_take_turns_and_each_goes_by_its_own_weights() -> None:
    jobs, layout = workload(300, load=4.0)
    weights = np.stack([AREA, np.random.default_rng(0).normal(size=WEIGHTS)])
    first = np.array([0, 0, 80, 80])
    both = simulate(jobs, layout, first, np.full(4, 200), SchedulerConfig("saf"), LinearRanker(jobs, layout, weights))
    for k, mine in enumerate(weights):
        one = simulate(
            jobs, layout, first[k::2], [200, 200], SchedulerConfig("saf"), LinearRanker(jobs, layout, mine[None])
        )
        np.testing.assert_array_equal(both.start[k::2], one.start)


def test_a_linear_score_is_what_it_says() -> None:
    """Against the formula in plain Python, at every question of a run."""
    jobs, layout = workload(120, load=4.0)
    by = np.random.default_rng(1).normal(size=WEIGHTS)
    run = Run(jobs, layout, np.array([0]), np.array([120]), SchedulerConfig("fifo"), visible=256, track=True)
    ranker, seen = LinearRanker(jobs, layout, by[None]), Observer(jobs, layout, "unsampled")
    questions = 0
    while len(asking := run.advance()):
        ranker(run.state, asking)
        fits = seen(run.state, asking).rows[:, 5]
        inside = run.state.queued_jobs(0)
        q = np.log(len(inside)) / 6
        f = run.state.free.row["gpus"][0].sum() / layout.gpus
        wait_s = run.state.now[0] - jobs.submit_s[inside]
        x = np.log([jobs.estimate_s[inside], jobs.gpus[inside], 1 + wait_s]) / 10
        x = np.vstack([x, 0.1 * fits])
        expected = (by[:4] + by[4:8] * q + by[8:] * f) @ x
        np.testing.assert_allclose(run.state.score[0, : len(inside)], expected, rtol=1e-6, atol=1e-7)
        questions += 1
    assert questions > 50


def never(rows: np.ndarray) -> np.ndarray:
    return np.where(rows[:, -1] > 0, -1e3, 0.0)


def always(rows: np.ndarray) -> np.ndarray:
    return -never(rows)


@pytest.mark.parametrize("policy", ["saf", "wfp3"])
@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_who_accepts_everything_is_the_base_policy(policy: str, backfill: str) -> None:
    jobs, layout = workload(300, load=4.0)
    first, n, scheduler = np.array([0, 150]), np.array([150, 150]), SchedulerConfig(policy, backfill)
    base = simulate(jobs, layout, first, n, scheduler)
    mine = simulate(jobs, layout, first, n, scheduler, InspectorRanker(never, Observer(jobs, layout, "rich")))
    np.testing.assert_array_equal(base.start, mine.start)


def test_who_rejects_everything_starves_nobody() -> None:
    """Each job is rejected MOST_REJECTIONS times and then goes as the base policy says; all are run."""
    jobs, layout = workload(400, load=4.0)
    ranker = InspectorRanker(always, Observer(jobs, layout, "rich"))
    state = simulate(jobs, layout, [0], [400], SchedulerConfig("fifo"), ranker)
    base = simulate(jobs, layout, [0], [400], SchedulerConfig("fifo"))
    assert not np.isnan(state.start[0]).any()
    assert ranker._rejected.max() == MOST_REJECTIONS
    assert state.start[0].mean() > base.start[0].mean()


def test_what_an_inspector_remembers_is_what_it_did() -> None:
    """Two rows a decision, the first of zeros; the probabilities are those of the logits and the reluctance."""
    jobs, layout = workload(200, load=4.0)
    kernel = np.random.default_rng(0).normal(size=WIDTH)
    ranker = InspectorRanker(lambda rows: rows @ kernel, Observer(jobs, layout, "rich"), np.random.default_rng(1), 0.5)
    simulate(jobs, layout, [0, 50], [100, 100], SchedulerConfig("saf"), ranker)
    batch = ranker.batch(np.array([0.0, 1.0]))
    assert len(batch.length) == ranker.asked > 150 and (batch.length == 2).all()
    assert batch.action.sum() == ranker.rejections > 0
    assert (np.diff(batch.sequence) >= 0).all() and set(batch.sequence) == {0, 1}
    rows = batch.obs.reshape(-1, 2, WIDTH)
    assert not rows[:, 0].any() and (rows[:, 1, -1] == 1).all()
    reject = 1 / (1 + np.exp(-(rows[:, 1] @ kernel - 0.5)))
    chosen = np.where(batch.action == 1, reject, 1 - reject)
    np.testing.assert_allclose(np.exp(batch.log_prob), chosen, rtol=1e-4)
    np.testing.assert_array_equal(batch.prior.reshape(-1, 2), np.tile(np.float32([0, -0.5]), (len(rows), 1)))


@pytest.mark.parametrize("agent", list(PRESETS))
def test_one_seed_gives_the_same_bytes_whatever_the_test_part_holds(agent: str, tmp_path: Path) -> None:
    jobs, layout = workload(N, seed=5)
    poisoned = jobs._replace(row=jobs.row.copy())
    rows = slice(split_points(N).test[0], None)
    poisoned.row["run_s"][rows], poisoned.row["estimate_s"][rows] = 1e7, 1.0
    for name, given, seed in (("a", jobs, 3), ("b", jobs, 3), ("poisoned", poisoned, 3), ("other", jobs, 4)):
        save_policy(tmp_path / f"{name}.npz", trained(agent, (given, layout), SHORT, seed=seed, policy="saf").policy)
    a, b, c, other = ((tmp_path / f"{name}.npz").read_bytes() for name in ("a", "b", "poisoned", "other"))
    assert a == b == c != other


@pytest.mark.parametrize("agent", list(PRESETS))
def test_a_policy_survives_the_disk_and_a_wrong_one_is_refused(agent: str, tmp_path: Path) -> None:
    jobs, layout = case = workload(N, seed=5)
    policy = trained(agent, case, SHORT).policy
    save_policy(tmp_path / "policy.npz", policy)
    back = load_policy(tmp_path / "policy.npz")
    assert back.agent == agent
    starts = [
        simulate(jobs, layout, [540], [60], SchedulerConfig("fifo", "easy"), ranker_of(p, jobs, layout)).start
        for p in (policy, back)
    ]
    np.testing.assert_array_equal(*starts)
    for other in set(PRESETS) - {agent}:
        facts = {key: value for key, value in policy.facts.items() if key != "shapes"} | {"agent": other}
        save_policy(tmp_path / "wrong.npz", type(policy)(policy.weights, facts))
        with pytest.raises(DataError, match=f"an actor of {len(policy.weights[0])} columns, expected"):
            load_policy(tmp_path / "wrong.npz")


@pytest.mark.parametrize("agent", list(PRESETS))
def test_where_there_is_nothing_to_learn_a_learner_says_so(agent: str) -> None:
    case = workload(N, seed=2, load=0.001)
    result = trained(agent, case, SHORT)
    assert result.policy.facts["learned"] is False and result.policy.facts["agent"] == agent


@pytest.mark.parametrize(
    ("agent", "base_policy_bias", "reason"),
    [
        ("rlscheduler", 0.2, "agent rlscheduler: base_policy_bias: found 0.2, expected 0"),
        ("schedinspector", 0.0, "agent schedinspector: base_policy_bias: found 0, expected more"),
    ],
)
def test_presets_that_make_no_sense_are_refused(agent: str, base_policy_bias: float, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Preset(**SHORT[agent].model_dump() | {"base_policy_bias": base_policy_bias})


@pytest.mark.parametrize("agent", list(PRESETS))
def test_a_learner_is_judged_as_rltune_is(agent: str) -> None:
    """By the same function, on the same windows of the test part."""
    jobs, layout = case = workload(N, seed=5)
    policy = trained(agent, case, SHORT, backfill="easy").policy
    ids, config = np.arange(N).astype(str), EvaluationConfig(sequence_jobs=[20, 30])
    cell = CELL.but(backfill="easy")
    windows, table = evaluate(
        cell, policy, jobs, ids, layout, split_points(N), config, LookaheadConfig(), SimulationConfig()
    )
    mine = windows[(windows["role"] == "rltune") & (windows["sequence_jobs"] == 30)]
    first = mine["first_job"].to_numpy()
    state = simulate(
        jobs, layout, first, np.full(2, 30), SchedulerConfig("fifo", "easy"), ranker_of(policy, jobs, layout)
    )
    assert mine["wait_s"].tolist() == pytest.approx(sequence_table(jobs, state, layout.gpus)["wait_s"].tolist())
    assert set(table["role"]) == {"rltune", "base"}


class Killed(BaseException):
    """What a signal does."""


@pytest.mark.parametrize("agent", list(PRESETS))
def test_a_training_that_was_killed_ends_with_the_same_policy(agent: str, tmp_path: Path) -> None:
    case = workload(N, seed=5)
    preset = SHORT[agent].model_copy(update={"epochs": 3})

    def learned(stop: int | None = None):
        def progress(row: dict) -> None:
            if row["epoch"] == stop:
                raise Killed

        exercise = Exercise(CELL, preset, LookaheadConfig(), *case, split_points(N))
        return train(exercise, 1, progress, tmp_path).policy

    with pytest.raises(Killed):
        learned(2)
    after = learned()
    whole = train(Exercise(CELL, preset, LookaheadConfig(), *case, split_points(N)), 1).policy
    assert after.facts == whole.facts
    assert all(np.array_equal(a, b) for a, b in zip(after.weights, whole.weights, strict=True))
