"""The learners RLTune is compared with: each learns a toy. And as RLTune: it repeats itself, survives the disk, never sees
the test part, and reports whether it failed."""

from dataclasses import replace

import numpy as np
import pytest
from agent_fakes import (
    TOY_CELL,
    TOY_JOBS,
    TOY_LENGTH,
    TOY_PRESET,
    TOY_TEST,
    mean_wait_s,
    poisoned,
    task_of,
    toy,
    toy_queue,
    trained,
    workload,
)
from workload_cases import cluster, group, simple, with_rows

from rltune.agent.peers.linear_score import AREA, WEIGHTS, LinearRanker
from rltune.agent.peers.schedinspector import MAX_REJECTIONS, WIDTH, InspectorRanker
from rltune.agent.policy_file import load_policy, save_policy
from rltune.agent.progress import TAGS
from rltune.agent.rollout import ranker_of
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import Cell, Preset
from rltune.environment.observation import Observer
from rltune.simulator.batch import SchedulerConfig, Simulation, simulate

CELL = Cell("t", "c", "fifo", "wait", "none", "best_fit", "strict", "rich", "exact", "toy", 3)
FIELDS = {
    "linear": {"epochs": 15, "trajectories": 8},
    "rlscheduler": {"rollouts": 4},
    "schedinspector": {"rollouts": 8, "base_policy_bias": 1.0, "credit_horizon_s": 1500.0},
}
PRESETS = {name: TOY_PRESET.model_copy(update={"agent": name, **fields}) for name, fields in FIELDS.items()}
OURS = TOY_PRESET.model_copy(update={"contended": 0.5, "base_policy_bias": 0.5})
SHORT = {
    name: preset.model_copy(update={"epochs": 2, "validate_every": 1})
    for name, preset in {"rltune": OURS, **PRESETS}.items()
}


def taught(agent: str, case: tuple[Jobs, Layout], presets: dict[str, Preset] = PRESETS, **cell: object):
    """(The policy, the history) of that agent."""
    return trained(task_of(CELL.but(**cell), presets[agent], case))


def gate() -> tuple[Jobs, Layout]:
    """Pairs of jobs on one GPU: a long one, and a second later a short one; then nothing until both are over.

    The shortest goes first, but the long one is alone when it comes: only who holds it back for a second wins.
    """
    long, pair = np.arange(TOY_JOBS) % 2 == 0, np.arange(TOY_JOBS) // 2
    return toy(np.where(long, 1000.0, 10.0), pair * 2000.0 + ~long)


def wait_s(case: tuple[Jobs, Layout], policy: str, ranker=None) -> float:
    return mean_wait_s(case, TOY_TEST, TOY_LENGTH, SchedulerConfig(policy), ranker)


@pytest.mark.parametrize(("agent", "most"), [("linear", 1.0), ("rlscheduler", 1.02)])
def test_the_best_order_is_learned(agent, most):
    """Shortest first, from a base policy that knows nothing; the linear score starts there and has nothing to learn."""
    case = toy_queue()
    policy, history = taught(agent, case, seed=TOY_CELL.seed)
    assert wait_s(case, "fifo") > 1.5 * wait_s(case, "sjf")
    assert wait_s(case, "fifo", ranker_of(policy, *case)) <= most * wait_s(case, "sjf") + 1e-9
    assert policy.facts["learned"] == (agent != "linear")
    assert set(TAGS) <= set(history) and list(history["epoch"]) == list(range(1, len(history) + 1))


def test_a_linear_score_is_searched_where_the_area_is_a_bad_order():
    """Jobs under light load whose estimates are upside down: the longest are said to be the shortest."""
    jobs, layout = toy_queue()
    case = with_rows(jobs, estimate_s=1e6 / jobs.run_s), layout
    policy, _ = taught("linear", case)
    assert policy.facts["learned"] and policy.facts["best_epoch"] > 0
    assert wait_s(case, "fifo", ranker_of(policy, *case)) < 0.6 * wait_s(case, "sjf")


def test_the_inspector_learns_to_hold_a_long_job_back_for_a_short_one():
    case = gate()
    policy, _ = taught("schedinspector", case, policy="sjf")
    assert wait_s(case, "sjf") == pytest.approx(999 / 2)
    assert wait_s(case, "sjf", ranker_of(policy, *case)) == pytest.approx(11 / 2)
    facts = {name: fact for name, fact in policy.facts.items() if name != "base_policy_bias"}  # a file may lack it
    assert ranker_of(replace(policy, facts=facts), *case).base_policy_bias == 0.0
    assert policy.facts["learned"] and policy.facts["best_epoch"] > 0


def test_candidates_take_turns_and_each_goes_by_its_own_weights():
    jobs, layout = workload(300, load=4.0)
    weights = np.stack([AREA, np.random.default_rng(0).normal(size=WEIGHTS)])
    first = np.array([0, 0, 80, 80])
    both = simulate(jobs, layout, first, np.full(4, 200), SchedulerConfig("saf"), LinearRanker(jobs, layout, weights))
    for k, row in enumerate(weights):
        one = simulate(
            jobs, layout, first[k::2], [200, 200], SchedulerConfig("saf"), LinearRanker(jobs, layout, row[None])
        )
        np.testing.assert_array_equal(both.start[k::2], one.start)


