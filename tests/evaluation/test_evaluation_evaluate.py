"""The evaluation: everyone on the same windows of the test part, and nothing else."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from agent_fakes import workload

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.ways import way_of
from rltune.cluster.fit import Jobs
from rltune.config import Cell, LookaheadConfig, SimulationConfig
from rltune.config.run import EvaluationConfig
from rltune.errors import ConfigError, DataError
from rltune.evaluation.compare import compare, strong_baseline
from rltune.evaluation.evaluate import evaluate, evaluate_baselines
from rltune.policies import OWN, policy
from rltune.simulator import batch
from rltune.simulator.config import SchedulerConfig
from rltune.traces.split import split_points

CELL = Cell("t", "c", "fifo", "wait", "none", "lookahead", "strict", "unsampled", "exact", "quick", 1)
# the logit is minus the job size: smallest area first
RULES = SimulationConfig()
SMALLEST = TrainedPolicy((-np.eye(8)[:, 1:2], np.zeros(1)), {"features": "unsampled"})


@pytest.fixture(scope="module")
def results():
    jobs, layout = workload(1500, seed=3)
    ids = np.array([f"id{i}" for i in range(len(jobs.gpus))])
    split = split_points(len(ids))
    config = EvaluationConfig(sequence_jobs=[32, 500, 64])
    windows, table = evaluate(CELL, SMALLEST, jobs, ids, layout, split, config, LookaheadConfig(), RULES)
    windows = pd.concat([windows, evaluate_baselines(jobs, layout, split, config, RULES)], ignore_index=True)
    return windows, table, split, jobs


def test_all_schedulers_see_the_same_windows_of_the_test_part(results):
    windows, _, split, _ = results
    assert set(windows["sequence_jobs"]) == {32, 64}, "a length that does not fit is left out"
    held = windows["role"] == "baseline_validation"
    assert windows.loc[held, "first_job"].min() == split.validation[0]
    assert (windows.loc[held, "first_job"] + windows.loc[held, "sequence_jobs"] <= split.validation[1]).all()
    for length, rows in windows[~held].groupby("sequence_jobs"):
        starts = {tuple(r["first_job"]) for _, r in rows.groupby(["role", "policy", "backfill", "placement"])}
        assert len(starts) == 1
        (start,) = starts
        assert start[0] == split.test[0] and start[-1] + length <= split.test[1]
        assert (np.diff(start) == length).all()
    assert windows.groupby("role")["policy"].count().to_dict() == {
        "rltune": 6,
        "base": 6,
        "base_best_fit": 6,
        "random": 6,
        "baseline": 144,
        "baseline_validation": 144,
    }


def test_agent_and_base_are_run_in_other_placements_and_localities_too(results):
    plain, _, split, jobs = results
    layout = workload(1500, seed=3)[1]
    ids = np.arange(1500).astype(str)
    also = [
        {"placement": "lookahead"},
        {"placement": "best_fit"},
        {"placement": "algorithm1"},
        {"placement": "lookahead", "locality": "soonest_end"},
    ]
    config = EvaluationConfig(sequence_jobs=[64], also=also)
    windows, table = evaluate(CELL, SMALLEST, jobs, ids, layout, split, config, LookaheadConfig(), RULES)
    assert set(table["role"]) == {"rltune", "base"}
    others = windows[windows["role"].isin(["rltune_also", "base_also"])]
    asked = [("best_fit", "strict"), ("algorithm1", "strict"), ("lookahead", "soonest_end")]
    kinds = others[["role", "placement", "locality"]].drop_duplicates()
    assert list(kinds.itertuples(index=False, name=None)) == [
        (role, *choice) for choice in asked for role in ("rltune_also", "base_also")
    ], "the cell's own is not run twice"
    own = windows[windows["role"] == "base"]
    assert set(zip(own["placement"], own["locality"], strict=True)) == {("lookahead", "strict")}
    for _, rows in others.groupby(["role", "placement", "locality"]):
        assert list(rows["first_job"]) == list(own["first_job"]) and set(rows["policy"]) == {"fifo"}
    columns = ["window", "first_job", "wait_s", "jct_s", "bsld", "utilisation_span"]

    def of(frame: pd.DataFrame, role: str, **values: str) -> pd.DataFrame:
        for column, value in {"role": role, "sequence_jobs": 64, **values}.items():
            frame = frame[frame[column] == value]
        return frame[columns].reset_index(drop=True)

    pd.testing.assert_frame_equal(of(others, "base_also", placement="best_fit"), of(plain, "base_best_fit"))
    for role in ("rltune", "base", "random", "base_best_fit"):
        pd.testing.assert_frame_equal(of(windows, role), of(plain, role))
    agent = of(others, "rltune_also", placement="best_fit")["wait_s"]
    assert agent.mean() < of(others, "base_also", placement="best_fit")["wait_s"].mean(), "smallest area, not FIFO"
    assert agent.to_numpy() == pytest.approx(of(plain, "baseline", policy="saf", backfill="none")["wait_s"].to_numpy())


def test_job_rows_agree_with_window_rows(results):
    windows, jobs, _, _ = results
    means = jobs.groupby(["role", "sequence_jobs", "window"])[["wait_s", "jct_s", "bsld"]].mean()
    for _, row in windows[windows["role"].isin(["rltune", "base"])].iterrows():
        got = means.loc[(row["role"], row["sequence_jobs"], row["window"])]
        assert got.to_numpy() == pytest.approx(row[["wait_s", "jct_s", "bsld"]].to_numpy(float))


def test_an_agent_that_ranks_like_a_policy_waits_like_it(results):
    windows, _, _, _ = results
    rows = windows[windows["sequence_jobs"] == 64]
    agent = rows[rows["role"] == "rltune"]["wait_s"].mean()
    saf = rows[(rows["policy"] == "saf") & (rows["backfill"] == "none") & (rows["role"] == "baseline")]["wait_s"].mean()
    base = rows[rows["role"] == "base"]["wait_s"].mean()
    assert agent == pytest.approx(saf, rel=0.1) and agent < base


def test_the_random_order_is_a_mean_of_several_and_no_policy(results):
    windows, _, _, _ = results
    random = windows[(windows["role"] == "random") & (windows["sequence_jobs"] == 64)]
    base = windows[(windows["role"] == "base") & (windows["sequence_jobs"] == 64)]
    assert list(random["first_job"]) == list(base["first_job"])
    assert not np.allclose(random["wait_s"], base["wait_s"])
    assert (random["mean_queue"] > 0).all()


def test_solver_counts_stand_once_a_batch(results):
    windows, _, _, _ = results
    first = windows[(windows["role"] == "rltune") & (windows["window"] == 0)]
    assert (first["milp_asked"] > 0).all()
    assert (first["milp_asked"] == first["milp_settled"] + first["milp_cached"] + first["milp_calls"]).all()
    assert not windows.loc[windows["window"] > 0, "milp_asked"].any()


def test_no_window_at_all_is_an_error():
    jobs, layout = workload(200, seed=3)
    with pytest.raises(ConfigError, match="no test window"):
        evaluate(
            CELL,
            SMALLEST,
            jobs,
            np.arange(200).astype(str),
            layout,
            split_points(200),
            EvaluationConfig(sequence_jobs=[256]),
            LookaheadConfig(),
            RULES,
        )


def baselines(policies: list[str], rules: SimulationConfig = RULES, localities: tuple[str, ...] = ("strict",)):
    jobs, layout = workload(1500, seed=3)
    config = EvaluationConfig(sequence_jobs=[64], baseline_policies=policies, baseline_backfills=["none", "easy"])
    return evaluate_baselines(jobs, layout, split_points(1500), config, rules, localities)


def test_baselines_are_run_in_every_locality_asked_for():
    frame = baselines(["fifo", "saf"], localities=("strict", "any"))
    alone = baselines(["fifo", "saf"])
    assert set(frame["locality"]) == {"strict", "any"} and len(frame) == 2 * len(alone)
    strict = frame[frame["locality"] == "strict"].drop(columns="seconds").reset_index(drop=True)
    pd.testing.assert_frame_equal(strict, alone.drop(columns="seconds"))


def test_everyone_goes_by_the_rules_of_the_simulation(monkeypatch):
    """All rows say by which rules they were made, and the simulator was given them."""
    seen = []
    plain = batch.simulate

    def watch(jobs, layout, first, n, scheduler, *rest, **more):
        seen.append(scheduler)
        return plain(jobs, layout, first, n, scheduler, *rest, **more)

    monkeypatch.setattr("rltune.evaluation.evaluate.simulate", watch)
    jobs, layout = workload(1500, seed=3)
    cell = CELL.but(placement="spread", locality="plus_one", backfill="easy")
    rules = SimulationConfig(overrun="now", sticky_head=True, multi_node_slowdown=1.5)
    config = EvaluationConfig(sequence_jobs=[64], baseline_policies=["sjf"])
    ids = np.arange(1500).astype(str)
    windows, _ = evaluate(cell, SMALLEST, jobs, ids, layout, split_points(1500), config, LookaheadConfig(), rules)
    windows = pd.concat([windows, evaluate_baselines(jobs, layout, split_points(1500), config, rules, ["plus_one"])])
    for name, value in {**rules.model_dump(), "locality": "plus_one"}.items():
        assert {getattr(scheduler, name) for scheduler in seen} == {value} == set(windows[name])
    assert {s.placement for s in seen} == {"spread", "best_fit"}


def test_a_policy_of_ones_own_is_a_baseline_like_the_built_in_one_it_copies(monkeypatch):
    monkeypatch.setitem(OWN, "my_sjf", None)
    policy("my_sjf")(lambda queue, now: queue.estimate_s)
    frame = baselines(["sjf", "my_sjf"])
    own, built_in = (
        frame[frame["policy"] == name].drop(columns=["policy", "seconds"]).reset_index(drop=True)
        for name in ("my_sjf", "sjf")
    )
    columns = ["role", "backfill", "window", "wait_s", "jct_s", "bsld", "largest_wait_s", "utilisation", "makespan_s"]
    pd.testing.assert_frame_equal(own[columns], built_in[columns])
    assert own["wait_s"].sum() > 0


def test_an_unknown_baseline_lists_what_exists():
    with pytest.raises(ConfigError, match="found nope; allowed: fifo, sjf, saf"):
        baselines(["fifo", "nope"])


def test_more_utilisation_is_better(results):
    windows, _, _, _ = results
    agent, base = ({"role": role} for role in ("rltune", "base"))
    found = compare(windows, "utilisation", 64, agent, base, bootstrap=200)
    assert found.improvement == pytest.approx(found.ours_mean / found.theirs_mean - 1)
    assert found.low <= found.improvement <= found.high
    rows = windows[(windows["role"] == "baseline") & (windows["sequence_jobs"] == 64)]
    means = rows.groupby(["policy", "backfill", "placement"])["utilisation"].mean()
    best = strong_baseline(windows, "utilisation", 64)
    assert means[best["policy"], best["backfill"], best["placement"]] == means.max() > means.min()


def test_what_the_agent_alone_uses_calibrated_changes_nobody_else():
    jobs, layout = workload(1500, seed=3)
    calibrated = jobs._replace(row=jobs.row.copy())
    calibrated.row["estimate_s"] = jobs.run_s
    config, ids = EvaluationConfig(sequence_jobs=[64]), np.arange(1500).astype(str)
    cell = CELL.but(backfill="easy", placement="best_fit")
    way = way_of(SchedulerConfig(cell.policy, cell.backfill))

    def judged(uses_calibrated: bool, told: Jobs | None) -> pd.DataFrame:
        policy = replace(
            SMALLEST, facts={**SMALLEST.facts, "way": asdict(replace(way, uses_calibrated=uses_calibrated))}
        )
        given = cell, policy, jobs, ids, layout, split_points(1500), config, LookaheadConfig(), RULES
        return evaluate(*given, calibrated=told)[0]

    plain, told = judged(False, calibrated), judged(True, calibrated)
    for role in ("base", "random"):
        assert plain.loc[plain["role"] == role, "wait_s"].tolist() == told.loc[told["role"] == role, "wait_s"].tolist()
    waits = [frame.loc[frame["role"] == "rltune", "wait_s"].mean() for frame in (plain, told)]
    assert waits[1] < waits[0], "exact estimates are worth something"
    with pytest.raises(DataError, match="goes by beliefs about run times, found a workload without any"):
        judged(True, None)
