"""From an order to priorities: inside the band, with the fewest writes."""

from __future__ import annotations

import pytest
from fake_slurm import BAND, make_config
from hypothesis import given, strategies as st
from pydantic import ValidationError

from rltune.config.slurm import Band
from rltune.slurm.decide import assign


@given(st.data())
def test_priorities_follow_the_order_inside_the_band_with_the_fewest_writes(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 8))
    order = data.draw(st.permutations(range(n)))
    value = st.one_of(st.just(5000), st.integers(BAND.low, BAND.low + 20), st.integers(BAND.low, BAND.high))
    current = {number: data.draw(value) for number in order}
    changed = assign(order, current, BAND)
    after = [changed.get(number, current[number]) for number in order]
    assert all(a > b for a, b in zip(after, after[1:])) and all(BAND.low <= p <= BAND.high for p in after)
    assert assign(order, dict(zip(order, after, strict=True)), BAND) == {}
    kept = max((len(some) for some in _subsets([current[j] for j in order]) if _stands(some)), default=0)
    narrow = any(p < BAND.low + 40 or p > BAND.high - 40 for p in current.values() if p != 5000)
    assert len(changed) == n - kept or narrow, "no more jobs are written to than the order needs"


def _subsets(values: list[int]):
    for bits in range(1 << len(values)):
        yield [v for i, v in enumerate(values) if bits >> i & 1]


def _stands(values: list[int]) -> bool:
    inside = all(BAND.low <= v <= BAND.high for v in values)
    return inside and all(a > b for a, b in zip(values, values[1:]))


def test_a_queue_longer_than_the_band_is_refused() -> None:
    with pytest.raises(ValueError, match="widen it"):
        assign(range(20_002), {}, Band(low=1, high=20_001))


@pytest.mark.parametrize(
    ("band", "words"),
    [
        ([1_000_000, 1_019_999], "found 1000000 to 1019999, expected a band of 20,000 priorities or more"),
        ([2_000_000, 1_000_000], "expected a band of 20,000"),
        ([0, 1_000_000], "from 1 to 4294967293"),
        ([1_000_000, 2**32 - 2], "from 1 to 4294967293"),
        ({"low": 1_000_000, "high": 2_000_000}, "expected the lowest and the highest priority, such as"),
    ],
)
def test_a_band_that_cannot_be_is_refused(band: object, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        make_config(band=band)
