"""RLTune next to other learners: batches, one long sequence, the time of a decision."""

from dataclasses import replace

import numpy as np
import pytest
from agent_fakes import SMALLEST, whole_workload

from rltune.agent.scheduler_choice import AgentScheduler
from rltune.cluster.workload import Workload, build_workload
from rltune.config import LookaheadConfig
from rltune.config.context import Run
from rltune.evaluation.contenders import Contender, contender_of
from rltune.evaluation.intervals import Intervals
from rltune.evaluation.studies import learners
from rltune.evaluation.studies.decision_time import at_once, decision_times, decisions
from rltune.evaluation.studies.learners import BLOCK_JOBS, LONGEST, arrivals_per_day, batches, compare_long, long_run
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import job_table

LOOK = LookaheadConfig()
AXES = "    backfill: [easy]\n    placement: [best_fit]\n    features: [unsampled]\n    preset: [tiny, other]\n"


@pytest.fixture(scope="module")
def work() -> Workload:
    return whole_workload(1500, seed=3)


def test_batches_say_what_each_scheduler_ran_with_and_the_base_policy_of_agents(project):
    project.change(project.run, "    preset: [tiny]\n", AXES)
    project.change(project.run, "  tiny: {", "  tiny: &tiny {")
    project.run.write_text(project.run.read_text() + "  other: *tiny\n")
    run = Run.open("config/tiny.yaml")
    plain, chose = run.config.cells()
    base = contender_of(run.config, chose).scheduler
    chosen = AgentScheduler(replace(base, policy="sjf", backfill="conservative", locality="any")).facts()
    facts = {plain: {"learned": True}, chose: {"learned": False, "scheduler": chosen}}
    agents = {cell: replace(SMALLEST, facts={**SMALLEST.facts, **own}) for cell, own in facts.items()}
    workloads = {("tiny", "small", "lognormal-1"): build_workload(run, "tiny", "small", "lognormal-1")}
    frame = batches(run.config, workloads, agents)
    ran = (
        frame.drop_duplicates(["who", "preset"])
        .set_index(["who", "preset"])[["base", "policy", "backfill", "placement", "locality", "unlearned"]]
        .T.to_dict("list")
    )
    assert ran["rltune", "tiny"] == ["fifo", "fifo", "easy", "best_fit", "strict", False]
    assert ran["rltune", "other"] == ["fifo", "sjf", "conservative", "best_fit", "any", True]
    assert ran["fifo", ""] == ["", "fifo", "easy", "best_fit", "strict", False]
    assert set(frame["cell"]) == {"", plain.name, chose.name} and set(frame["estimate"]) == {"lognormal-1"}
    per_day = arrivals_per_day(run.config, workloads)
    table, (begin, end) = next(iter(workloads.values())).table, next(iter(workloads.values())).split.test
    at_s = table["submit_s"].iloc[begin:end]
    expected = pytest.approx((end - begin) * 86_400 / (at_s.max() - at_s.min()))
    assert per_day == {plain.name: expected, chose.name: expected}


@pytest.mark.parametrize("most", [100, LONGEST])
def test_a_long_run_is_the_last_of_the_test_part_as_one_sequence(most, work, monkeypatch):
    monkeypatch.setattr(learners, "LONGEST", most)
    begin, end = work.split.test
    n = min(most, end - begin)
    schedulers = {"fifo": SchedulerConfig("fifo"), "saf": SchedulerConfig("saf", "easy")}
    frame = long_run(work, {name: Contender(of, lookahead=LOOK) for name, of in schedulers.items()})
    for name, scheduler in schedulers.items():
        rows = frame[frame["who"] == name]
        state = simulate(work.jobs, work.layout, np.array([end - n]), np.array([n]), scheduler)
        assert rows["jct_s"].tolist() == job_table(work.jobs, state)["jct_s"].tolist()
        assert rows["job"].tolist() == list(range(end - n, end))


def test_long_sequences_are_compared_by_all_of_their_jobs():
    rng = np.random.default_rng(1)
    theirs = rng.lognormal(5, 1, 20 * BLOCK_JOBS + 100)
    found = compare_long(0.8 * theirs, theirs, Intervals(200))
    assert (found["jobs"], found["blocks"]) == (len(theirs), 20)
    assert [found[k] for k in ("improvement", "low", "high")] == pytest.approx([0.2] * 3)
    noisy = compare_long(theirs * rng.choice([0.5, 1.2], len(theirs)), theirs, Intervals(1000))
    assert noisy["low"] < noisy["improvement"] < noisy["high"]
    assert noisy["improvement"] == pytest.approx(1 - noisy["ours_mean"] / noisy["theirs_mean"])
    short = compare_long(np.ones(300), np.full(300, 2.0), Intervals(200))
    assert (short["blocks"], short["improvement"]) == (1, 0.5) and np.isnan([short["low"], short["high"]]).all()


def test_a_queue_arrives_at_once_and_is_decided_until_a_job_does_not_fit(work):
    jobs = at_once(work.jobs, 40, 64)
    assert len(jobs.row) == 64 and len(set(jobs.submit_s)) == 1
    assert list(jobs.gpus) == list(work.jobs.gpus[40:104])
    asked: list[int] = []

    def fifo(state, asking):
        asked.append(int(state.visible[0]))
        state.score[0, : state.visible[0]] = state.queued_jobs(0)

    frame = decisions(jobs, work.layout, fifo, LOOK)
    free, fitting = work.layout.gpus, 0
    for gpus in jobs.gpus:
        free -= gpus
        if free < 0:
            break
        fitting += 1
    assert asked[:fitting] == list(range(64, 64 - fitting, -1)), "the queue is as long as it says, then one shorter"
    assert fitting - 1 <= len(frame) <= fitting, "the decision after which nothing fits any more is not counted"
    assert (frame["decision_s"] >= frame["inference_s"] + frame["placement_s"]).all()


def test_decisions_are_timed_at_the_lengths_that_the_workload_has(work):
    frame = decision_times(SMALLEST, work.jobs, work.layout, LOOK, (16, 64, 5000), 2)
    assert list(frame.columns) == ["queue", "inference_s", "placement_s", "decision_s"]
    assert set(frame["queue"]) == {16, 64} and (frame["inference_s"] > 0).all()
    nothing = decision_times(SMALLEST, work.jobs, work.layout, LOOK, (5000,), 2)
    assert nothing.empty and list(nothing.columns) == list(frame.columns)
