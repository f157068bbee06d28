"""Makespan, utilisation, waits and intervals of made-up accounts with known answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rltune.evaluation.deployment import compare, fidelity, in_use, machinery, per_run
from rltune.evaluation.paired import Judge

JUDGE = Judge(bootstrap=300)
GPUS = 4


def run(scheduler: str, repetition: int, waits: list[float], run_s: float = 100.0, gpus: int = 2) -> pd.DataFrame:
    """Jobs submitted every 50 s that wait so long and run 100 s on two GPUs."""
    at = 50.0 * np.arange(len(waits))
    return pd.DataFrame({
        "scheduler": scheduler, "repetition": repetition, "index": range(len(waits)), "asked_gpus": gpus, "at_s": at,
        "submit_s": at + 1, "start_s": at + 1 + waits, "end_s": at + 1 + waits + run_s, "run_s": run_s, "state": "COMPLETED",
    })  # fmt: skip


def test_a_run_in_figures() -> None:
    (row,) = per_run(run("slurm", 1, [0.0, 0.0, 60.0, 40.0]), GPUS).to_dict("records")
    assert row["makespan_s"] == 290.0 and row["utilisation"] == pytest.approx(4 * 2 * 100 / (4 * 290))
    assert (row["wait_s"], row["wait_median_s"], row["jct_s"], row["bsld"]) == (25.0, 20.0, 125.0, 1.25)
    assert (row["jobs"], row["others"]) == (4, 0)


def test_jobs_that_did_not_complete_are_counted_and_those_that_never_ran_left_out() -> None:
    jobs = run("slurm", 1, [0.0, 0.0, 60.0])
    jobs.loc[1, "state"] = "TIMEOUT"
    jobs.loc[2, ["state", "start_s"]] = ["CANCELLED", np.nan]
    (row,) = per_run(jobs, GPUS).to_dict("records")
    assert (row["jobs"], row["others"], row["wait_s"]) == (3, 2, 0.0)


def test_comparisons_pair_blocks_and_repetitions_that_both_have() -> None:
    waits = list(np.random.default_rng(1).uniform(100, 400, 40))
    jobs = pd.concat([run("slurm", k, waits) for k in (1, 2, 3)] + [run("rltune", k, [w / 2 for w in waits]) for k in (1, 2)]
                     + [run("saf", k, waits) for k in (1, 2, 3)])  # fmt: skip
    found = compare(jobs, GPUS, 10, JUDGE).set_index(["ours", "theirs", "measure"])
    wait = found.loc[("rltune", "slurm", "wait")]
    assert wait["gain"] == pytest.approx(0.5) and wait["windows"] == 8 and wait["low"] == pytest.approx(0.5)
    makespan = found.loc[("rltune", "slurm", "makespan")]
    assert makespan["windows"] == 2 and 0 < makespan["gain"] < 0.1
    assert found.loc[("rltune", "slurm", "utilisation"), "gain"] == pytest.approx(1 / (1 - makespan["gain"]) - 1)
    assert found.loc[("saf", "slurm", "wait"), "gain"] == 0 and found.loc[("saf", "slurm", "wait"), "windows"] == 12
    pairs = {key[:2] for key in found.index}
    assert pairs == {("rltune", "slurm"), ("rltune", "saf"), ("saf", "slurm")}


def test_use_over_time_has_the_area_of_the_jobs() -> None:
    jobs = pd.concat([run("slurm", 1, [0.0, 30.0]), run("rltune", 1, [0.0, 500.0])])
    used = in_use(jobs, GPUS, 60.0)
    for scheduler, mine in used.groupby("scheduler"):
        assert (mine["utilisation"] * GPUS * 60).sum() == pytest.approx(2 * 2 * 100)
        assert (mine["waiting"] * 60).sum() == pytest.approx(30.0 if scheduler == "slurm" else 500.0)
        assert len(mine) == 11, "until the last end of any of them"
    assert (used["utilisation"] <= 1).all()


def test_what_the_machinery_took() -> None:
    jobs = run("rltune", 1, [0.0, 0.0, 60.0])
    jobs["end_s"] += 7.0
    cycles = pd.DataFrame({
        "scheduler": "rltune", "repetition": 1, "took_s": [5.0, 15.0], "ok": [True, False], "changed": [3.0, np.nan],
    })  # fmt: skip
    facts = pd.DataFrame([{"scheduler": "rltune", "repetition": 1, "speed": 100.0, "true_s": 9.0}])
    (row,) = machinery(jobs, cycles, facts).to_dict("records")
    assert (row["late_s"], row["cycles"], row["failed"], row["cycle_s"], row["changed"]) == (1.0, 2, 1, 10.0, 3.0)
    assert row["longer_s"] == 7.0 and row["turn_s"] == pytest.approx(161 - 158), "158: the second job's end"
    (alone,) = machinery(jobs.assign(scheduler="slurm"), cycles, facts.assign(scheduler="slurm")).to_dict("records")
    assert alone["cycles"] == 0 and np.isnan(alone["cycle_s"])


def test_the_simulator_against_slurm() -> None:
    waits = [0.0, 10.0, 20.0, 90.0]
    measured, simulated = run("slurm", 1, waits), run("slurm", 1, [w / 2 for w in waits])
    (row,) = fidelity(measured, pd.concat([simulated, run("saf", 1, waits)]), GPUS).to_dict("records")
    assert row["wait_s_error"] == pytest.approx(-0.5) and row["rank"] == pytest.approx(1.0) and row["apart_s"] == 15.0
    assert row["makespan_s_slurm"] - row["makespan_s_simulated"] == pytest.approx(45.0)
