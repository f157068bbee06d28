"""Base policies: known scores, properties, and one registry."""

from __future__ import annotations

from math import log10
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workload_cases import cluster, group, simple

from rltune.config.cells import Policy
from rltune.policies import IDS, TITLES, compiled_score, f1, fifo, saf, sjf, wfp3
from rltune.simulator import twin
from rltune.simulator.batch import Setting, simulate

MODULES = {"fifo": fifo, "sjf": sjf, "saf": saf, "f1": f1, "wfp3": wfp3}
JOB = st.tuples(
    st.floats(0, 1e8), st.floats(1, 1e7), st.integers(1, 512), st.floats(0, 1e7)
)  # submit_s, estimate_s, gpus, wait_s


def test_the_registry_is_complete() -> None:
    assert set(IDS) == set(TITLES) == set(MODULES) == set(get_args(Policy)) == set(twin.POLICIES)
    assert sorted(IDS.values()) == list(range(len(IDS)))


@pytest.mark.parametrize(
    ("policy", "job", "score"),
    [
        ("fifo", (123.0, 50.0, 4, 7.0), 123.0),
        ("sjf", (123.0, 50.0, 4, 7.0), 50.0),
        ("saf", (123.0, 50.0, 4, 7.0), 200.0),
        ("f1", (100.0, 1000.0, 8, 7.0), 3 * 8 + 870 * 2),
        ("f1", (0.0, 1000.0, 8, 7.0), 3 * 8),  # submissions count from 1 s
        ("f1", (0.25, 0.5, 8, 7.0), 0.0),  # so do run times
        ("wfp3", (123.0, 50.0, 4, 100.0), -(2**3) * 4),
        ("wfp3", (123.0, 50.0, 4, 0.0), 0.0),
    ],
)
def test_known_scores(policy: str, job: tuple, score: float) -> None:
    assert MODULES[policy].score(*job) == pytest.approx(score)


@settings(max_examples=100, deadline=None)
@given(JOB)
def test_compiled_equals_module_equals_twin(job: tuple) -> None:
    for policy, number in IDS.items():
        value = compiled_score(number, *map(float, job[:2]), job[2], float(job[3]))
        assert value == pytest.approx(MODULES[policy].score.py_func(*job), rel=1e-12)
        assert value == pytest.approx(twin.POLICIES[policy](*job), rel=1e-12)


@settings(max_examples=100, deadline=None)
@given(JOB, st.floats(1.01, 100))
def test_what_moves_a_job_forward_or_back(job: tuple, factor: float) -> None:
    submit, estimate, gpus, wait = job
    for policy in ("sjf", "saf", "f1", "wfp3"):
        score = MODULES[policy].score.py_func
        assert score(submit, estimate * factor, gpus, wait) >= score(submit, estimate, gpus, wait)
    assert wfp3.score.py_func(submit, estimate, gpus, wait * factor) <= wfp3.score.py_func(*job)
    assert wfp3.score.py_func(submit, estimate, gpus + 1, wait) <= wfp3.score.py_func(*job)
    for policy in ("saf", "f1"):
        assert MODULES[policy].score.py_func(submit, estimate, gpus + 1, wait) >= MODULES[policy].score.py_func(*job)


@pytest.mark.parametrize("policy", list(IDS))
def test_scores_are_finite_at_the_edges(policy: str) -> None:
    for job in [(0.0, 1.0, 1, 0.0), (1e9, 1e8, 4096, 1e9), (0.0, 1e8, 1, 0.0), (1e9, 1.0, 4096, 1e9)]:
        assert np.isfinite(MODULES[policy].score(*job))


def test_f1_lets_the_submission_outweigh_area_early_and_less_so_later() -> None:
    """870 · log10(st): from 10 s to 20 s it is worth 262, from 10⁶ s to 10 s later 0.004."""
    score = f1.score.py_func
    assert score(20.0, 10.0, 1, 0.0) - score(10.0, 10.0, 1, 0.0) == pytest.approx(870 * log10(2))
    assert score(1e6, 1e4, 2, 0.0) > score(1e6 + 10, 1e3, 2, 0.0)


def test_policies_see_the_estimate_and_not_the_run_time() -> None:
    """The longer job says it is the shorter one."""
    jobs, layout = simple(cluster([group(1, 1)]), (0, 50, 1, 50), (1, 1000, 1, 5), (1, 10, 1, 500))
    for policy in ("sjf", "saf", "f1", "wfp3"):
        start = simulate(jobs, layout, [0], [3], Setting(policy, "none", "best_fit")).start[0]
        assert start.tolist() == [0, 50, 1050], policy
