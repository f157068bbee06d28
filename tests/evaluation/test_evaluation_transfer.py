"""Policies away from home: the same windows, the same rules, an agent's own way, and nothing learned anew."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from agent_fakes import workload

from rltune.agent.exercise import RANDOM_ORDERS
from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.ways import way_of
from rltune.config import LookaheadConfig
from rltune.errors import ConfigError, DataError
from rltune.evaluation.transfer import judged, random_order, shortest_windows
from rltune.simulator.config import SchedulerConfig
from rltune.traces.split import split_points

# the logit is minus the job size: smallest area first
SMALLEST = TrainedPolicy((-np.eye(8)[:, 1:2], np.zeros(1)), {"features": "unsampled"})
FIFO, SAF = SchedulerConfig("fifo"), SchedulerConfig("saf")
LOOK = LookaheadConfig()


@pytest.fixture(scope="module")
def there():
    jobs, layout = workload(1500, seed=3)
    length, first = shortest_windows(split_points(1500), [128, 64])
    return jobs, layout, first, length


def test_windows_are_the_shortest_of_the_test_part_evenly_spread() -> None:
    split = split_points(1000)
    length, first = shortest_windows(split, [50, 10])
    assert length == 10 and list(first) == list(range(900, 1000, 10))
    assert list(shortest_windows(split, [10], 3)[1]) == [900, 940, 990]
    with pytest.raises(ConfigError, match="does not fit"):
        shortest_windows(split, [101])


def test_an_agent_that_ranks_like_a_policy_waits_like_it_whatever_its_base(there) -> None:
    saf = judged(*there, SAF, LOOK)
    assert list(saf["first_job"]) == list(there[2]) and (saf["jobs"] == there[3]).all()
    for base in ("fifo", "sjf"):
        agent = judged(*there, SchedulerConfig(base), LOOK, SMALLEST)
        assert agent["wait_s"].to_numpy() == pytest.approx(saf["wait_s"].to_numpy())
    assert saf["wait_s"].sum() < judged(*there, FIFO, LOOK)["wait_s"].sum()


def test_an_agents_way_goes_with_it(there) -> None:
    way = replace(way_of(SchedulerConfig("saf", "easy")), uses_calibrated=False)
    chose = replace(SMALLEST, facts={**SMALLEST.facts, "way": asdict(way)})
    expected = judged(*there, SchedulerConfig("fifo", "easy"), LOOK, SMALLEST)
    assert judged(*there, FIFO, LOOK, chose)["wait_s"].tolist() == expected["wait_s"].tolist()


def test_beliefs_replace_estimates_for_an_agent_that_goes_by_them_and_for_nobody_else(there) -> None:
    jobs, *rest = there
    exact = jobs._replace(row=jobs.row.copy())
    exact.row["estimate_s"] = jobs.run_s
    believer = replace(SMALLEST, facts={**SMALLEST.facts, "way": asdict(way_of(FIFO, uses_calibrated=True))})
    told = judged(jobs, *rest, FIFO, LOOK, believer, exact)
    assert told["wait_s"].tolist() == judged(exact, *rest, FIFO, LOOK, SMALLEST)["wait_s"].tolist()
    plain = judged(jobs, *rest, FIFO, LOOK, SMALLEST, exact)
    assert plain["wait_s"].tolist() == judged(jobs, *rest, FIFO, LOOK, SMALLEST)["wait_s"].tolist()
    assert told["wait_s"].tolist() != plain["wait_s"].tolist()
    with pytest.raises(DataError, match="goes by beliefs about run times, found a workload without any"):
        judged(jobs, *rest, FIFO, LOOK, believer)


def test_a_policy_runs_on_a_cluster_it_has_never_seen(there) -> None:
    other = workload(900, seed=8, load=2.0)
    length, first = shortest_windows(split_points(900), [45])
    rows = judged(*other, first, length, replace(FIFO, placement="lookahead"), LOOK, SMALLEST)
    assert len(rows) == 2 and (rows["wait_s"] >= 0).all()


def test_a_random_order_is_the_mean_of_several_and_depends_on_the_seed_alone(there) -> None:
    one, again, other = (random_order(*there, FIFO, LOOK, seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one, again)
    assert list(one["first_job"]) == list(there[2]) and not np.allclose(one["wait_s"], other["wait_s"])
    begins = np.repeat(there[2], RANDOM_ORDERS)
    assert len(one) * RANDOM_ORDERS == len(begins) and list(one["window"]) == list(range(len(one)))
