"""Feature sets: their widths, what may be switched, and that each feature has its words."""

from __future__ import annotations

import numpy as np

from rltune.environment.features import (
    CLUSTER,
    CRITIC,
    ENGINEERED,
    FEATURE_SETS,
    FEATURES,
    VISIBLE,
    bounds_of,
    columns_of,
    width_of,
)


def test_widths() -> None:
    widths = {name: width_of(name) for name in FEATURE_SETS}
    assert widths == {
        "raw": 8,
        "engineered": 8,
        "engineered7": 7,
        "engineered9": 9,
        "unsampled": 8,
        "rlscheduler": 6,
        "rich": 19,
    }
    assert len(CRITIC) == 5


def test_at_most_two_columns_are_switched_and_a_third_says_which() -> None:
    for name in FEATURE_SETS:
        columns = columns_of(name)
        switched = [c for c in columns if c.switched]
        assert len(switched) <= 2
        assert bool(switched) == any(c.names == ("scattered", "scattered") for c in columns)
        assert all(c.weights == (1, 1) for c in columns if not c.switched)
    assert not any(c.switched for c in CRITIC)


def test_smaller_and_larger_engineered_sets_differ_by_one_column() -> None:
    eight = columns_of("engineered")
    assert [c for c in eight if c not in columns_of("engineered7")] == [eight[5]]
    assert str(eight[5]) == "can_schedule_now"
    assert columns_of("engineered9")[:8] == eight and str(columns_of("engineered9")[8]) == "cff"


def test_bounds_are_those_of_what_is_shown() -> None:
    low, high = bounds_of("engineered")
    np.testing.assert_array_equal(low, [0, 0, 0, 0, -1, 0, 0, 0])
    np.testing.assert_array_equal(high, [2, 4, 2, 1, 1, 1, 2, 1])


def test_every_feature_has_a_category_of_the_papers_table() -> None:
    assert {m.category for m in FEATURES.values()} == {VISIBLE, CLUSTER, ENGINEERED}
    assert not any(m.raw for m in FEATURES.values() if m.category == ENGINEERED)
    assert {c.together for c in FEATURE_SETS["raw"]} <= {name for name, m in FEATURES.items() if m.raw}
