"""One contender after another, one long sequence, the clock of a decision."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from agent_fakes import workload

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.ways import way_of
from rltune.config import LookaheadConfig
from rltune.errors import DataError
from rltune.evaluation.contenders import Contender, Course, judge, run
from rltune.evaluation.latency import at_once, decision_times, decisions
from rltune.evaluation.long_run import BLOCK_JOBS, compare_long, long_run, span_of
from rltune.placement.lookahead import Lookahead
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import job_table
from rltune.traces.split import Split

# the logit is minus the job size: smallest area first
SMALLEST = TrainedPolicy((-np.eye(8)[:, 1:2], np.zeros(1)), {"features": "unsampled"})
LOOK = LookaheadConfig()


@pytest.fixture(scope="module")
def course() -> Course:
    return Course(*workload(1500, seed=3), LOOK)


def test_a_row_a_contender_and_window_and_an_agent_that_ranks_like_a_policy_does_like_it(course: Course) -> None:
    who = {
        "fifo": Contender(SchedulerConfig("fifo")),
        "saf": Contender(SchedulerConfig("saf")),
        "agent": Contender(SchedulerConfig("fifo"), SMALLEST),
    }
    first = np.array([0, 64, 300])
    frame = judge(course, who, first, 64)
    assert list(frame["who"]) == [name for name in who for _ in first]
    for _, rows in frame.groupby("who"):
        assert list(rows["first_job"]) == list(first) and list(rows["window"]) == [0, 1, 2]
        assert rows["seconds"].nunique() == 1 and (rows["seconds"] > 0).all()
    means = frame.groupby("who")["wait_s"].mean()
    assert means["agent"] == pytest.approx(means["saf"], rel=0.1) and means["saf"] < means["fifo"]


def test_an_agent_runs_in_the_way_it_chose(course: Course) -> None:
    plain = SchedulerConfig("fifo", "none")
    chosen = way_of(replace(plain, backfill="easy", locality="any"))
    agent = Contender(plain, TrainedPolicy(SMALLEST.weights, {**SMALLEST.facts, "way": asdict(chosen)}))
    first, n = np.array([0]), np.array([200])
    state, _ = run(course, agent, first, n)
    other, _ = run(course, Contender(chosen.of(plain), SMALLEST), first, n)
    assert np.array_equal(state.start, other.start)
    assert not np.array_equal(state.start, run(course, Contender(plain, SMALLEST), first, n)[0].start)
    frame = judge(course, {"plain": Contender(plain, SMALLEST), "own way": agent}, first, 200).set_index("who")
    ran = frame[["policy", "backfill", "placement", "locality"]].T.to_dict("list")
    assert ran == {"plain": ["fifo", "none", "best_fit", "strict"], "own way": ["fifo", "easy", "best_fit", "any"]}


def test_only_an_agent_that_goes_by_beliefs_is_told_them(course: Course) -> None:
    true = course.jobs._replace(row=course.jobs.row.copy())
    true.row["estimate_s"] = course.jobs.run_s
    way = way_of(SchedulerConfig("fifo", "easy"), uses_calibrated=True)
    agent = Contender(
        SchedulerConfig("fifo", "easy"), TrainedPolicy(SMALLEST.weights, {**SMALLEST.facts, "way": asdict(way)})
    )
    first, n = np.array([0]), np.array([300])
    told, _ = run(replace(course, calibrated=true), agent, first, n)
    as_if, _ = run(replace(course, jobs=true), Contender(SchedulerConfig("fifo", "easy"), SMALLEST), first, n)
    assert np.array_equal(told.start, as_if.start)
    plain = Contender(SchedulerConfig("saf", "easy"))
    assert np.array_equal(
        run(replace(course, calibrated=true), plain, first, n)[0].start, run(course, plain, first, n)[0].start
    )
    with pytest.raises(DataError, match="goes by beliefs about run times, found a workload without any"):
        run(course, agent, first, n)


@pytest.mark.parametrize(("test", "multi_node_slowdown"), [((90, 100), (90, 10)), ((900, 12_000), (900, 10_000))])
def test_the_long_sequence_is_the_test_part_or_its_first_ten_thousand(
    test: tuple[int, int], multi_node_slowdown: tuple[int, int]
) -> None:
    assert span_of(Split((0, 80), (80, test[0]), test)) == multi_node_slowdown


def test_a_long_run_is_one_sequence_of_each(course: Course) -> None:
    frame = long_run(
        course, {"fifo": Contender(SchedulerConfig("fifo")), "saf": Contender(SchedulerConfig("saf", "easy"))}, 100, 700
    )
    for name, scheduler in (("fifo", SchedulerConfig("fifo")), ("saf", SchedulerConfig("saf", "easy"))):
        rows = frame[frame["who"] == name]
        state = simulate(course.jobs, course.layout, np.array([100]), np.array([700]), scheduler)
        assert rows["jct_s"].tolist() == job_table(course.jobs, state)["jct_s"].tolist()
        assert rows["job"].tolist() == list(range(100, 800))


def test_long_sequences_are_compared_by_all_of_their_jobs() -> None:
    rng = np.random.default_rng(1)
    theirs = rng.lognormal(5, 1, 20 * BLOCK_JOBS + 100)
    found = compare_long(0.8 * theirs, theirs, 200)
    assert (found.jobs, found.blocks) == (len(theirs), 20)
    assert found.improvement == pytest.approx(0.2) and found.low == pytest.approx(0.2) == pytest.approx(found.high)
    noisy = compare_long(theirs * rng.choice([0.5, 1.2], len(theirs)), theirs, 1000)
    assert noisy.low < noisy.improvement < noisy.high
    assert noisy.improvement == pytest.approx(1 - noisy.ours_mean / noisy.theirs_mean)


def test_a_sequence_shorter_than_two_blocks_has_no_interval() -> None:
    found = compare_long(np.ones(300), np.full(300, 2.0), 200)
    assert found.blocks == 1 and found.improvement == 0.5 and np.isnan([found.low, found.high]).all()


def test_a_queue_arrives_at_once_and_is_decided_until_a_job_does_not_fit(course: Course) -> None:
    jobs = at_once(course.jobs, 40, 64)
    assert len(jobs.row) == 64 and len(set(jobs.submit_s)) == 1
    assert list(jobs.gpus) == list(course.jobs.gpus[40:104])
    asked: list[int] = []

    def fifo(state, asking):
        asked.append(int(state.visible[0]))
        state.score[0, : state.visible[0]] = state.queued_jobs(0)

    frame = decisions(jobs, course.layout, fifo, Lookahead(LOOK))
    free, fitting = course.layout.gpus, 0
    for gpus in jobs.gpus:
        free -= gpus
        if free < 0:
            break
        fitting += 1
    assert asked[:fitting] == list(range(64, 64 - fitting, -1)), "the queue is as long as it says, then one shorter"
    assert fitting - 1 <= len(frame) <= fitting, "the decision after which nothing fits any more is not counted"
    assert (frame["decision_s"] >= frame["inference_s"] + frame["placement_s"]).all()


def test_decisions_are_timed_at_the_lengths_that_the_workload_has(course: Course) -> None:
    frame = decision_times(SMALLEST, course.jobs, course.layout, LOOK, (16, 64, 5000), 2)
    assert list(frame.columns) == ["queue", "inference_s", "placement_s", "decision_s"]
    assert set(frame["queue"]) == {16, 64} and (frame["inference_s"] > 0).all()
    nothing = decision_times(SMALLEST, course.jobs, course.layout, LOOK, (5000,), 2)
    assert nothing.empty and list(nothing.columns) == list(frame.columns)
