"""The chronological split and disjoint windows."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rltune.errors import ConfigError
from rltune.traces.split import Split, disjoint_windows, split_points


def test_known_answer():
    with pytest.raises(ConfigError, match="too few"):
        split_points(2)
    assert split_points(1000) == Split(train=(0, 810), validation=(810, 900), test=(900, 1000))


@given(st.integers(100, 10**6), st.floats(0.2, 0.95), st.floats(0.05, 0.5))
def test_ranges_cover_all_and_do_not_overlap(jobs, train, validation):
    split = split_points(jobs, train, validation)
    assert split.train[0] == 0 and split.test[1] == jobs
    assert split.train[1] == split.validation[0] and split.validation[1] == split.test[0]
    assert all(a < b for a, b in (split.train, split.validation, split.test))
    assert abs(split.test[0] - train * jobs) <= 1


@given(st.integers(0, 1000), st.integers(1, 1000), st.integers(1, 100))
def test_windows_are_disjoint_and_inside(start, extra, length):
    stop = start + extra
    if extra < length:
        with pytest.raises(ConfigError, match="does not fit"):
            disjoint_windows(start, stop, length)
        return
    windows = disjoint_windows(start, stop, length)
    assert windows[0] == start and windows[-1] + length <= stop < windows[-1] + 2 * length
    assert np.all(np.diff(windows) == length)
