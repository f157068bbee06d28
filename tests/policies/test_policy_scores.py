"""Base policies: known scores, properties, and one registry."""

from collections.abc import Callable
from math import log2, log10
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from workload_cases import cluster, group, simple

from rltune.config.cells import Policy
from rltune.policies import FIRST_DYNAMIC, FIRST_FAIR, IDS, POLICIES, SYMBOLS, Facts
from rltune.policies.compiled import compiled_score
from rltune.policies.policy import Policy as BasePolicy
from rltune.registry import discover
from rltune.simulator.batch import SchedulerConfig, simulate

DAY = 86400.0
SHARE = st.floats(0, 1)
JOB = st.builds(
    Facts,
    st.floats(0, 1e8),
    st.floats(1, 1e7),
    st.integers(1, 512),
    st.floats(0, 1e7),
    SHARE,
    SHARE,
    SHARE,
    st.sampled_from([0.0, 1.0]),
)


def test_a_file_that_assigns_one_is_found(tmp_path, monkeypatch):
    texts = {
        "plain": "POLICY = 1",
        "typed": "POLICY: int = 2",
        "close": "POLICY=3",
        "other": "POLICY_OF = 4",
        "none": "",
    }
    (tmp_path / "some").mkdir()
    for name, text in texts.items():
        (tmp_path / "some" / f"{name}.py").write_text(f"x = 1\n{text}\n")
    (tmp_path / "some" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert discover("some", "POLICY") == [3, 1, 2]
    with pytest.raises(ValueError, match="some: close.py and plain.py: found denominator 1 in both"):
        discover("some", "POLICY", "numerator", "denominator")


def test_the_registry_is_complete():
    assert (
        list(IDS)
        == list(get_args(Policy))
        == "fifo sjf saf smallest f1 qssf wfp3 unicep multifactor multifactor_size".split()
    )
    for name, policy in POLICIES.items():
        assert (IDS[name] >= FIRST_DYNAMIC, IDS[name] >= FIRST_FAIR) == (policy.dynamic, policy.fair)


@pytest.mark.parametrize(
    ("policy", "known", "score"),
    [
        ("fifo", Facts(123.0, 50.0, 4, 7.0), 123.0),
        ("sjf", Facts(123.0, 50.0, 4, 7.0), 50.0),
        ("saf", Facts(123.0, 50.0, 4, 7.0), 200.0),
        ("smallest", Facts(123.0, 50.0, 4, 7.0), 4.0),
        ("qssf", Facts(123.0, 50.0, 4, 7.0), 200.0),
        ("f1", Facts(100.0, 1000.0, 8, 7.0), 3 * 8 + 870 * 2),
        ("f1", Facts(0.0, 1000.0, 8, 7.0), 3 * 8),  # submissions count from 1 s
        ("f1", Facts(0.25, 0.5, 8, 7.0), 0.0),  # so do run times
        ("wfp3", Facts(123.0, 50.0, 4, 100.0), -(2**3) * 4),
        ("wfp3", Facts(123.0, 50.0, 4, 0.0), 0.0),
        ("unicep", Facts(123.0, 50.0, 3, 100.0), -1.0),  # log2(3 + 1) = 2
        ("unicep", Facts(123.0, 50.0, 1, 100.0), -2.0),
        ("unicep", Facts(123.0, 50.0, 1, 0.0), 0.0),
        # age 1/7, fair share 1/4, a day of seven: 6/7, partition 1/2, no agreement
        ("multifactor", Facts(0.0, DAY, 4, DAY, 0.25, 0.125, 0.5, 0.0), -1000 * (1 / 7 + 0.25 + 6 / 7 + 0.5)),
        # the same, an eighth of the pool's GPUs in place of the day
        ("multifactor_size", Facts(0.0, DAY, 4, DAY, 0.25, 0.125, 0.5, 0.0), -1000 * (1 / 7 + 0.25 + 0.125 + 0.5)),
        # all five at their largest: a week and more of waiting, no time to run
        ("multifactor", Facts(0.0, 0.0, 4, 8 * DAY, 1.0, 0.5, 1.0, 1.0), -5000),
        ("multifactor_size", Facts(0.0, DAY, 4, 8 * DAY, 1.0, 1.0, 1.0, 1.0), -5000),
        # more than a week to run, and as new as can be
        ("multifactor", Facts(0.0, 9 * DAY, 4, 0.0, 0.5, 0.5, 0.0, 0.0), -500),
    ],
)
def test_known_scores(policy, known, score):
    assert POLICIES[policy].score(known) == pytest.approx(score)
    assert compiled_score(IDS[policy], known) == pytest.approx(score)


@pytest.mark.parametrize("policy", list(IDS))
def test_scores_are_finite_at_the_edges(policy):
    for edge in [(0.0, 1.0, 1, 0.0), (1e9, 1e8, 4096, 1e9), (0.0, 1e8, 1, 0.0), (1e9, 1.0, 4096, 1e9)]:
        assert np.isfinite(compiled_score(IDS[policy], Facts(*edge)))


def test_a_policy_that_uses_fair_shares_is_dynamic_too():
    with pytest.raises(ValueError, match="policy 'mine': found fair without dynamic"):
        BasePolicy("mine", "Mine", lambda job: -job.fair_share, "−f", "here", fair=True)


@pytest.mark.parametrize(
    ("score", "kind"),
    [
        (lambda job: -job.wait_s, "dynamic"),
        (lambda job: job.estimate_s / job.gpu_share * (0.0 if job.wait_s > DAY else 1.0), "dynamic"),
        (lambda job: job.fair_share, "fair"),
    ],
)
def test_a_policy_whose_score_changes_says_so(score, kind):
    """Otherwise jobs would be ranked once, when they arrive."""
    with pytest.raises(ValueError, match=f"policy 'mine': its score depends on .*, expected {kind}=True"):
        BasePolicy("mine", "Mine", score, "", "here", dynamic=kind == "fair")
    BasePolicy("mine", "Mine", score, "", "here", dynamic=True, fair=kind == "fair")


def test_policies_see_the_estimate_and_not_the_run_time():
    """The longer job says it is the shorter one."""
    jobs, layout = simple(cluster([group(1, 1)]), (0, 50, 1, 50), (1, 1000, 1, 5), (1, 10, 1, 500))
    for policy in ("sjf", "saf", "f1", "wfp3", "unicep", "multifactor"):
        start = simulate(jobs, layout, [0], [3], SchedulerConfig(policy, "none", "best_fit")).start[0]
        assert start.tolist() == [0, 50, 1050], policy


PLAIN = str.maketrans({"·": "*", "−": "-", "³": "**3"})


@pytest.mark.parametrize("policy", POLICIES)
@given(job=JOB)
def test_the_compiled_score_is_the_plain_one_and_the_formula_in_tables(policy, job):
    text = POLICIES[policy].formula.replace("7 d", f"{7 * DAY}").translate(PLAIN)
    letters = dict(zip(SYMBOLS, job, strict=True))
    expected = eval(text, {"max": max, "min": min, "log2": log2, "log10": log10, "__builtins__": {}}, letters)
    compiled = compiled_score(IDS[policy], job)
    assert compiled == pytest.approx(expected, rel=1e-9, abs=1e-9) and compiled == POLICIES[policy].score(job)
