"""The rule that made a log is found in it, with the disturbances of real logs; what the user gives comes first."""

import numpy as np
import pandas as pd
import pytest
from workload_cases import cluster, group

from rltune.cluster.fit import Jobs, compile_jobs, fit
from rltune.cluster.layout import Layout, build_layout
from rltune.evaluation import current_policy
from rltune.evaluation.current_policy import (
    CANDIDATES,
    CurrentPolicy,
    RuleFits,
    as_near,
    compare_rules,
    describe,
    replay_rules,
    span,
)
from rltune.evaluation.recorded import nearness
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import job_table
from rltune.traces.columns import TraceMeta, empty_columns

CLUSTER = cluster([group(4, 8)])
META = TraceMeta("x", "X", "own", "csv", "2024-01-01T00:00:00+00:00", "UTC", "")
JOBS = 1500
RECORDED = np.arange(1, 21) * 600.0


def log(gap_s: float = 520.0) -> pd.DataFrame:
    """Jobs of several users that keep 32 GPUs busy, with limits of up to four times the run time, on their cluster."""
    rng = np.random.default_rng(7)
    run_s = np.maximum(5, rng.lognormal(7.6, 1.4, JOBS)).round()
    table = empty_columns(JOBS).assign(
        job_id=[str(i) for i in range(JOBS)],
        user=rng.choice(list("abcdef"), JOBS, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]),
        submit_s=np.cumsum(rng.exponential(gap_s, JOBS)).round(),
        run_s=run_s,
        gpus=rng.choice([1, 2, 4, 8, 16], JOBS, p=[0.5, 0.2, 0.15, 0.1, 0.05]),
        requested_s=run_s * rng.uniform(1, 4, JOBS),
    )
    return fit(table, CLUSTER)[0]


def compiled(table: pd.DataFrame) -> tuple[Jobs, Layout]:
    return compile_jobs(table, table["requested_s"].to_numpy(), CLUSTER), build_layout(CLUSTER)


def waits(jobs: Jobs, layout: Layout, policy: str, backfill: str) -> np.ndarray:
    state = simulate(jobs, layout, np.array([0]), np.array([JOBS]), SchedulerConfig(policy, backfill))
    return job_table(jobs, state)["wait_s"].to_numpy()


@pytest.fixture(scope="module")
def busy() -> tuple[Jobs, Layout]:
    return compiled(log())


@pytest.mark.parametrize(("policy", "backfill"), CANDIDATES)
def test_the_rule_that_made_the_log_is_found(policy, backfill, busy):
    """Though a scheduler looks once a minute, and dependencies delay a twentieth of the jobs for hours."""
    rng = np.random.default_rng(1)
    delayed = np.where(rng.uniform(size=JOBS) < 0.05, rng.exponential(36_000, JOBS), 0.0)
    recorded = waits(*busy, policy, backfill) + rng.uniform(0, 60, JOBS) + delayed
    recorded[::17] = np.nan
    fits = replay_rules(*busy, recorded)
    assert len(fits) == len(CANDIDATES) and next(iter(fits)) == (policy, backfill)
    factors = [it.factor for it in fits.values()]
    assert factors == sorted(factors) and as_near(fits)[0] == (policy, backfill)


@pytest.mark.parametrize("recorded", [np.nan, 0.0])
def test_without_recorded_waits_nothing_is_found(recorded, busy):
    assert replay_rules(*busy, np.full(JOBS, recorded)) == {}


def test_only_the_end_is_replayed_and_less_of_it_if_queues_are_long(busy, monkeypatch):
    monkeypatch.setattr(current_policy, "MOST_JOBS", 400)
    assert span(*busy) == (JOBS - 400, 400) and span(*compiled(log(gap_s=100.0))) == (JOBS - 100, 100)
    recorded = waits(*busy, "fifo", "easy")
    changed = recorded.copy()
    changed[: JOBS - 360] = 1e6  # before what is compared, warm-up included
    fits = replay_rules(*busy, recorded)
    assert fits == replay_rules(*busy, changed)
    assert next(iter(fits.values())).jobs == 360


def test_the_measured_tenth_is_not_used(busy):
    """So the report's comparison there is a check."""
    table = log().assign(wait_s=waits(*busy, "fifo", "easy"))
    changed = table["wait_s"].where(np.arange(JOBS) < 0.9 * JOBS, 99_999.0)
    fits = compare_rules(table, META, CLUSTER, "requested")
    assert fits == compare_rules(table.assign(wait_s=changed), META, CLUSTER, "requested")
    assert next(iter(fits)) == ("fifo", "easy")


def fake(**factors: float) -> RuleFits:
    """Rules (`fifo_none`) whose waits are so many times the recorded ones."""
    fits = {tuple(rule.split("_")): nearness(factor * RECORDED, RECORDED) for rule, factor in factors.items()}
    return dict(sorted(fits.items(), key=lambda of: of[1].factor))  # type: ignore[arg-type]


FITS = fake(fifo_none=1.1, fifo_easy=1.3, multifactor_easy=1.2, multifactor_none=1.8)
ALIKE = fake(saf_greedy=1.2, sjf_easy=1.201, fifo_none=1.204, fifo_easy=1.21, multifactor_easy=1.3)


@pytest.mark.parametrize(
    ("fits", "policy", "backfill", "rule", "why"),
    [
        (FITS, None, None, "fifo-none", "found in the log: 1.1 times the recorded hours, rank correlation 1.00: near"),
        (FITS, "multifactor", None, "multifactor-easy", "as given, the rest found in the log: 1.2 times"),
        (FITS, None, "easy", "multifactor-easy", "as given, the rest found in the log: 1.2 times"),
        (FITS, "multifactor", "none", "multifactor-none", "as given: 1.8 times"),
        (FITS, "f1", None, "f1-easy", "as given, the rest assumed"),
        (ALIKE, None, None, "fifo-easy", "found in the log"),  # the most usual of those hardly distinguishable
        (ALIKE, "saf", None, "saf-greedy", "as given, the rest found in the log"),
        ({}, None, None, "multifactor_size-easy", "assumed, since the log shows no waits"),
        ({}, "fifo", "none", "fifo-none", "as given"),
    ],
)
def test_what_the_user_gives_comes_first(fits, policy, backfill, rule, why):
    current = CurrentPolicy.choose(fits, policy, backfill)
    assert current.rule.id == rule and current.why.startswith(why)


@pytest.mark.parametrize(
    ("fits", "said"),
    [
        (fake(fifo_none=1.1, fifo_easy=1.11, multifactor_easy=1.5), ["wait is 6,300 s", "nearest: fifo easy"]),
        (fake(fifo_none=3.0, fifo_easy=0.2), ["NO RULE IS NEAR", "against acting on them", "FAR OFF"]),
        ({}, ["cannot be found", "multifactor_size easy", "--current-policy"]),
    ],
)
def test_what_is_found_is_described(fits, said):
    text = describe(fits, CurrentPolicy.choose(fits))
    assert all(part in text for part in said) and ("NO RULE" in text) == ("FAR OFF" in said)
    assert [line for line in text.splitlines() if line.endswith("chosen")] or not fits


def test_what_is_given_is_not_asked_for():
    assert "--current-policy" not in describe({}, CurrentPolicy.choose({}, "fifo", "none"))
    assert "--current-backfill" in describe({}, CurrentPolicy.choose({}, "fifo"))
