"""Makespan, utilisation, waits and intervals of made-up accounts with known answers."""

import numpy as np
import pandas as pd
import pytest
from workload_cases import cluster, group

from rltune.cluster.layout import build_layout
from rltune.evaluation.intervals import Intervals
from rltune.evaluation.studies.deployment import bars, by_class, compare, in_use, in_use_by_type, pairs_of, per_run
from rltune.evaluation.studies.deployment_machinery import machinery
from rltune.evaluation.studies.deployment_simulated import fidelity, predicted

INTERVALS = Intervals(bootstrap=300)
GPUS = 4


def run(scheduler: str, repetition: int, waits: list[float], run_s: float = 100.0, gpus: int = 2) -> pd.DataFrame:
    """Jobs submitted every 50 s that wait so long and run 100 s on two GPUs."""
    at = 50.0 * np.arange(len(waits))
    start = at + 1 + waits
    times = {"at_s": at, "submit_s": at + 1, "start_s": start, "end_s": start + run_s, "run_s": run_s, "lasts_s": run_s}
    asked = {"index": range(len(waits)), "asked_gpus": gpus, "state": "COMPLETED"}
    return pd.DataFrame({"scheduler": scheduler, "repetition": repetition, **asked, **times})


def under(rule: str, *frames: pd.DataFrame) -> pd.DataFrame:
    """Runs in the simulator."""
    return pd.concat(frames).assign(backfill=rule)


def test_a_run_in_figures():
    (row,) = per_run(run("slurm", 1, [0.0, 0.0, 60.0, 40.0]), GPUS).to_dict("records")
    assert row["makespan_s"] == 290.0 and row["utilisation"] == pytest.approx(4 * 2 * 100 / (4 * 290))
    assert (row["wait_s"], row["wait_median_s"], row["jct_s"], row["bsld"]) == (25.0, 20.0, 125.0, 1.25)
    assert (row["jobs"], row["others"]) == (4, 0)


def test_jobs_that_did_not_complete_are_counted_and_those_that_never_ran_left_out():
    jobs = run("slurm", 1, [0.0, 0.0, 60.0])
    jobs.loc[1, "state"] = "TIMEOUT"
    jobs.loc[2, ["state", "start_s"]] = ["CANCELLED", np.nan]
    (row,) = per_run(jobs, GPUS).to_dict("records")
    assert (row["jobs"], row["others"], row["untimed"], row["wait_s"]) == (3, 2, 1, 0.0)


def test_who_waits_longest_and_by_how_many_gpus_and_who_ends_last():
    jobs = run("slurm", 1, [0.0, 10.0, 20.0, 300.0])
    jobs["asked_gpus"] = [1, 1, 2, 4]
    (row,) = per_run(jobs, GPUS).to_dict("records")
    assert [row[f"wait_{gpus}_gpus_s"] for gpus in (1, 2, 4)] == [5.0, 20.0, 300.0] and row["wait_max_s"] == 300.0
    assert (row["last_gpus"], row["last_wait_s"]) == (4, 300.0)


def test_means_by_class_are_over_all_jobs_of_all_repetitions():
    one, two = run("slurm", 1, [0.0, 10.0, 20.0]), run("slurm", 2, [90.0])
    jobs = pd.concat([one, two, run("saf", 1, [1.0, 2.0, 3.0])]).assign(partition="all")
    jobs["qos"] = ["low", "high", "low", "low", "low", "high", "low"]
    found = by_class(jobs).set_index(["by", "name"])
    assert found.loc[("qos", "low"), ["jobs", "wait_slurm_s", "wait_saf_s"]].tolist() == [3, 110 / 3, 2.0]
    assert found.loc[("qos", "high"), ["jobs", "wait_slurm_s", "jct_slurm_s"]].tolist() == [1, 10.0, 110.0]
    assert found.loc[("partition", "all"), "wait_slurm_s"] == 30.0 and ("asked_gpus", 2) in found.index


