"""Offered load: arrivals thinned to a given value."""

import numpy as np
import pandas as pd
import pytest
from workload_cases import cluster, group, table

from rltune.cluster.fit import fit
from rltune.cluster.load import gpus_in_use, offered_load, within_load

RNG, N = np.random.default_rng(7), 1200
SIZES = zip(RNG.lognormal(6, 2, N).clip(1).round(), RNG.choice([1, 2, 4, 8], N))
JOBS = table([{"submit_s": 60.0 * i, "run_s": r, "gpus": int(g)} for i, (r, g) in enumerate(SIZES)])
SMALL = cluster([group(2, 8), group(2, 2)], gpu_types="ignore")


@pytest.mark.parametrize("load", [3.0, 6.0])
def test_thinning_reaches_the_load_from_below(load):
    plain, _ = fit(JOBS, SMALL)
    assert offered_load(plain, 20) > 6.0
    thin, audit = fit(JOBS, SMALL.model_copy(update={"balance": load}))
    assert 0.9 * load < offered_load(thin, 20) <= load
    assert audit.left_out == {f"thinned to an offered load of {load:g}": len(plain) - len(thin)}
    assert thin["submit_s"].is_monotonic_increasing and set(thin["job_id"]) < set(plain["job_id"])


def test_a_lower_load_keeps_a_part_of_the_jobs_of_a_higher_one():
    clusters = [SMALL.model_copy(update={"balance": load}) for load in (0.3, 0.6)]
    few, more = (set(fit(JOBS, cluster)[0]["job_id"]) for cluster in clusters)
    assert few < more


def test_thinning_goes_by_the_job_and_not_by_its_row():
    shuffled = JOBS.sample(frac=1, random_state=1)
    kept, again = (set(f.loc[within_load(f, 20, 0.5, len(f)), "job_id"]) for f in (JOBS, shuffled))
    assert kept == again


def test_nothing_is_added_where_the_load_is_lower():
    plain, _ = fit(JOBS, SMALL)
    same, audit = fit(JOBS, SMALL.model_copy(update={"balance": 1000.0}))
    assert same.equals(plain) and not audit.left_out
    (note,) = [remark for remark in audit.noted if "offered load" in remark]
    assert "not above 1000: none thinned" in note and audit.noted[note] == len(plain)


def test_gpus_that_a_log_used_at_once():
    """Two jobs of 4 and 2 GPUs side by side for two of four hours; without waits, the mean up to the last possible end."""
    jobs = pd.DataFrame({"submit_s": [0.0, 0.0, 0.0], "gpus": [4, 2, 1], "run_s": [7200.0, 7200.0, 7200.0]})
    assert gpus_in_use(jobs.assign(wait_s=[0.0, 0.0, 7200.0])) == 6
    assert gpus_in_use(jobs.assign(wait_s=[0.0, 7200.0, 7200.0])) == 4
    assert gpus_in_use(jobs.assign(wait_s=np.nan)) == 7
    spike = pd.DataFrame(
        {"submit_s": [0.0, 5000.0], "gpus": [4, 400], "run_s": [100_000.0, 10.0], "wait_s": [0.0, 0.0]}
    )
    assert gpus_in_use(spike) == 4, "a moment's use may be an error of the log"
