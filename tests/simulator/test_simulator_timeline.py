"""The timeline of a run: known answers, and against every event time counted out on random runs."""

import numpy as np
import pandas as pd
import pytest

from rltune.simulator.timeline import timeline


def jobs_of(*rows: tuple[float, float, float, int]) -> pd.DataFrame:
    """A job table of (submit_s, start_s, end_s, gpus)."""
    return pd.DataFrame(rows, columns=["submit_s", "start_s", "end_s", "gpus"])


def test_known_answers():
    frame = timeline(jobs_of((0, 0, 10, 3), (2, 10, 20, 4), (5, 5, 10, 2), (4, 10, 12, 1)))
    assert frame["time_s"].tolist() == [0, 2, 4, 5, 10, 12, 20]
    assert frame["used_gpus"].tolist() == [3, 3, 3, 5, 5, 4, 0]
    assert frame["queued"].tolist() == [0, 1, 2, 2, 0, 0, 0]
    assert frame["running"].tolist() == [1, 1, 1, 2, 2, 1, 0]


@pytest.mark.parametrize("seed", range(6))
def test_every_row_is_what_counting_gives(seed):
    rng = np.random.default_rng(seed)
    submit = rng.integers(60, size=80)
    start = submit + rng.choice([0, 0, 1, 7, 30], 80)
    jobs = jobs_of(*zip(submit, start, start + rng.integers(1, 20, 80), rng.choice([1, 2, 8], 80)))
    frame = timeline(jobs)
    assert frame["time_s"].tolist() == sorted({*jobs["submit_s"], *jobs["start_s"], *jobs["end_s"]})
    for row in frame.to_dict("records"):
        t = row["time_s"]
        queued = (jobs["submit_s"] <= t) & (t < jobs["start_s"])
        running = jobs[(jobs["start_s"] <= t) & (t < jobs["end_s"])]
        expected = {"time_s": t, "used_gpus": running["gpus"].sum(), "queued": queued.sum(), "running": len(running)}
        assert row == expected
