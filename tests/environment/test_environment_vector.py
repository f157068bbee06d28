"""Many sequences at once: the same runs as the simulator's, with both kinds of answers, and what is refused."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from agent_fakes import workload
from workload_cases import at_speeds, cluster, compiled, group, random_case

from rltune.config import LookaheadConfig
from rltune.environment.observation import Observation
from rltune.environment.vector import VectorEnvironment
from rltune.placement.lookahead import Lookahead
from rltune.policies import CUSTOM
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table

FEATURES, AREA = "unsampled", 1  # column of the job size: ordering by it is smallest area first
FIRST, N = [0, 100, 150, 40], [150, 60, 100, 2]


def picks(seen: Observation, best: Callable[[np.ndarray], int]) -> list[int]:
    """An action of each asking sequence, by its rows."""
    return [best(seen.rows[a:b]) for a, b in zip(seen.offsets, seen.offsets[1:])]


def smallest(rows: np.ndarray) -> int:
    return int(rows[:, AREA].argmin())


def run(env: VectorEnvironment, answer: Callable[[Observation], Observation], first=FIRST, n=N) -> VectorEnvironment:
    seen = env.reset(first, n)
    while not env.done:
        seen = answer(seen)
    assert seen.rows.shape == (0, 8) and list(seen.offsets) == [0]
    return env


@pytest.mark.parametrize("backfill", ["none", "greedy", "easy", "conservative"])
def test_scores_order_the_whole_queue(backfill):
    jobs, layout = workload(300, seed=1)
    env = VectorEnvironment(jobs, layout, SchedulerConfig("fifo", backfill), FEATURES, check=True)
    run(env, lambda seen: env.step(seen.rows[:, AREA].astype(float)))
    expected = simulate(jobs, layout, FIRST, N, SchedulerConfig("saf", backfill))
    np.testing.assert_array_equal(env.state.start, expected.start)
    pd.testing.assert_frame_equal(env.results(), sequence_table(jobs, expected, layout.gpus))


def test_picks_without_backfill_are_the_order():
    jobs, layout = workload(300, seed=2)
    env = VectorEnvironment(jobs, layout, SchedulerConfig("fifo"), FEATURES)
    run(env, lambda seen: env.pick(picks(seen, smallest)))
    np.testing.assert_array_equal(env.state.start, simulate(jobs, layout, FIRST, N, SchedulerConfig("saf")).start)


@pytest.mark.parametrize("base", ["saf", "f1", "wfp3", "unicep", "multifactor"])
@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_the_first_row_is_the_base_policys_choice(base, backfill):
    """Also where scores change with time and the queue is longer than what is seen."""
    jobs, layout = workload(300, seed=3)
    scheduler = SchedulerConfig(base, backfill)
    for visible in (256, 5):
        env = VectorEnvironment(jobs, layout, scheduler, visible=visible)
        run(env, lambda seen, env=env: env.pick(np.zeros(len(seen.asking), int)))
        np.testing.assert_array_equal(env.state.start, simulate(jobs, layout, FIRST, N, scheduler).start)


def test_behind_a_pick_the_others_follow_in_the_base_policys_order():
    """The pick, 2 GPUs, does not fit next to 3 of 4 in use; of two that do, the base policy's first is let past."""
    rows = [
        {"submit_s": 0.0, "run_s": 100.0, "gpus": 3},
        {"submit_s": 1.0, "run_s": 50.0, "gpus": 2},
        {"submit_s": 1.0, "run_s": 40.0, "gpus": 1},
        {"submit_s": 1.0, "run_s": 30.0, "gpus": 1},
    ]
    jobs, layout = compiled(cluster([group(1, 4)]), rows)
    for base, past in (("fifo", 2), ("sjf", 3)):
        env = VectorEnvironment(jobs, layout, SchedulerConfig(base, "easy"))
        seen = env.reset([0], [4])
        env.pick([list(seen.jobs).index(1)])
        assert np.flatnonzero(env.state.start[0] == 1.0).tolist() == [past]


@pytest.mark.parametrize(("types", "fits"), [("any", [1, 1]), ("fastest_only", [0, 0])])
def test_a_job_fits_now_where_its_rule_for_the_type_lets_it(types, fits):
    """The fastest GPUs are in use."""
    rows = [{"submit_s": float(at), "run_s": 100.0, "gpus": 4} for at in (0, 1, 1)]
    speeds = {"V100": 4.0, "K80": 1.0}
    config = cluster([group(1, 4, "V100"), group(1, 4, "K80")], speeds=speeds, gpu_types="any", recorded_on="K80")
    jobs, layout = compiled(config, rows)
    jobs = at_speeds(jobs, np.array([[0.25, 1.0]] * 3))
    env = VectorEnvironment(jobs, layout, SchedulerConfig("fifo", types=types), "rlscheduler")
    seen = env.reset([0], [3])
    assert seen.rows[:, 5].tolist() == fits


