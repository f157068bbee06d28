"""Fairness between groups: known answers, and what must hold of any run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rltune.simulator.fairness import fairness, fairness_summary, gini, jain_index


def job_table(*jobs: tuple[int, float, float, float]) -> pd.DataFrame:
    """Of (gpus, run_s, wait_s, bsld)."""
    frame = pd.DataFrame(jobs, columns=["gpus", "run_s", "wait_s", "bsld"])
    return frame.assign(sequence=0, job=range(len(frame)))


RUN = job_table((1, 3600, 10, 1.0), (4, 1800, 20, 2.0), (2, 7200, 90, 6.0), (1, 36, 0, 1.0), (1, 36, 80, 3.0))
WHO = np.array(["b", "b", "b", "a", pd.NA], dtype=object)


def test_known_answers() -> None:
    table = fairness(RUN, WHO)
    assert table["group"].tolist() == ["a", "b", "unknown"]
    assert table["jobs"].tolist() == [1, 3, 1]
    assert table["gpu_hours"].tolist() == pytest.approx([0.01, 1 + 2 + 4, 0.01])
    assert table["wait_s"].tolist() == pytest.approx([0, 40, 80])
    assert table["median_wait_s"].tolist() == [0, 20, 80]
    assert table["bsld"].tolist() == pytest.approx([1, 3, 3])
    assert table["wait_share"].tolist() == pytest.approx([0, 0.6, 0.4])


def test_known_summary() -> None:
    """Mean slowdowns 1, 3, 3 and mean waits 0, 40, 80; the jobs wait 0, 10, 20, 80, 90."""
    summary = fairness_summary(RUN, WHO)
    assert summary["groups"] == 3
    assert summary["jain_bsld"] == pytest.approx(7**2 / (3 * (1 + 9 + 9)))
    assert summary["worst_bsld"] == pytest.approx(3 / (7 / 3))
    # differences of two: 40, 40, 80, each twice among nine pairs; half their mean over the mean
    assert summary["gini_wait"] == pytest.approx((2 * 160 / 9) / 2 / 40)
    assert summary["gini_wait_jobs"] == pytest.approx((-4 * 0 - 2 * 10 + 0 * 20 + 2 * 80 + 4 * 90) / (5 * 200))


@pytest.mark.parametrize("missing", [pd.NA, None, np.nan])
def test_unknown_groups_are_one_group(missing: object) -> None:
    table = fairness(RUN, np.array([missing, "x", missing, "x", "x"], dtype=object))
    assert table["group"].tolist() == ["unknown", "x"] and table["jobs"].tolist() == [2, 3]


def test_nobody_waits() -> None:
    run = job_table((1, 60, 0, 1.0), (1, 60, 0, 1.0))
    who = np.array(["a", "b"])
    assert fairness(run, who)["wait_share"].isna().all()
    expected = {"groups": 2, "jain_bsld": 1.0, "worst_bsld": 1.0, "gini_wait": 0.0, "gini_wait_jobs": 0.0}
    assert fairness_summary(run, who) == expected


@pytest.mark.parametrize("seed", range(2))
def test_what_holds_of_any_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.lognormal(0, 1, 50)
    n = len(values)
    assert 1 / n <= jain_index(values) <= 1 and 0 <= gini(values) < 1
    for f in (jain_index, gini):
        assert f(1000 * values) == pytest.approx(f(values))
        assert f(rng.permutation(values)) == pytest.approx(f(values))
    assert jain_index(values) == pytest.approx(1 / (1 + (values.std() / values.mean()) ** 2))
    assert gini(values) == pytest.approx(np.abs(values[:, None] - values).mean() / 2 / values.mean())
    assert (jain_index(np.zeros(3)), gini(np.zeros(3))) == (1, 0)
    assert jain_index(np.array([1e200, 1e200])) == pytest.approx(1)


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="2 groups for 5 jobs"):
        fairness(RUN, np.array(["a", "b"]))
    with pytest.raises(ValueError, match="no jobs"):
        fairness_summary(RUN.head(0), np.array([]))
    for values in ([], [1.0, -1.0], [1.0, np.nan]):
        with pytest.raises(ValueError, match="none negative or missing"):
            jain_index(np.array(values))