def test_each_gpu_type_over_time_and_where_jobs_ran():
    """Two jobs of two GPUs on p100-1, one on k80-1 and one on both P100 nodes, the last two at once."""
    jobs = run("slurm", 1, [0.0, 60.0, 120.0, 180.0])
    jobs["node_list"] = ["p100-1", "k80-1", "p100-1", "p100-1,p100-2"]
    jobs["asked_gpus"] = [2, 2, 2, 2]
    used = in_use_by_type(jobs, {"p100": 4, "k80": 2}, 1000.0)
    assert used.set_index("gpu_type")["utilisation"].to_dict() == {"p100": 600 / 4000, "k80": 200 / 2000}
    nodes = build_layout(cluster([group(2, 2, "p100"), group(1, 2, "k80")])).nodes
    numbers = {"p100-1": 0, "p100-2": 1, "k80-1": 2}
    late = jobs.assign(start_s=[1.0, 61.0, 101.0, 201.0], end_s=[101.0, 161.0, 201.0, 301.0])
    drawn = bars(late, nodes, numbers)
    assert drawn[["job", "node", "gpu", "gpus"]].to_numpy().tolist() == [
        [0, 0, 0, 2],
        [1, 2, 0, 2],
        [2, 0, 0, 2],
        [3, 0, 0, 1],
        [3, 1, 0, 1],
    ]
    uneven = late.assign(asked_gpus=[2, 2, 2, 3])
    assert bars(uneven, nodes, numbers)["job"].tolist() == [0, 1, 2], "where each of three GPUs is is not recorded"


def test_pairs_with_and_without_types():
    names = ["slurm", "slurm_fastest", "rltune", "rltune_types"]
    found = pairs_of(pd.DataFrame({"scheduler": names}))
    assert found == [
        ("rltune_types", "slurm"),
        ("rltune_types", "slurm_fastest"),
        ("rltune", "slurm"),
        ("rltune", "slurm_fastest"),
        ("rltune_types", "rltune"),
        ("slurm_fastest", "slurm"),
    ]


def test_comparisons_are_over_the_repetitions_that_both_have():
    waits = list(np.random.default_rng(1).uniform(100, 400, 40))
    jobs = pd.concat(
        [run("slurm", k, waits) for k in (1, 2, 3)]
        + [run("rltune", k, [w / 2 for w in waits]) for k in (1, 2)]
        + [run("saf", k, waits) for k in (1, 2, 3)]
    )
    found = compare(jobs, GPUS, 10, INTERVALS).set_index(["ours", "theirs", "measure"])
    wait = found.loc[("rltune", "slurm", "wait")]
    assert wait["gain"] == pytest.approx(0.5) and wait["windows"] == 2 and wait["dropped"] == 0
    assert [wait["ours_mean"], wait["theirs_mean"]] == pytest.approx([np.mean(waits) / 2, np.mean(waits)])
    assert wait["blocks"] == 8 and wait["block_low"] == pytest.approx(0.5)
    makespan = found.loc[("rltune", "slurm", "makespan")]
    assert makespan["windows"] == 2 and 0 < makespan["gain"] < 0.1 and np.isnan(makespan["blocks"])
    assert found.loc[("rltune", "slurm", "utilisation"), "gain"] == pytest.approx(1 / (1 - makespan["gain"]) - 1)
    assert found.loc[("saf", "slurm", "wait"), "gain"] == 0 and found.loc[("saf", "slurm", "wait"), "windows"] == 3
    pairs = {key[:2] for key in found.index}
    assert pairs == {("rltune", "slurm"), ("rltune", "saf"), ("saf", "slurm")}


def test_an_interval_over_repetitions_is_as_wide_as_they_differ():
    waits = [float(w) for w in range(100, 140)]
    jobs = pd.concat(
        [run("slurm", k, waits) for k in (1, 2, 3)]
        + [run("rltune", k, [w * factor for w in waits]) for k, factor in ((1, 0.5), (2, 0.7), (3, 0.9))]
    )
    (wait,) = compare(jobs, GPUS, 10, INTERVALS).query("measure == 'wait'").to_dict("records")
    assert wait["gain"] == pytest.approx(0.3) and wait["low"] < 0.1 and wait["high"] > 0.5
    assert wait["low"] < wait["block_low"] <= 0.3 <= wait["block_high"] < wait["high"], "within, each is like itself"


def test_only_jobs_that_ran_under_both_are_compared():
    """One job waits very long under Slurm and has no start under the other, one is missing there altogether."""
    waits = [100.0, 200.0, 9000.0, 300.0]
    slurm, saf = run("slurm", 1, waits), run("saf", 1, [w / 2 for w in waits])
    saf.loc[2, "start_s"] = np.nan
    jobs = pd.concat([slurm, saf.drop(index=0), run("saf", 2, waits)])
    found = compare(jobs, GPUS, 2, INTERVALS).set_index("measure")
    assert found.loc["wait", "gain"] == pytest.approx(0.5) and found.loc["wait", "theirs_mean"] == 250.0
    assert set(found["dropped"]) == {2} and set(found["windows"]) == {1}
    assert found.loc["makespan", "theirs_mean"] == 551.0 - 51.0, "its 9,000 s are not in Slurm’s makespan either"


