"""Rules for the GPU type on windows: who is compared, what a price is chosen on, and what the numbers add up to."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from agent_fakes import SMALLEST, jobs_frame, run_config, whole_workload
from workload_cases import cluster, group

from rltune.cluster.fit import compile_jobs, fit
from rltune.cluster.layout import build_layout
from rltune.cluster.workload import Workload
from rltune.config import Cell, SimulationConfig
from rltune.evaluation.contenders import Contender, by_window, contender_of, heuristics
from rltune.evaluation.evaluate import evaluate, test_windows as windows_to_test
from rltune.evaluation.intervals import Intervals
from rltune.evaluation.studies import gpu_types
from rltune.evaluation.studies.gpu_types import (
    PRICES,
    RULE,
    contender,
    run_rule,
    summary,
    under_wrong_speeds,
    utilisation,
    windows,
)
from rltune.simulator.batch import simulate
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.metrics import job_table

CLUSTER = cluster([group(2, 8, "V100"), group(2, 8, "K80")], speeds={"V100": 4.0, "K80": 1.0, "P100": 2.0})
CELL = Cell("t", "c", "sjf", "jct", "easy", "best_fit", "strict", "unsampled", "exact", "quick", 1)
POLICIES = ["fifo", "sjf", "saf"]
CONFIG = run_config(sequence_jobs=[40], max_windows=3, baseline_policies=POLICIES)


@pytest.fixture(scope="module")
def work() -> Workload:
    fitted, _ = fit(jobs_frame(900, 1), CLUSTER)
    jobs = compile_jobs(fitted, fitted["run_s"].to_numpy(), CLUSTER)
    return replace(whole_workload(900), table=fitted, jobs=jobs, layout=build_layout(CLUSTER))


@pytest.fixture(scope="module")
def found(work: Workload) -> pd.DataFrame:
    return windows(work, CONFIG)


def test_every_rule_meets_every_window_once_and_of_the_priced_the_one_chosen_before(found):
    assert (found.groupby(RULE).size() == found["window"].nunique()).all()
    rules = found[RULE].drop_duplicates()
    together = rules["types"] == "joint"
    assert (rules["gpu_price"][~together] == 0).sum() == len(gpu_types.rules(POLICIES, priced=False))
    for priced in (rules[~together & (rules["gpu_price"] > 0)], rules[together]):
        assert sorted(priced["policy"]) == sorted(POLICIES) and set(priced["gpu_price"]) <= {0, *PRICES}


def test_an_agent_is_run_under_what_it_chose_next_to_the_rules(work, found):
    chose = {"policy": "sjf", "backfill": "conservative", "gpu_price": 0.1, "uses_calibrated": False}
    small_first = replace(SMALLEST, facts=SMALLEST.facts | {"scheduler": chose})
    both = windows(work, CONFIG, {CELL: small_first})
    [(length, first)] = windows_to_test(work.split, CONFIG.evaluation).items()
    of_agent = both[both["agent"] == CELL.name]
    assert both[both["agent"] == ""].equals(found.iloc[: len(both) - len(of_agent)])
    rule = of_agent[["policy", "backfill", "types", "gpu_price"]].drop_duplicates().to_numpy().tolist()
    assert rule == [["sjf", "conservative", "least", 0.1]] and len(of_agent) == 2 * found["window"].nunique()
    rows = summary(both, Intervals(200))
    start, row = (rows.query("agent != '' and network == @network").iloc[0] for network in (False, True))
    priced = rows.query("gpu_price > 0 and agent == '' and types == 'least'")["excess_s"].min()
    assert row["less_priced"] == pytest.approx(1 - row["excess_s"] / priced)
    assert row["less_start"] == pytest.approx(1 - row["excess_s"] / start["excess_s"]) and row["less_start"] != 0
    scheduler = SchedulerConfig("sjf", "conservative", types="least", gpu_price=0.1)
    assert (
        start["excess_s"]
        == run_rule(work, Contender(scheduler, lookahead=CONFIG.lookahead), first, length)["excess_s"].mean()
    )


def test_where_validation_has_no_window_there_is_no_price(work):
    few = replace(work, split=replace(work.split, validation=(700, 735)))
    rules = windows(few, CONFIG)[RULE].drop_duplicates()
    assert len(rules) == len(gpu_types.rules(POLICIES, priced=False)) and not rules["gpu_price"].any()


def test_rules_are_under_the_runs_simulation_as_agents_are(work):
    other_rules = run_config(SimulationConfig(overrun="now", sticky_head=True), sequence_jobs=[40])
    rule = contender(other_rules, SchedulerConfig("saf", "conservative", types="least")).scheduler
    assert rule.overrun == contender_of(other_rules, CELL).scheduler.overrun == "now"
    assert (rule.policy, rule.types, rule.sticky_head) == ("saf", "least", False)


def test_heuristics_reserve_for_all_jobs_where_agents_may_and_where_types_differ_in_speed(work):
    one_type = whole_workload(900)
    same, mixed = heuristics(CONFIG, one_type), heuristics(CONFIG, work)
    assert set(mixed) - set(same) == {f"{policy} conservative" for policy in POLICIES}
    assert heuristics(CONFIG, one_type, tuned=True) == mixed
    mean = by_window(work, mixed, np.array([720]), 40).groupby("who")["jct_s"].mean()
    assert mean["saf conservative"] < mean["saf easy"]


def test_the_test_part_has_no_say_in_the_price(work, found):
    row = work.jobs.row.copy()
    row["run_s"][work.split.test[0] :] = np.random.default_rng(3).uniform(1, 1e5, len(row) - work.split.test[0])
    other = windows(replace(work, jobs=work.jobs._replace(row=row)), CONFIG)
    assert (other[RULE].drop_duplicates().to_numpy() == found[RULE].drop_duplicates().to_numpy()).all()


def test_a_summary_adds_up(found):
    rows = summary(found, Intervals(200))
    parts = rows["run_s"] + rows["slower_s"] + rows["wait_s"]
    assert parts.to_numpy() == pytest.approx(rows["jct_s"].to_numpy())
    assert rows["run_s"].nunique() == 1 or np.ptp(rows["run_s"]) < 1e-6 * rows["run_s"].max()
    assert (rows["jct_s"] >= rows["bound_s"]).all() and (rows["slower_s"] > -1e-9).all()
    reference, unpriced = rows[rows["reference"]], rows.query("gpu_price == 0 and types != 'joint'")
    assert reference["excess_s"].item() == unpriced["excess_s"].min()
    others = rows[~rows["reference"]]
    assert others["less"].to_numpy() == pytest.approx(1 - others["excess_s"] / reference["excess_s"].item())


def test_an_agent_is_not_evaluated_under_placements_that_ignore_speeds(work):
    also = [{"placement": "algorithm1"}, {"placement": "lookahead"}, {"placement": "best_fit", "locality": "any"}]
    chose = {"policy": "sjf", "backfill": "conservative", "types": "joint", "uses_calibrated": False}
    planner = replace(SMALLEST, facts=SMALLEST.facts | {"scheduler": chose})
    found = evaluate(CELL, planner, work, run_config(sequence_jobs=[40], max_windows=3, also=also)).windows
    other = found[found["role"].isin(["rltune_also", "base_also"])]
    assert set(zip(other["placement"], other["locality"], strict=True)) == {("best_fit", "any")}


def test_wrong_speeds_cost_a_rule_that_plans_by_them(work, found):
    def excess(frame: pd.DataFrame) -> pd.Series:
        return frame.groupby(["types", "policy", "backfill", "gpu_price"])["excess_s"].mean()

    true, wrong = excess(found), excess(under_wrong_speeds(work, CONFIG, found, 0.5))
    assert excess(under_wrong_speeds(work, CONFIG, found, 0.0)).to_dict() == true[wrong.index].to_dict()
    assert {*wrong.index.unique("types")} == {*true.index.unique("types")}
    assert wrong["least"].max() > true[wrong.index]["least"].max()


def test_utilisation_by_type_against_a_count_of_every_job(work):
    scheduler = SchedulerConfig("saf", "easy", types="fastest_free")
    first, n = np.array([0, 100]), np.array([40, 60])
    state = simulate(work.jobs, work.layout, first, n, scheduler)
    used = utilisation(work, state)
    jobs = job_table(work.jobs, state)
    for s in range(2):
        rows = jobs[jobs["sequence"] == s].reset_index(drop=True)
        begin, end = rows["submit_s"].min(), rows["submit_s"].max()
        spent = dict.fromkeys(work.layout.types, 0.0)
        for i, job in rows.iterrows():
            run = state.run[s, i]
            node = state.chunk[s, run["at"]]["node"]
            kind = work.layout.types[work.layout.nodes.row[node]["type"]]
            spent[kind] += job["gpus"] * max(0.0, min(job["end_s"], end) - job["start_s"])
        assert used.loc[s].to_dict() == pytest.approx({t: v / 16 / (end - begin) for t, v in spent.items()})
