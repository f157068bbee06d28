"""Which cells are compared with one another."""

from typing import Any

import pytest

from rltune.config import RunConfig
from rltune.config.comparisons import against_qssf, agent_of, by_features, for_metric, learners_compared

SPOT = [{"trace": "philly", "cluster": "philly-192"}]


def run(*experiments: dict[str, Any]) -> RunConfig:
    blocks = [{"workloads": SPOT, "policy": ["saf"], **e} for e in experiments]
    return RunConfig.model_validate({"title": "Test", "experiments": blocks})


@pytest.mark.parametrize(
    ("axes", "is_compared"),
    [
        ({"backfill": ["easy"], "estimate": ["history-lightgbm"]}, True),
        ({"backfill": ["easy"], "estimate": ["published"]}, True),
        ({"backfill": ["none"], "estimate": ["history-rolling"]}, False),
        ({"backfill": ["easy"], "estimate": ["lognormal-1"]}, False),
        ({"backfill": ["easy"], "estimate": ["history-rolling"], "preset": ["linear"]}, False),
    ],
)
def test_agents_with_easy_and_estimates_from_history_are_compared_with_qssf(axes, is_compared):
    assert bool(against_qssf(run(axes))) is is_compared


def test_of_a_metric_those_trained_for_it_then_those_trained_for_wait_then_all():
    cells = run({"metric": ["wait", "bsld", "utilisation"]}).cells()
    assert [c.metric for c in for_metric(cells, "bsld")] == ["bsld"]
    assert [c.metric for c in for_metric(cells, "jct")] == ["wait"]
    assert for_metric(cells[1:], "jct") == cells[1:]


def test_a_comparison_has_the_rules_that_most_kinds_of_agents_know():
    config = run(
        {"policy": ["fifo", "sjf"], "preset": ["tuned"]},
        {"policy": ["sjf"], "backfill": ["easy"], "features": ["rich"], "preset": ["quick", "linear", "rlscheduler"]},
        {"policy": ["fifo"], "backfill": ["easy"], "features": ["raw"], "preset": ["quick"]},
    )
    (comparison,) = learners_compared(config)
    assert [agent_of(config, c) for c in comparison] == ["rlscheduler", "linear", "rltune"]
    assert {(c.policy, c.backfill) for c in comparison} == {("sjf", "easy")}, "the base policy that most of them know"


def test_a_comparison_prefers_agents_for_wait_and_the_papers_features_and_has_each_preset_once():
    config = run(
        {"features": ["raw"], "placement": ["best_fit"]},
        {"metric": ["jct", "wait"], "preset": ["quick", "tuned"], "seed": [1, 2]},
    )
    (comparison,) = learners_compared(config)
    assert [(c.preset, c.metric, c.features, c.seed) for c in comparison] == [
        ("quick", "wait", "engineered", 1),
        ("tuned", "wait", "engineered", 1),
    ]


def test_groups_by_features_differ_in_nothing_else():
    config = run(
        {"features": ["engineered7", "engineered"], "policy": ["fifo", "sjf"]},
        {"features": ["engineered9"], "policy": ["fifo"]},
        {"features": ["raw"], "policy": ["sjf"], "placement": ["best_fit"]},
    )
    groups = by_features(config)
    assert [[c.features for c in g] for g in groups] == [
        ["engineered7", "engineered", "engineered9"],
        ["engineered7", "engineered"],
    ]
    for group in groups:
        assert len({c.but(features="") for c in group}) == 1
    (seeds,) = by_features(run({"features": ["raw", "rich"], "seed": [1, 2]}, {"policy": ["fifo"], "seed": [1, 2]}))
    assert [(c.features, c.seed) for c in seeds] == [("raw", 1), ("raw", 2), ("rich", 1), ("rich", 2)]
    assert by_features(run({"preset": ["linear"], "features": ["raw", "rich"]})) == [], "they do not see them"
