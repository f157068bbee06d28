"""Calibrated estimates: a posterior known in closed form, known weights, and independence of later data."""

import numpy as np
import pandas as pd
import pytest
from history_cases import META, generated, table, with_another_future

from rltune.traces.estimates import calibrated as module, estimate_jobs
from rltune.traces.estimates.accuracy import accuracy
from rltune.traces.estimates.calibrated import GIVEN, HISTORY, RECALIBRATED, TOO_LITTLE_KNOWN, calibrated
from rltune.traces.estimates.kinds import history_lightgbm

MEAN, VARIANCE = 6.0, 2.25
"""Of the logarithm of run times, where they are normal."""


def normal_jobs(count: int, apart_s: float = 30.0) -> pd.DataFrame:
    """Jobs that differ in nothing but their run times."""
    run = np.exp(np.random.default_rng(3).normal(MEAN, np.sqrt(VARIANCE), count))
    return table([{"submit_s": apart_s * i, "run_s": r} for i, r in enumerate(run)])


def blurred(jobs: pd.DataFrame, sigma: float = 1.0) -> np.ndarray:
    return estimate_jobs(jobs, META, f"lognormal-{sigma:g}", 0)["estimate_s"].to_numpy()


def rms(estimate_s: np.ndarray, jobs: pd.DataFrame, rows: slice) -> float:
    return float(np.sqrt(np.mean(np.log(np.asarray(estimate_s) / jobs["run_s"])[rows] ** 2)))


def test_a_posterior_known_in_closed_form():
    """Normal logarithms: precisions add up, and the mean is weighted by them."""
    jobs = normal_jobs(20_000)
    given = blurred(jobs)
    made = calibrated(jobs, META, given)
    posterior = np.exp((MEAN / VARIANCE + np.log(given)) / (1 / VARIANCE + 1))
    late = slice(10_000, None)
    assert set(made["source"][late]) == {RECALIBRATED}, "there is nothing else to learn"
    off = np.abs(np.log(made["calibrated_s"] / posterior))[late]
    assert off.median() < 0.03 and off.quantile(0.95) < 0.15
    assert rms(made["calibrated_s"], jobs, late) < 0.86 and rms(given, jobs, late) > 0.97


def test_exact_estimates_are_calibrated():
    jobs = generated(4000).assign(run_s=lambda j: j["run_s"] / 50)
    assert (jobs["run_s"] < 1).any()
    given = estimate_jobs(jobs, META, "exact", 0)["estimate_s"]
    made = calibrated(jobs, META, given.to_numpy())
    assert made["calibrated_s"].tolist() == given.tolist()
    assert set(made["source"]) == {GIVEN, TOO_LITTLE_KNOWN}


def test_what_jobs_like_it_ran_is_learned():
    jobs = generated(8000)
    given = blurred(jobs)
    made = calibrated(jobs, META, given)
    late = slice(4000, None)
    assert set(made["source"][late]) == {HISTORY}
    assert rms(made["calibrated_s"], jobs, late) < 0.6 * rms(given, jobs, late)
    near, uncalibrated = (
        accuracy(np.asarray(e)[late], jobs["run_s"].to_numpy()[late]) for e in (made["calibrated_s"], given)
    )
    assert near["spearman"] > uncalibrated["spearman"]


def test_estimates_that_become_right_are_calibrated_again():
    """Ten times too long for the first third, then exact."""
    jobs = normal_jobs(12_000)
    given = jobs["run_s"].to_numpy() * np.where(np.arange(12_000) < 4000, 10.0, 1.0)
    made = calibrated(jobs, META, np.maximum(given, 1))
    assert set(made["source"][3500:4000]) & {RECALIBRATED, HISTORY}, "what is always wrong alike is corrected"
    assert rms(made["calibrated_s"], jobs, slice(3500, 4000)) < 0.3
    assert made["calibrated_s"][11_000:].tolist() == np.maximum(given, 1)[11_000:].tolist()


@pytest.mark.parametrize("when", [0.5, 0.62, 0.9])
@pytest.mark.parametrize("factor", [0.01, 50.0])
def test_later_data_have_no_influence(when, factor, monkeypatch):
    """Neither run times that are not known yet nor later jobs and their estimates."""
    for name, value in (("FIRST_JOBS", 200), ("EVERY_JOBS", 150)):
        monkeypatch.setattr(history_lightgbm, name, value)
    monkeypatch.setattr(module, "EVALUATED", 50)
    jobs = generated(1500).assign(run_s=lambda j: 5 * j["run_s"])  # many still run at any time
    given = blurred(jobs)
    now_s = when * jobs["submit_s"].iloc[-1]
    until = (jobs["submit_s"] <= now_s).to_numpy()
    other = with_another_future(jobs, now_s, factor)
    assert not np.array_equal(other["run_s"][until], jobs["run_s"][until]), "some of them still run"
    plain, changed = calibrated(jobs, META, given), calibrated(other, META, np.where(until, given, factor * given))
    assert {HISTORY, RECALIBRATED} & set(plain["source"][until])
    pd.testing.assert_frame_equal(plain[until], changed[until])


def test_later_jobs_make_no_difference_and_the_same_rows_give_the_same_bytes():
    jobs = generated(5000)
    given = blurred(jobs)
    whole = calibrated(jobs, META, given)
    pd.testing.assert_frame_equal(whole.head(4200), calibrated(jobs.head(4200), META, given[:4200]), check_exact=True)
    pd.testing.assert_frame_equal(whole, calibrated(jobs, META, given), check_exact=True)


def test_each_known_job_stands_for_those_that_still_run():
    elapsed = np.array([10.0, 20.0, 30.0, 40.0, -5.0])  # the last has not started
    assert module.censoring_weights(elapsed, np.array([1.0, 10.0, 15.0, 30.0, 40.0])) == pytest.approx(
        [5 / 4, 5 / 4, 5 / 3, 5 / 2, 5]
    )
    assert module.censoring_weights(np.arange(1000.0), np.array([999.0])) == module.HEAVIEST


def test_no_input_tells_the_date():
    """The same jobs a year later, behind as many others, look the same but for those others."""
    jobs = generated(400)
    seen = module.inputs(jobs, META, np.log(blurred(jobs)))
    later = module.inputs(jobs.assign(submit_s=jobs["submit_s"] + 3.2e7), META, np.log(blurred(jobs)))
    pd.testing.assert_frame_equal(seen, later)
    assert not [name for name in seen if "known" in name or name in ("hour", "weekday")]


def test_known_inputs():
    jobs = table([{"submit_s": s, "run_s": 1000, "user": u} for s, u in ((0, "a"), (5, "b"), (7, "a"), (7, "a"))])
    seen = module.inputs(jobs, META, np.array([1.0, 9.0, 3.0, 4.0]))
    assert seen["user given"].tolist() == pytest.approx([np.nan, np.nan, 1, 2], nan_ok=True)
    assert seen["all jobs given, recent"].tolist() == pytest.approx([np.nan, 1, 5, 13 / 3], nan_ok=True)
    assert seen["user given, spread"].tolist() == pytest.approx([np.nan, np.nan, 0, 1], nan_ok=True)
    assert seen["user came last"].tolist() == pytest.approx([np.nan, np.nan, np.log(8), 0], nan_ok=True)
    assert seen["user latest"].isna().all(), "none has ended"


def test_a_recalibrated_line_goes_on_beyond_what_was_seen():
    x = np.linspace(0, 10, 4001)
    line = module.recalibration(x, 3 + 2 * x, np.ones(4001))
    assert line(np.array([-5.0, 4.0, 20.0])) == pytest.approx([-7, 11, 43])