def test_a_linear_score_is_what_it_says():
    """Against the formula in plain Python, at every question of a run."""
    jobs, layout = workload(120, load=4.0)
    by = np.random.default_rng(1).normal(size=WEIGHTS)
    run = Simulation(jobs, layout, np.array([0]), np.array([120]), SchedulerConfig("fifo"), visible=256)
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
def test_who_accepts_everything_is_the_base_policy(policy, backfill):
    jobs, layout = workload(300, load=4.0)
    first, n, scheduler = np.array([0, 150]), np.array([150, 150]), SchedulerConfig(policy, backfill)
    base = simulate(jobs, layout, first, n, scheduler)
    inspected = simulate(jobs, layout, first, n, scheduler, InspectorRanker(never, Observer(jobs, layout, "rich")))
    np.testing.assert_array_equal(base.start, inspected.start)


def test_who_rejects_everything_starves_nobody():
    """Each job is rejected MAX_REJECTIONS times and then goes as the base policy says; all are run."""
    jobs, layout = workload(400, load=4.0)
    ranker = InspectorRanker(always, Observer(jobs, layout, "rich"))
    state = simulate(jobs, layout, [0], [400], SchedulerConfig("fifo"), ranker)
    base = simulate(jobs, layout, [0], [400], SchedulerConfig("fifo"))
    assert not np.isnan(state.start[0]).any()
    assert ranker._rejected.max() == MAX_REJECTIONS
    assert state.start[0].mean() > base.start[0].mean()


@pytest.mark.parametrize("rng", [None, np.random.default_rng(1)], ids=["greedy", "training"])
def test_an_overdue_job_is_not_rejected(rng):
    """Rejected by all means, jobs start at the first event at which they are overdue."""
    jobs, layout = simple(cluster([group(1, 4)]), (0, 100, 4), (1, 10, 4), (4000, 5, 1), (8000, 5, 1), (9000, 5, 1))
    ranker = InspectorRanker(lambda rows: 50.0 * rows[:, -1], Observer(jobs, layout, "rich"), rng)
    rules = SchedulerConfig("fifo", max_wait_h={64: 0.01})
    assert simulate(jobs, layout, [0], [5], rules, ranker).start[0, :2].tolist() == [4000, 4100]


def test_what_an_inspector_remembers_is_what_it_did():
    """Two rows per decision, the first of zeros; the probabilities are those of the logits and the reluctance."""
    jobs, layout = workload(200, load=4.0)
    kernel = np.random.default_rng(0).normal(size=WIDTH)
    ranker = InspectorRanker(lambda rows: rows @ kernel, Observer(jobs, layout, "rich"), np.random.default_rng(1), 0.5)
    simulate(jobs, layout, [0, 50], [100, 100], SchedulerConfig("saf"), ranker)
    batch = ranker.memory.batch(np.array([0.0, 1.0]))
    assert len(batch.length) > 150 and (batch.length == 2).all() and batch.action.any()
    assert (np.diff(batch.sequence) >= 0).all() and set(batch.sequence) == {0, 1}
    rows = batch.obs.reshape(-1, 2, WIDTH)
    assert not rows[:, 0].any() and (rows[:, 1, -1] == 1).all()
    reject = 1 / (1 + np.exp(-(rows[:, 1] @ kernel - 0.5)))
    chosen = np.where(batch.action == 1, reject, 1 - reject)
    np.testing.assert_allclose(np.exp(batch.log_prob), chosen, rtol=1e-4)
    np.testing.assert_array_equal(batch.prior.reshape(-1, 2), np.tile(np.float32([0, -0.5]), (len(rows), 1)))


@pytest.mark.parametrize("agent", list(SHORT))
def test_one_seed_gives_the_same_bytes_whatever_the_test_part_holds_and_two_seeds_do_not(agent, tmp_path):
    case = workload(TOY_JOBS, seed=5)
    cases = {"a": (case, 3), "b": (case, 3), "poisoned": ((poisoned(case[0]), case[1]), 3), "seed": (case, 4)}
    for name, (given, seed) in cases.items():
        policy, history = taught(agent, given, SHORT, seed=seed, policy="wfp3", backfill="easy")
        save_policy(tmp_path / f"{name}.npz", policy)
        history.drop(columns=[c for c in history if "second" in c]).to_csv(tmp_path / f"{name}.csv")
    for kind in ("npz", "csv"):
        a, b, c, d = ((tmp_path / f"{name}.{kind}").read_bytes() for name in cases)
        assert a == b == c != d
    assert load_policy(tmp_path / "a.npz").agent == agent


@pytest.mark.parametrize("agent", list(SHORT))
def test_where_there_is_nothing_to_learn_a_learner_says_so(agent):
    policy, history = taught(agent, workload(TOY_JOBS, seed=2, load=0.001), SHORT)
    assert policy.facts["learned"] is False and policy.facts["agent"] == agent
    if agent == "rltune":
        assert not history["choices"].any()
        assert history["kl"].isna().all() and (history["actor_iterations"] == 0).all()
