"""Feature sets: their widths, what may be switched, and that each feature has its words."""

from __future__ import annotations

from rltune.environment.features import CLUSTER, CRITIC, ENGINEERED, FEATURE_SETS, FEATURES, VISIBLE, columns_of


def test_at_most_two_columns_are_switched_and_a_third_says_which() -> None:
    for name in FEATURE_SETS:
        columns = columns_of(name)
        switched = [c for c in columns if c.switched]
        assert len(switched) <= 2
        assert bool(switched) == any(c.names == ("scattered", "scattered") for c in columns)
        assert all(c.weights == (1, 1) for c in columns if not c.switched)
    assert not any(c.switched for c in CRITIC)


def test_every_feature_has_a_category_of_the_papers_table() -> None:
    assert {m.category for m in FEATURES.values()} == {VISIBLE, CLUSTER, ENGINEERED}
    assert not any(m.raw for m in FEATURES.values() if m.category == ENGINEERED)
    assert {c.names[0] for c in FEATURE_SETS["raw"]} <= {name for name, m in FEATURES.items() if m.raw}
