"""Where a policy ranks a job as one thing about it changes: known for policies that look at one thing."""

import numpy as np
import pandas as pd
import pytest
from agent_fakes import TOY_JOBS, toy, workload

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.preference import preference
from rltune.environment.features import FEATURE_SETS
from rltune.simulator.config import SchedulerConfig

LENGTH, FIRST = 60, np.array([0, 120, 300])
CASE = workload()


def policy(column: str) -> TrainedPolicy:
    """A policy whose logit is −column."""
    weights = np.array([-1.0 * (str(c) == column) for c in FEATURE_SETS["rich"]], np.float32)
    return TrainedPolicy((weights[:, None], np.zeros(1, np.float32)), {"features": "rich"})


def ranks(column: str, base: str = "fifo") -> pd.DataFrame:
    table = preference(policy(column), *CASE, FIRST, LENGTH, SchedulerConfig(base))
    return table.groupby(["feature", "value"]).mean()


def rises(values: pd.Series) -> bool:
    return values.is_monotonic_increasing and values.iloc[0] < values.iloc[-1] - 0.3


@pytest.mark.parametrize(("base", "rising", "flat"), [("fifo", "", "estimate_s gpus"), ("sjf", "estimate_s", "wait_s")])
def test_the_base_policys_ranks_are_its_own(base, rising, flat):
    found = ranks("log_estimate", base)["base"]
    assert all(rises(found.loc[feature]) for feature in rising.split())
    assert all(found.loc[feature].std() < 0.02 for feature in flat.split())
    assert base != "fifo" or rises(1 - found.loc["wait_s"]), "who has waited longest is first"


def test_smallest_area_first_is_known_by_the_job_size():
    found = ranks("job_size")
    for feature in ("estimate_s", "gpus"):
        assert rises(found.loc[feature, "saf"])
        assert np.allclose(found.loc[feature, "agent"], found.loc[feature, "saf"], atol=1e-6)


def test_where_nobody_waits_there_is_nothing_to_see():
    idle = toy(np.ones(TOY_JOBS), np.arange(TOY_JOBS) * 100.0)
    for first in ([0], []):
        first = np.array(first, np.int64)
        assert preference(policy("job_size"), *idle, first, 20, SchedulerConfig("fifo")).empty
