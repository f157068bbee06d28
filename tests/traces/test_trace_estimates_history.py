"""Estimates from earlier jobs: known answers, a brute-force reference, and independence of later data."""

import numpy as np
import pandas as pd
import pytest
from history_cases import META, generated, table, with_another_future
from hypothesis import given, strategies as st

from rltune.errors import DataError
from rltune.traces.estimates import FALL_BACKS, REALISTIC, estimate_jobs
from rltune.traces.estimates.history import GROUPS, LAST, START_S, all_known, end_s, rolling_median
from rltune.traces.estimates.kinds import history_lightgbm
from rltune.traces.estimates.kinds.history_lightgbm import EVERY_JOBS, FIRST_JOBS, GROWTH, MODEL, NO_MODEL
from rltune.traces.estimates.kinds.requested import FALL_BACK as NOT_REQUESTED

MODELS = [name for name in REALISTIC if name != "requested"]


users, waits = st.sampled_from(["a", "b", None]), st.sampled_from([0, 3, None])
job_rows = st.tuples(st.integers(0, 30), st.integers(1, 20), users, st.sampled_from([1, 2]), waits)


@given(st.lists(job_rows, min_size=1, max_size=40))
def test_the_median_is_that_of_a_loop(rows):
    rows.sort(key=lambda r: r[0])
    jobs = table([{"submit_s": s, "run_s": r, "user": u, "gpus": g, "wait_s": w} for s, r, u, g, w in rows])
    ended = end_s(jobs)
    got, source = rolling_median(all_known(jobs))
    for j in range(len(jobs)):
        for name, columns in GROUPS.items():
            own = [{"user": "user", "vc": "vc", "size": "gpus"}[c] for c in columns]
            if "user" in own and rows[j][2] is None:
                continue
            alike = [
                i
                for i in range(len(jobs))
                if ended[i] <= jobs["submit_s"][j]
                and all(jobs[c][i] == jobs[c][j] or pd.isna(jobs[c][i]) and pd.isna(jobs[c][j]) for c in own)
            ]
            alike = sorted(alike, key=lambda i: (ended[i], i))[-LAST:]
            if alike:
                assert source[j] == name
                assert got[j] == pytest.approx(np.exp(np.median(np.log(jobs["run_s"][alike]))))
                break
        else:
            assert got[j] == START_S


@pytest.mark.parametrize("when", [0.3, 0.62, 0.9])
@pytest.mark.parametrize("factor", [0.01, 50.0])
def test_later_data_have_no_influence_on_a_model(when, factor, monkeypatch):
    for name, value in (("FIRST_JOBS", 200), ("EVERY_JOBS", 150), ("ROUNDS", 10)):
        monkeypatch.setattr(history_lightgbm, name, value)
    jobs = generated(1500).assign(run_s=lambda j: 20 * j["run_s"])  # hundreds still run at any time
    now_s = when * jobs["submit_s"].iloc[-1]
    until = (jobs["submit_s"] <= now_s).to_numpy()
    plain, other = (
        estimate_jobs(j, META, "history-lightgbm", 0) for j in (jobs, with_another_future(jobs, now_s, factor))
    )
    assert (plain["source"][until] == MODEL).any()
    pd.testing.assert_frame_equal(plain[until], other[until])
    assert not plain[~until].equals(other[~until]), "the changes show later"


@pytest.mark.parametrize("kind", MODELS)
def test_later_jobs_make_no_difference(kind):
    """So estimates of a trace's first part are those of the whole trace."""
    jobs = generated(2500)
    whole, part = (estimate_jobs(j, META, kind, 0) for j in (jobs, jobs.head(1700)))
    pd.testing.assert_frame_equal(whole.head(1700), part)


def test_the_model_learns_and_repeats_itself():
    jobs = generated(6000)
    first = estimate_jobs(jobs, META, "history-lightgbm", 0)
    pd.testing.assert_frame_equal(first, estimate_jobs(jobs, META, "history-lightgbm", 0))
    assert set(first["source"]) == {MODEL, NO_MODEL}
    by_model = (first["source"] == MODEL).to_numpy()
    error = np.abs(np.log(first["estimate_s"] / jobs["run_s"]))[by_model]
    blind = np.abs(np.log(jobs["run_s"].median() / jobs["run_s"]))[by_model]
    assert error.median() < 0.6 * blind.median(), "users differ in their run times, which can be learned"


def test_when_models_are_trained():
    submit = np.arange(60_000, dtype=np.float64)
    begins, stops = zip(*history_lightgbm.training_points(submit, submit + 0.5), strict=True)
    assert begins[:2] == (FIRST_JOBS, FIRST_JOBS + EVERY_JOBS) and stops == (*begins[1:], 60_000)
    steps = np.diff(begins)
    assert (steps >= EVERY_JOBS).all() and steps[-1] == int(begins[-2] * GROWTH)
    assert history_lightgbm.training_points(submit[: FIRST_JOBS - 1], submit[: FIRST_JOBS - 1] + 0.5) == []
    assert history_lightgbm.training_points(submit[:5000], submit[:5000] + 1e9) == [], "none has ended"


def test_requested_is_the_users_own_and_the_rest_is_counted():
    jobs = generated(300)
    made = estimate_jobs(jobs, META, "requested", 0)
    there = jobs["requested_s"].notna()
    assert made["estimate_s"][there].tolist() == jobs["requested_s"][there].tolist()
    rolling = estimate_jobs(jobs, META, "history-rolling", 0)["estimate_s"]
    assert made["estimate_s"][~there].tolist() == rolling[~there].tolist()
    assert (made["source"] == NOT_REQUESTED).sum() == (~there).sum() > 0
    assert set(made["source"]) - set(FALL_BACKS) == {"requested"}
    with pytest.raises(DataError, match="trace t: estimate requested, but no job names"):
        estimate_jobs(jobs.assign(requested_s=np.nan), META, "requested", 0)


@pytest.mark.parametrize("kind", ["lognormal-1", *REALISTIC])
def test_every_estimate_is_at_least_a_second(kind):
    jobs = generated(200).assign(run_s=lambda j: j["run_s"] / 1e4, requested_s=lambda j: j["requested_s"] / 1e5)
    made = estimate_jobs(jobs, META, kind, 0)
    assert list(made) == ["estimate_s", "source"] and (made["estimate_s"] >= 1).all() and made["source"].notna().all()
