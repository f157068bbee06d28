"""Orders and holds that come from outside: what a ranker is asked, what it cannot see, and that no hold starves a job."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from random_cases import times
from twin_cases import BACKFILLS, assert_same, cases, run_engine
from workload_cases import cluster, compiled, group, random_case, simple, with_rows

from rltune.cluster.fit import Jobs
from rltune.config.run import LookaheadConfig
from rltune.environment.example import example_workload
from rltune.placement.placers import placer_of
from rltune.policies import CUSTOM
from rltune.reference import twin
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.state import MAX_VISIBLE, State

COUNTS = ["decisions", "choices", "queue_sum", "cut", "events"]


class Recorder:
    """A ranker by any function of the rows of Jobs; remembers what it was asked."""

    def __init__(self, jobs: Jobs, score) -> None:
        self.jobs, self.score = jobs, score
        self.visible: list[int] = []
        self.queued: list[int] = []

    def __call__(self, state: State, asking: np.ndarray) -> None:
        for s in asking:
            n = state.visible[s]
            self.visible.append(int(n))
            self.queued.append(int(state.queued[s]))
            state.score[s, :n] = self.score(state.first[s] + state.queued_jobs(s), state.now[s])


@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_placement_sees_a_custom_policys_order_behind_a_sticky_head(backfill, monkeypatch):
    monkeypatch.setitem(CUSTOM, "smallest_area", lambda queue, now: queue.estimate_s * queue.gpus)
    jobs, layout = example_workload()

    def starts_s(policy: str) -> list[float]:
        rules = {"sticky_head": True, "locality": "any", "multi_node_slowdown": 1.2}
        scheduler, placer = (
            SchedulerConfig(policy, backfill, "lookahead", **rules),
            placer_of("lookahead", LookaheadConfig()),
        )
        return simulate(jobs, layout, [0], [1000], scheduler, placer=placer).start[0].tolist()

    assert starts_s("smallest_area") == starts_s("saf")


@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("policy", ["fifo", "saf"])
def test_a_ranker_that_returns_a_policys_score_gives_its_run(policy, backfill):
    for seed in range(3):
        jobs, layout = random_case(seed, n=50)
        jobs, n = with_rows(jobs, sla=False), len(jobs.gpus)
        score = {"fifo": jobs.submit_s, "saf": jobs.estimate_s * jobs.gpus}[policy]
        ranker = Recorder(jobs, lambda rows, now, score=score: score[rows])
        # the base policy is another one: it must not matter while the queue is in sight
        asked = simulate(
            jobs, layout, [0, n // 2], [n, n - n // 2], SchedulerConfig("f1", backfill, "best_fit"), ranker
        )
        direct = simulate(jobs, layout, [0, n // 2], [n, n - n // 2], SchedulerConfig(policy, backfill, "best_fit"))
        np.testing.assert_array_equal(asked.start, direct.start)
        assert asked.status[COUNTS].tolist() == direct.status[COUNTS].tolist()
        assert len(ranker.visible) == asked.status["choices"].sum()
        assert min(ranker.visible, default=2) >= 2
        assert ranker.visible == ranker.queued


def test_decisions_choices_and_queue_are_counted():
    """Three jobs at once on a node that holds one: queues of 3, 2 (blocked), 2, 1 (blocked), 1."""
    jobs, layout = simple(cluster([group(1, 4)]), (0, 100, 4), (0, 100, 4), (0, 100, 4))
    status = simulate(jobs, layout, [0], [3], SchedulerConfig("fifo", "none", "best_fit")).status[0]
    assert tuple(status[COUNTS]) == (5, 3, 9, 0, 3)


def test_beyond_the_visible_jobs_the_rest_follow_in_the_base_order():
    rng = np.random.default_rng(7)
    runs = rng.permutation(320) + 1.0
    rows = [{"submit_s": float(i // 40), "run_s": r, "gpus": int(rng.choice([1, 2, 4, 8]))} for i, r in enumerate(runs)]
    jobs, layout = compiled(cluster([group(2, 8)]), rows)
    ranker, scheduler = Recorder(jobs, lambda rows, now: -rows), SchedulerConfig("sjf", "easy")
    state = simulate(jobs, layout, [0], [320], scheduler, ranker)
    newest = twin.run(jobs, layout, 0, 320, scheduler, lambda now, queue: [-j for j in queue], MAX_VISIBLE)
    np.testing.assert_array_equal(state.start[0], newest)
    assert max(ranker.visible) == MAX_VISIBLE < max(ranker.queued)
    assert state.status["cut"][0] == sum(q > MAX_VISIBLE for q in ranker.queued) > 0


def test_while_a_job_under_an_agreement_is_queued_the_base_policy_orders_all():
    """Jobs of the whole node, the third one under an agreement; the ranker would go from last to first."""
    jobs, layout = simple(cluster([group(1, 4)]), *((0, run, 4) for run in (10, 30, 40, 20, 5)))
    jobs = with_rows(jobs, sla=[False, False, True, False, False])
    ranker = Recorder(jobs, lambda rows, now: -rows.astype(float))
    start = simulate(jobs, layout, [0], [5], SchedulerConfig("sjf"), ranker).start[0]
    # the agreement at 0; then it is the ranker's turn: the fifth at 40, the fourth, the second, the first
    assert start.tolist() == [95, 65, 0, 45, 40]
    assert ranker.visible == [4, 4, 3, 3, 2, 2]


def holds_often(now: float, rows: np.ndarray) -> bool:
    """Holds back more than half of the time, whatever the order of the jobs."""
    return (int(np.sum(rows)) * 5 + int(now)) % 7 < 4


@times(0.5)
@given(cases().filter(lambda case: case.visible is not None), st.booleans())
def test_engine_equals_twin_where_queues_are_held_back(case, alone):
    assert_same(case, holds_often, alone)


@pytest.mark.parametrize(("alone", "starts"), [(False, [0, 0, 10, 20]), (True, [0, 4, 10, 20])])
def test_a_queue_held_back_once_is_asked_again_at_the_next_event(alone, starts):
    """A GPU each on two GPUs, two jobs together; a third comes while the first runs, and a fourth later."""
    jobs, layout = simple(cluster([group(1, 2)]), (0, 10, 1), (0, 30, 1), (4, 10, 1), (20, 10, 1))

    def first_alone(now: float, rows: np.ndarray) -> bool:
        return now == 0 and len(rows) == 1

    state = run_engine(jobs, layout, [0], [4], SchedulerConfig("fifo"), 256, lambda now, rows: rows, first_alone, alone)
    assert state.start[0].tolist() == starts


@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("pools", [1, 3])
def test_a_queue_that_is_always_held_starts_jobs_only_when_no_event_would_come(backfill, pools):
    """A hold has no effect once no job runs and none is to come, so that every job starts."""
    jobs, layout = random_case(5, n=40, pools=pools)
    jobs, n = with_rows(jobs, sla=False), len(jobs.gpus)  # those under one are not ranked from outside
    scheduler = SchedulerConfig("sjf", backfill)
    state = run_engine(jobs, layout, [0], [n], scheduler, 256, lambda now, rows: rows, lambda now, rows: True, True)
    start, end = state.start[0], state.end[0]
    assert start.min() >= jobs.submit_s.max(), "every job starts, none before the last submission"
    for at in start:  # nothing was running just before
        assert not ((start < at) & (end > at)).any()
