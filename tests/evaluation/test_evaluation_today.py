"""Today's order, found in a log: logs that rules of the simulator made, disturbed as real ones are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rltune.cluster.fit import Jobs, compile_jobs, fit
from rltune.cluster.layout import Layout, build_layout
from rltune.config import ClusterConfig
from rltune.evaluation import today
from rltune.evaluation.today import CANDIDATES, as_near, replayed, span
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import job_table

CLUSTER = ClusterConfig.model_validate(
    {
        "title": "x",
        "pools": [{"name": "all", "groups": [{"gpu_type": "a", "nodes": 4, "gpus": 8, "cpus": 64, "mem_gb": 512}]}],
    }
)
JOBS = 1500


def workload(gap_s: float = 520.0) -> tuple[Jobs, Layout]:
    """Jobs of several users that keep 32 GPUs busy, with limits of up to four times the run time."""
    rng = np.random.default_rng(7)
    run_s = np.maximum(5, rng.lognormal(7.6, 1.4, JOBS)).round()
    table = pd.DataFrame(
        {
            "job_id": [str(i) for i in range(JOBS)],
            "user": rng.choice(list("abcdef"), JOBS, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]),
            "vc": "gpu",
            "submit_s": np.cumsum(rng.exponential(gap_s, JOBS)).round(),
            "run_s": run_s,
            "resource": "gpu",
            "gpus": rng.choice([1, 2, 4, 8, 16], JOBS, p=[0.5, 0.2, 0.15, 0.1, 0.05]),
            "cpus": np.nan,
            "mem_gb": np.nan,
            "gpu_type": None,
            "sla": False,
        }
    )
    fitted, _ = fit(table, CLUSTER)
    return compile_jobs(fitted, run_s * rng.uniform(1, 4, JOBS), CLUSTER), build_layout(CLUSTER)


def waits(jobs: Jobs, layout: Layout, policy: str, backfill: str) -> np.ndarray:
    state = simulate(jobs, layout, np.array([0]), np.array([JOBS]), SchedulerConfig(policy, backfill))
    return job_table(jobs, state)["wait_s"].to_numpy()


@pytest.fixture(scope="module")
def busy() -> tuple[Jobs, Layout]:
    return workload()


@pytest.mark.parametrize(
    ("policy", "backfill"),
    [
        ("fifo", "none"),
        ("fifo", "easy"),
        ("fifo", "greedy"),
        ("multifactor", "easy"),
        ("multifactor", "none"),
        ("saf", "conservative"),
    ],
)
def test_the_rule_that_made_the_log_is_found(policy: str, backfill: str, busy: tuple[Jobs, Layout]) -> None:
    """Though a scheduler looks once in a minute, and a twentieth of the jobs are held back for hours by dependencies."""
    rng = np.random.default_rng(1)
    held = np.where(rng.uniform(size=JOBS) < 0.05, rng.exponential(36_000, JOBS), 0.0)
    recorded = waits(*busy, policy, backfill) + rng.uniform(0, 60, JOBS) + held
    recorded[::17] = np.nan
    found = replayed(*busy, recorded, {})
    assert len(found) == len(CANDIDATES) and next(iter(found)) == (policy, backfill)
    factors = [it.factor for it in found.values()]
    assert factors == sorted(factors) and as_near(found)[0] == (policy, backfill)


def test_undisturbed_it_is_exact(busy: tuple[Jobs, Layout]) -> None:
    first = next(iter(replayed(*busy, waits(*busy, "sjf", "easy"), {}).items()))
    assert first[0] == ("sjf", "easy") and first[1].factor == 1.0 and first[1].ratio == 1.0


@pytest.mark.parametrize("recorded", [np.nan, 0.0])
def test_without_recorded_waits_nothing_is_found(recorded: float, busy: tuple[Jobs, Layout]) -> None:
    assert replayed(*busy, np.full(JOBS, recorded), {}) == {}


def test_where_nobody_waits_rules_are_hardly_to_be_told_apart() -> None:
    jobs, layout = workload(gap_s=20_000.0)
    recorded = np.random.default_rng(2).uniform(0, 60, JOBS)
    assert len(as_near(replayed(jobs, layout, recorded, {}))) == len(CANDIDATES)


def test_only_the_end_is_replayed_and_less_of_it_where_queues_are_long(
    busy: tuple[Jobs, Layout], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(today, "MOST_JOBS", 400)
    assert span(*busy) == (JOBS - 400, 400) and span(*workload(gap_s=100.0)) == (JOBS - 100, 100)
    recorded = waits(*busy, "fifo", "easy")
    changed = recorded.copy()
    changed[: JOBS - 360] = 1e6  # before what is compared, warm-up and all
    assert replayed(*busy, recorded, {}) == replayed(*busy, changed, {})
    assert next(iter(replayed(*busy, recorded, {}).values())).jobs == 360
