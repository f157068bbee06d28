"""The evaluation: everyone on the same windows of the test part, and nothing else."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from agent_fakes import SMALLEST, run_config, whole_workload

from rltune.cluster.workload import Workload
from rltune.config import Cell, SimulationConfig
from rltune.errors import ConfigError, DataError
from rltune.evaluation.compare import where
from rltune.evaluation.evaluate import SAMPLE, Evaluation, evaluate, evaluate_baselines, with_baselines
from rltune.simulator import batch

CELL = Cell("t", "c", "fifo", "wait", "none", "lookahead", "strict", "unsampled", "exact", "quick", 1)


@pytest.fixture(scope="module")
def work() -> Workload:
    return whole_workload(1500, seed=3)


@pytest.fixture(scope="module")
def results(work: Workload) -> Evaluation:
    config = run_config(sequence_jobs=[32, 500, 64])
    found = evaluate(CELL, SMALLEST, work, config)
    baselines = evaluate_baselines(work, config, ["strict", "any"])
    return found._replace(windows=with_baselines(found.windows, baselines, "strict"))


def of(frame: pd.DataFrame, **values: object) -> pd.DataFrame:
    return where(frame, **values).reset_index(drop=True)


def test_all_schedulers_see_the_same_windows_of_the_test_part(results, work):
    windows, split = results.windows, work.split
    assert set(windows["sequence_jobs"]) == {32, 64}, "a length that does not fit is left out"
    validation = of(windows, role="baseline_validation")
    assert validation["first_job"].min() == split.validation[0]
    assert (validation["first_job"] + validation["sequence_jobs"] <= split.validation[1]).all()
    for length, rows in windows[windows["role"] != "baseline_validation"].groupby("sequence_jobs"):
        (start,) = {tuple(r["first_job"]) for _, r in rows.groupby(["role", "policy", "backfill", "placement"])}
        assert start[0] == split.test[0] and start[-1] + length <= split.test[1]
        assert (np.diff(start) == length).all()
    counts = dict.fromkeys(("rltune", "base", "base_best_fit", "random"), 6)
    counts |= dict.fromkeys(("baseline", "baseline_validation"), 144)
    assert windows["role"].value_counts().to_dict() == counts


def test_agent_and_base_are_run_in_other_placements_and_localities_too(results, work):
    others = [("best_fit", "strict"), ("algorithm1", "strict"), ("lookahead", "soonest_end")]
    also = [{"placement": p, "locality": loc} for p, loc in [("lookahead", "strict"), *others]]
    windows, table, _ = evaluate(CELL, SMALLEST, work, run_config(sequence_jobs=[64], also=also))
    plain = of(results.windows, sequence_jobs=64)
    assert set(table["role"]) == {"rltune", "base"}
    found = windows[windows["role"].isin(["rltune_also", "base_also"])]
    kinds = found[["role", "placement", "locality"]].drop_duplicates()
    assert list(kinds.itertuples(index=False, name=None)) == [
        (role, *choice) for choice in others for role in ("rltune_also", "base_also")
    ], "the cell's own is not run twice"
    of_cell = of(windows, role="base")
    assert set(zip(of_cell["placement"], of_cell["locality"], strict=True)) == {("lookahead", "strict")}
    for _, rows in found.groupby(["role", "placement", "locality"]):
        assert list(rows["first_job"]) == list(of_cell["first_job"]) and set(rows["policy"]) == {"fifo"}
    columns = ["window", "first_job", "wait_s", "jct_s", "bsld", "utilisation_span"]
    base = of(found, role="base_also", placement="best_fit")
    pd.testing.assert_frame_equal(base[columns], of(plain, role="base_best_fit")[columns])
    for role in ("rltune", "base", "random", "base_best_fit"):
        pd.testing.assert_frame_equal(of(windows, role=role)[columns], of(plain, role=role)[columns])
    agent = of(found, role="rltune_also", placement="best_fit")["wait_s"]
    saf = of(plain, role="baseline", policy="saf", backfill="none")["wait_s"]
    assert agent.tolist() == pytest.approx(saf.tolist()) and agent.mean() < base["wait_s"].mean()


def test_a_sample_of_placement_questions_is_solved_twice_to_the_same_optimum(work):
    """Sharing a node and splitting a job cost something, so that the presolve leaves questions to the solver."""
    work = replace(work, slowdowns={"multi_node_slowdown": 1.2, "interference_slowdown": 1.25})
    config = run_config(sequence_jobs=[64], also=[{"placement": "lookahead_cvxpy"}])
    windows, _, twice = evaluate(CELL, SMALLEST, work, config)
    assert of(windows, role="rltune")["milp_calls"].sum() > SAMPLE, "else the sample is all there is"
    assert 0 < len(twice) <= SAMPLE and twice["agree"].all() and {"glpk_ms", "cvxpy_ms"} <= set(twice)
    best_fit = evaluate(CELL.but(placement="best_fit"), SMALLEST, work, run_config(sequence_jobs=[64]))
    in_cvxpy = of(windows, role="rltune_also")
    assert set(in_cvxpy["placement"]) == {"lookahead_cvxpy"} and in_cvxpy["milp_calls"].sum() > SAMPLE
    assert in_cvxpy["wait_s"].mean() == pytest.approx(of(windows, role="rltune")["wait_s"].mean(), rel=0.05)
    assert best_fit.placements.empty, "without the placement model there is no question"


def test_job_rows_agree_with_window_rows(results):
    windows, jobs, _ = results
    means = jobs.groupby(["role", "sequence_jobs", "window"])[["wait_s", "jct_s", "bsld"]].mean()
    for _, row in windows[windows["role"].isin(["rltune", "base"])].iterrows():
        got = means.loc[(row["role"], row["sequence_jobs"], row["window"])]
        assert got.to_numpy() == pytest.approx(row[["wait_s", "jct_s", "bsld"]].to_numpy(float))


def test_solver_counts_stand_once_a_batch(results):
    windows = results.windows
    first = windows[(windows["role"] == "rltune") & (windows["window"] == 0)]
    assert (first["milp_asked"] > 0).all()
    assert (first["milp_asked"] == first["milp_presolved"] + first["milp_cached"] + first["milp_calls"]).all()
    assert not windows.loc[windows["window"] > 0, "milp_asked"].any()


def test_no_window_at_all_is_an_error():
    with pytest.raises(ConfigError, match="no test window"):
        evaluate(CELL, SMALLEST, whole_workload(200, seed=3), run_config(sequence_jobs=[256]))


def test_baselines_of_other_windows_are_refused(results):
    other = of(results.windows, role="baseline", sequence_jobs=64)
    with pytest.raises(DataError, match="other test windows or localities"):
        with_baselines(results.windows[results.windows["role"] == "rltune"], other, "strict")


def test_baselines_are_run_in_every_locality_asked_for(work):
    config = run_config(sequence_jobs=[64], baseline_policies=["fifo", "saf"], baseline_backfills=["none", "easy"])
    both, alone = (
        evaluate_baselines(work, config, names).drop(columns="seconds") for names in (("strict", "any"), ("strict",))
    )
    assert set(both["locality"]) == {"strict", "any"} and len(both) == 2 * len(alone)
    pd.testing.assert_frame_equal(of(both, locality="strict"), alone)


def test_the_agent_is_compiled_before_its_windows_are_timed(monkeypatch, work, results):
    """Else the first of all simulations, the agent's, would bear what numba takes to load or compile it."""
    monkeypatch.setattr("rltune.evaluation.contenders.simulate", spy := Mock(wraps=batch.simulate))
    windows = evaluate(CELL, SMALLEST, work, run_config(sequence_jobs=[64])).windows
    assert [len(call.args[2]) for call in spy.call_args_list[:2]] == [1, len(of(windows, role="rltune"))]


def test_everyone_goes_by_the_rules_of_the_simulation(monkeypatch, work):
    """The simulator was given them, and all rows say by which they were made, but for the maximum waits."""
    monkeypatch.setattr("rltune.evaluation.contenders.simulate", spy := Mock(wraps=batch.simulate))
    cell = CELL.but(placement="spread", locality="plus_one", backfill="easy")
    rules = SimulationConfig(overrun="now", sticky_head=True, max_wait_h={8: 24.0})
    config = run_config(rules, sequence_jobs=[64], baseline_policies=["sjf"])
    windows = pd.concat(
        [evaluate(cell, SMALLEST, work, config).windows, evaluate_baselines(work, config, ["plus_one"])]
    )
    seen = [call.args[4] for call in spy.call_args_list]
    assert seen and all(scheduler.max_wait_h == {8: 24.0} for scheduler in seen)
    for name, value in {**rules.model_dump(exclude={"max_wait_h"}), "locality": "plus_one"}.items():
        assert {getattr(scheduler, name) for scheduler in seen} == {value} == set(windows[name])
    assert {s.placement for s in seen} == {"spread", "best_fit"}