@pytest.mark.parametrize("sticky_head", [False, True])
def test_placements_may_be_asked_of_a_placer(sticky_head):
    jobs, layout = random_case(9, n=60)
    scheduler, n = SchedulerConfig("saf", "easy", "lookahead", sticky_head=sticky_head), [len(jobs.row)]
    env = VectorEnvironment(jobs, layout, scheduler, placer=Lookahead(LookaheadConfig()), check=True)
    run(env, lambda seen: env.pick(np.zeros(len(seen.asking), int)), [0], n)
    placer = Lookahead(LookaheadConfig())
    np.testing.assert_array_equal(env.state.start, simulate(jobs, layout, [0], n, scheduler, placer=placer).start)
    assert placer.counts.asked > 0


def test_sequences_that_never_queue_are_over_at_once():
    jobs, layout = workload(300, seed=4)
    env = VectorEnvironment(jobs, layout, SchedulerConfig("fifo"))
    env.reset([0, 7], [1, 1])
    assert env.done and list(env.results()["wait_s"]) == [0, 0]


@pytest.fixture
def begun() -> VectorEnvironment:
    env = VectorEnvironment(*workload(300, seed=5), SchedulerConfig("fifo"))
    env.reset([0, 100], [100, 100])
    return env


def test_nothing_can_be_asked_before_the_first_reset_or_after_the_end(begun):
    env = VectorEnvironment(begun.jobs, begun.layout, begun.scheduler)
    for call in (lambda: env.step([]), lambda: env.pick([]), lambda: env.done, lambda: env.state, env.results):
        with pytest.raises(ValueError, match="has not begun: call reset first"):
            call()
    with pytest.raises(ValueError, match="found 2 sequences under way, expected all to be over"):
        begun.results()
    run(begun, lambda seen: begun.step(seen.rows[:, 0]))
    for call in (lambda: begun.step([]), lambda: begun.pick([])):
        with pytest.raises(ValueError, match="every sequence is over: found an answer, expected a call of reset"):
            call()


def test_wrong_answers_are_refused_and_change_nothing(begun):
    seen = begun.reset([0, 100], [100, 100])
    rows, k = len(seen.rows), len(seen.asking)
    nan = np.zeros(rows)
    nan[1] = np.nan
    far = np.zeros(k, int)
    far[-1] = seen.length[-1]
    for call, message in (
        (lambda: begun.step(np.zeros(rows + 1)), rf"scores: found float64 \[{rows + 1}\], expected {rows} numbers"),
        (lambda: begun.step(np.zeros((rows, 1))), rf"scores: found float64 \[{rows}, 1\], expected {rows} numbers"),
        (lambda: begun.step(["x"] * rows), "scores: found <U1"),
        (lambda: begun.step(nan), "scores: found NaN in row 1, expected a number"),
        (lambda: begun.pick(np.zeros(k + 1, int)), f"actions: found {k + 1}, expected {k}, one a sequence that asks"),
        (lambda: begun.pick(np.zeros(k)), "actions: found float64"),
        (lambda: begun.pick(far), f"of sequence {seen.asking[-1]}: found {far[-1]}, expected 0 … {far[-1] - 1}"),
        (lambda: begun.pick(far * 0 - 1), f"action of sequence {seen.asking[0]}: found -1, expected 0"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    run_on = begun.step(np.arange(rows))
    again = VectorEnvironment(begun.jobs, begun.layout, begun.scheduler)
    np.testing.assert_array_equal(again.reset([0, 100], [100, 100]).rows, seen.rows)
    np.testing.assert_array_equal(again.step(np.arange(rows)).rows, run_on.rows)


@pytest.mark.parametrize(
    ("first", "n", "message"),
    [
        ([], [], "found 0 first jobs and 0 lengths"),
        ([0, 1], [5], "found 2 first jobs and 1 lengths"),
        ([0.5], [5], "first: found float64"),
        (0, 5, r"first: found int64 \[\]"),
        ([-1], [5], "sequence 0: found 5 jobs from job -1, expected 1 or more of 0 … 299"),
        ([0, 299], [5, 2], "sequence 1: found 2 jobs from job 299"),
        ([3], [0], "sequence 0: found 0 jobs"),
    ],
)
def test_wrong_sequences_are_refused(begun, first, n, message):
    with pytest.raises(ValueError, match=message):
        begun.reset(first, n)


def test_wrong_arguments_are_refused(begun, monkeypatch):
    monkeypatch.setitem(CUSTOM, "custom", lambda queue, now: queue.gpus)
    for message, policy, options in (
        ("visible: found 0, expected 1 job or more", "fifo", {"visible": 0}),
        ("features: found 'x'", "fifo", {"features": "x"}),
        ("a custom policy cannot be the base", "custom", {}),
    ):
        with pytest.raises(ValueError, match=message):
            VectorEnvironment(begun.jobs, begun.layout, SchedulerConfig(policy), **options)
