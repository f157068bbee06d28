"""Contenders on windows: the same windows and rules, an agent's own choice of scheduler, and nothing learned again."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from agent_fakes import SMALLEST, whole_workload

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.scheduler_choice import AgentScheduler
from rltune.agent.task import RANDOM_ORDERS
from rltune.cluster.workload import Workload
from rltune.config import LookaheadConfig
from rltune.errors import DataError
from rltune.evaluation.contenders import Contender, by_window, scheduler_used, simulate_windows
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.metrics import job_table

LOOK = LookaheadConfig()
FIRST, LENGTH = np.array([0, 64, 300]), 64


def contender(
    policy: str = "fifo", backfill: str = "none", agent: TrainedPolicy | None = None, **more: str
) -> Contender:
    return Contender(SchedulerConfig(policy, backfill, **more), agent, lookahead=LOOK)


def chose(scheduler: SchedulerConfig, uses_calibrated: bool = False) -> TrainedPolicy:
    """An agent that chose this scheduler configuration in training."""
    return replace(SMALLEST, facts={**SMALLEST.facts, "scheduler": AgentScheduler(scheduler, uses_calibrated).facts()})


@pytest.fixture(scope="module")
def work() -> Workload:
    return whole_workload(1500, seed=3)


def waits(work: Workload, of: Contender) -> list[float]:
    return simulate_windows(work, of, FIRST, LENGTH)[0]["wait_s"].tolist()


def test_a_row_per_contender_and_window_and_an_agent_that_ranks_like_a_policy_waits_like_it(work):
    who = {"fifo": contender(), "saf": contender("saf"), "agent": contender(agent=SMALLEST)}
    frame = by_window(work, who, FIRST, LENGTH, timed=True)
    assert list(frame["who"]) == [name for name in who for _ in FIRST]
    for _, rows in frame.groupby("who"):
        assert list(rows["first_job"]) == list(FIRST) and list(rows["window"]) == [0, 1, 2]
        assert rows["seconds"].nunique() == 1 and (rows["seconds"] > 0).all()
    means = frame.groupby("who")["wait_s"].mean()
    assert means["agent"] == pytest.approx(means["saf"]) and means["saf"] < means["fifo"]
    assert waits(work, contender("sjf", agent=SMALLEST)) == pytest.approx(waits(work, contender("saf"))), "any base"


def test_an_agent_runs_with_the_scheduler_configuration_it_chose(work):
    chosen = SchedulerConfig("fifo", "easy", locality="any")
    agent = contender(agent=chose(chosen))
    assert waits(work, agent) == waits(work, Contender(chosen, SMALLEST, lookahead=LOOK))
    assert waits(work, agent) != waits(work, contender(agent=SMALLEST))
    frame = by_window(work, {"plain": contender(agent=SMALLEST), "chose": agent}, FIRST, LENGTH)
    ran = (
        frame.drop_duplicates("who").set_index("who")[["policy", "backfill", "placement", "locality"]].T.to_dict("list")
    )
    assert ran == {"plain": ["fifo", "none", "best_fit", "strict"], "chose": ["fifo", "easy", "best_fit", "any"]}


def test_only_an_agent_that_goes_by_calibrated_estimates_gets_them(work):
    easy = SchedulerConfig("fifo", "easy")
    calibrated = replace(work, table=work.table.assign(calibrated_s=work.jobs.run_s))
    exact = replace(work, jobs=work.with_estimates(work.jobs.run_s))
    agent = contender(agent=chose(easy, uses_calibrated=True))
    assert waits(calibrated, agent) == waits(exact, Contender(easy, SMALLEST, lookahead=LOOK)) == waits(exact, agent)
    assert waits(calibrated, agent) != waits(work, Contender(easy, SMALLEST, lookahead=LOOK))
    for other in (contender("saf", "easy"), Contender(easy, SMALLEST, lookahead=LOOK)):
        assert waits(calibrated, other) == waits(work, other)
    with pytest.raises(DataError, match="cell x: uses calibrated estimates, found a workload without any"):
        scheduler_used(work, agent, "cell x")


def test_every_field_that_an_agent_chose_counts_and_the_rules_of_the_run_stay(work):
    chosen = SchedulerConfig("saf", "easy", "isolating_best_fit", "worth_it", split_worth=0.3)
    agent = replace(contender(agent=chose(chosen)), scheduler=SchedulerConfig("fifo", overrun="now"))
    assert scheduler_used(work, agent)[0] == replace(chosen, overrun="now")


def test_everybody_has_the_slowdowns_of_the_cluster(work):
    """A job on more nodes than it needs takes longer, whoever schedules."""
    slowed = replace(work, slowdowns={"multi_node_slowdown": 2.0})
    for who in (contender(locality="any"), contender(agent=chose(SchedulerConfig("saf", locality="any")))):
        fast, slow = (simulate_windows(w, who, FIRST, LENGTH)[0] for w in (work, slowed))
        assert set(slow["multi_node_slowdown"]) == {2.0} and slow["jct_s"].mean() > fast["jct_s"].mean()


def test_a_chosen_rule_for_the_gpu_type_counts_only_where_types_differ_in_speed(work):
    joint = SchedulerConfig("saf", "conservative", types="joint", gpu_price=0.1)
    slower = replace(work, jobs=work.jobs._replace(cut=np.repeat(work.jobs.cut, 2, axis=1)))
    slower.jobs.cut["slow"][:, 1] = 2.0
    agent = replace(contender(agent=chose(joint)), scheduler=SchedulerConfig("fifo", overrun="now"))
    expected = replace(joint, overrun="now")
    assert scheduler_used(slower, agent)[0] == expected
    assert scheduler_used(work, agent)[0].on(work.jobs) == replace(expected, types="any")


def test_a_random_order_is_the_mean_of_several_and_depends_on_the_seed_alone(work):
    one, again, other = (
        simulate_windows(work, replace(contender(), random=seed), FIRST, LENGTH)[0].drop(columns="seconds")
        for seed in (1, 1, 2)
    )
    pd.testing.assert_frame_equal(one, again)
    assert list(one["first_job"]) == list(FIRST) and not np.allclose(one["wait_s"], other["wait_s"])
    state = simulate_windows(work, replace(contender(), random=1), FIRST, LENGTH)[1]
    each = job_table(work.jobs, state).groupby("sequence")["wait_s"].mean().to_numpy()
    assert RANDOM_ORDERS > 1 and len({*each}) == RANDOM_ORDERS * len(FIRST)
    assert one["wait_s"].to_numpy() == pytest.approx(each.reshape(len(FIRST), RANDOM_ORDERS).mean(axis=1))