def test_use_over_time_has_the_area_of_the_jobs():
    jobs = pd.concat([run("slurm", 1, [0.0, 30.0]), run("rltune", 1, [0.0, 500.0])])
    used = in_use(jobs, GPUS, 60.0)
    for scheduler, rows in used.groupby("scheduler"):
        assert (rows["utilisation"] * GPUS * 60).sum() == pytest.approx(2 * 2 * 100)
        assert (rows["waiting"] * 60).sum() == pytest.approx(30.0 if scheduler == "slurm" else 500.0)
        assert len(rows) == 11, "until the last end of any of them"
    assert (used["utilisation"] <= 1).all()


def test_what_the_machinery_took():
    jobs = run("rltune", 1, [0.0, 0.0, 60.0])
    jobs["end_s"] += 7.0
    clock = {"began_s": [0.0, 60.0, 150.0], "took_s": [5.0, 15.0, 40.0]}
    did = {"ok": [True, False, True], "changed": [3.0, np.nan, 1.0]}
    cycles = pd.DataFrame({"scheduler": "rltune", "repetition": 1, **clock, **did})
    of_run = {"scheduler": "rltune", "repetition": 1, "speed": 100.0, "true_s": 9.0, "drift_s": 0.5}
    facts = pd.DataFrame([of_run | {"tries": 1, "retries": [], "resumed": [], "code": "c0de", "policy": "a9e47"}])
    (row,) = machinery(jobs, cycles, facts).to_dict("records")
    assert (row["late_s"], row["cycles"], row["failed"], row["cycle_s"], row["changed"]) == (1.0, 3, 1, 20.0, 4.0)
    assert (row["long_share"], row["gap_s"], row["drift_s"]) == (pytest.approx(1 / 3), 75.0, 0.5)
    assert row["longer_s"] == 7.0 and row["turn_s"] == pytest.approx(161 - 158), "158: the second job's end"
    (alone,) = machinery(jobs.assign(scheduler="slurm"), cycles, facts.assign(scheduler="slurm")).to_dict("records")
    assert alone["cycles"] == 0 and np.isnan(alone["cycle_s"])


def test_the_simulator_against_slurm():
    waits = [0.0, 10.0, 20.0, 90.0]
    measured = run("slurm", 1, waits)
    easy = under("easy", run("slurm", 1, [w / 2 for w in waits]), run("saf", 1, waits))
    simulated = pd.concat([easy, under("conservative", run("slurm", 1, waits[::-1]))])
    (row,) = fidelity(measured, simulated, GPUS).to_dict("records")
    assert row["wait_s_easy_error"] == pytest.approx(-0.5) and row["rank_easy"] == pytest.approx(1.0)
    assert row["makespan_s_slurm"] - row["makespan_s_easy"] == pytest.approx(45.0)
    assert row["wait_s_conservative_error"] == 0 and row["rank_conservative"] == pytest.approx(-1.0)


def test_the_simulator_is_asked_of_the_jobs_that_ran():
    measured = run("slurm", 1, [10.0, 20.0, 30.0])
    measured.loc[2, "start_s"] = np.nan
    (row,) = fidelity(measured, under("easy", run("slurm", 1, [10.0, 20.0, 900.0])), GPUS).to_dict("records")
    assert row["jobs"] == 2 and row["wait_s_easy"] == 15.0 and row["makespan_s_easy_error"] == 0


def test_what_the_simulator_predicts_of_an_order():
    waits = [100.0, 200.0, 300.0]
    measured = pd.concat([run("slurm", 1, waits), run("rltune", 1, [w * 0.6 for w in waits])])
    simulated = pd.concat(
        under(rule, run("slurm", 1, waits), run("rltune", 1, [w * factor for w in waits]))
        for rule, factor in (("easy", 0.8), ("conservative", 1.1))
    )
    found = predicted(measured, simulated, GPUS).set_index("measure")
    assert set(found.index) == {"wait", "makespan"} and set(found["repetitions"]) == {1}
    wait = found.loc["wait"]
    assert (wait["gain"], wait["gain_easy"], wait["gain_conservative"]) == pytest.approx((0.4, 0.2, -0.1))
    assert (wait["agrees_easy"], wait["agrees_conservative"]) == (1.0, 0.0) and (found["gain_easy"] > 0).all()
    idle = pd.concat([run(name, 1, [0.0]) for name in ("slurm", "rltune")])
    assert np.isnan(predicted(idle, under("easy", idle), GPUS).set_index("measure").loc["wait", "agrees_easy"])
