"""Steps of rules, headroom, groups of jobs: worked examples, and against what the simulator says."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from agent_fakes import run_config, whole_workload
from workload_cases import cluster, compiled, group

from rltune.cluster.workload import Workload, build_workload
from rltune.config import Cell
from rltune.config.context import Run
from rltune.errors import ConfigError
from rltune.evaluation.groups import by_group, losers, size_class, unequal
from rltune.evaluation.intervals import Intervals
from rltune.evaluation.studies.scheduling_rules import (
    BALANCED,
    Study,
    agents,
    balanced,
    has_steps,
    headroom,
    steps_of,
    too_short,
)
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.fairness import gini, jain_index
from rltune.simulator.metrics import sequence_table

QUICK = Intervals(200)
TWO_POOLS = cluster([group(1, 4)], [group(1, 4)])
ONE_POOL = cluster([group(1, 4)])
SAF = Cell("philly", "philly-192", "saf", "wait", "easy", "best_fit", "strict", "rich", "lognormal-1", "tuned", 1)
FIFO = SAF.but(policy="fifo", backfill="none")


def work_of(made: tuple) -> Workload:
    """A workload of these jobs and this layout."""
    jobs, layout = made
    return replace(
        whole_workload(60), table=pd.DataFrame({"calibrated_s": jobs.row["estimate_s"]}), jobs=jobs, layout=layout
    )


def steps(made: tuple, policies: list[str], first: list[int], length: int) -> pd.DataFrame:
    return steps_of(work_of(made), np.array(first), length, policies, "strict", run_config())


def waits(made: tuple, policy: str, length: int) -> dict[str, float]:
    """Sum of the waits of one window under each step."""
    frame = steps(made, [policy], [0], length)
    return (length * frame.groupby("step", sort=False)["wait_s"].mean()).to_dict()


def in_pools(*rows: tuple[float, float, int, str]):
    return compiled(TWO_POOLS, [{"submit_s": s, "run_s": r, "gpus": g, "vc": vc} for s, r, g, vc in rows])


def test_the_released_rules_block_the_other_pool_and_ours_do_not():
    # the second job waits for the first in pool a; the third could start in b at 2
    found = waits(in_pools((0, 100, 4, "a"), (1, 10, 4, "a"), (2, 10, 4, "b")), "fifo", 3)
    assert found.pop("released") == pytest.approx(99 + 98)
    assert list(found.values()) == pytest.approx([99] * 5)


def test_a_job_that_stays_first_is_passed_once_it_is_reranked():
    # at 1 the job of 50 s is chosen; the one of 10 s that comes at 2 is shorter, and goes first only if reranked
    made = compiled(ONE_POOL, [{"submit_s": s, "run_s": r, "gpus": 4} for s, r in ((0, 100), (1, 50), (2, 10))])
    kept, reranked = 99 + 148, 109 + 98
    assert list(waits(made, "sjf", 3).values()) == pytest.approx([kept, kept, *[reranked] * 4])


def test_backfilling_steps_are_the_simulators_rules():
    # as in the simulator's own case: 3 GPUs run, the second job needs all 4
    rows = [(0, 100, 3), (1, 100, 4), (2, 50, 1), (3, 200, 1), (60, 40, 1)]
    found = waits(compiled(ONE_POOL, [{"submit_s": s, "run_s": r, "gpus": g} for s, r, g in rows]), "fifo", 5)
    submitted = sum(s for s, _, _ in rows)
    assert found["reranked"] == pytest.approx(0 + 100 + 200 + 200 + 200 - submitted)
    assert found["greedy"] == pytest.approx(0 + 252 + 2 + 52 + 100 - submitted)
    assert found["easy"] == pytest.approx(0 + 100 + 2 + 200 + 60 - submitted)


def test_pools_run_apart_add_up_to_the_whole_where_none_blocks_another():
    rng = np.random.default_rng(5)
    submit, run_s = np.sort(rng.integers(0, 2000, 60)), rng.integers(10, 300, 60)
    gpus, vc = rng.choice([1, 2, 4], 60), rng.choice(["a", "b"], 60)
    rows = zip(map(float, submit), map(float, run_s), map(int, gpus), map(str, vc), strict=True)
    jobs, layout = made = in_pools(*rows)
    frame = steps(made, ["fifo"], [0, 20, 40], 20)
    apart, whole = (frame[frame["step"] == r]["wait_s"].to_numpy() for r in ("own_pool", "reranked"))
    assert np.allclose(apart, whole) and apart.sum() > 0, "first come, first served has the same first either way"
    first, n = np.array([0, 20, 40]), np.full(3, 20)
    released = simulate(jobs, layout, first, n, SchedulerConfig("fifo", sticky_head=True))
    assert np.allclose(frame[frame["step"] == "released"]["wait_s"], sequence_table(jobs, released, 8)["wait_s"])


def test_orders_by_fair_shares_have_no_steps():
    assert has_steps("wfp3") and not has_steps("multifactor")


def study(*evaluated: tuple[Cell, str, float]) -> SimpleNamespace:
    """Of cells, the rule they were evaluated under and their wait in the first window; twice that in the second."""
    windows = pd.DataFrame({"role": ["rltune", "rltune", "base"], "window": [0, 1, 0], "first_job": [0, 64, 0]})
    tables = {
        cell: windows.assign(policy="sjf", backfill=[backfill, backfill, cell.backfill], wait_s=[wait, 2 * wait, 999.0])
        for cell, backfill, wait in evaluated
    }
    return SimpleNamespace(cells=tuple(tables), results=tables.__getitem__)


@pytest.mark.parametrize(
    ("evaluated", "expected"),
    [
        (
            [(SAF, "conservative", 10.0), (FIFO, "none", 30.0)],
            {("saf", "easy", "", "conservative"): [10, 20], ("fifo", "none", "", "none"): [30, 60]},
        ),
        (
            [(SAF, "easy", 10.0), (SAF.but(seed=2), "easy", 20.0), (SAF.but(preset="quick"), "easy", 50.0)],
            {("saf", "easy", "tuned", "easy"): [15, 30], ("saf", "easy", "quick", "easy"): [50, 100]},
        ),
        (
            [(SAF, "easy", 10.0), (SAF.but(seed=2), "conservative", 20.0)],
            {("saf", "easy", "", "easy or conservative"): [15, 30]},
        ),
    ],
    ids=["base policy and rule", "seeds are one agent and presets are not", "seeds chose different rules"],
)
def test_agents_have_the_rule_they_were_evaluated_under(evaluated, expected):
    frame = agents(study(*evaluated))
    keys = ["policy", "base_backfill", "other", "backfill"]
    assert {key: rows["wait_s"].tolist() for key, rows in frame.groupby(keys, sort=False)} == expected


def rows(names: str, *values: tuple, windows: int = 10, **shared: object) -> pd.DataFrame:
    """These values in each of so many equal windows."""
    one = pd.DataFrame(values, columns=names.split()).assign(workload="W", data="own", sequence_jobs=64, **shared)
    return pd.concat([one.assign(window=w, first_job=64 * w) for w in range(windows)], ignore_index=True)


def test_headroom_with_exact_estimates_and_bound(monkeypatch):
    work, first = whole_workload(200, seed=4), np.array([0, 60, 120])
    monkeypatch.setattr("rltune.evaluation.studies.scheduling_rules.agents", lambda study: study.agents)
    run = SimpleNamespace(config=run_config(baseline_policies=["fifo", "sjf"], baseline_backfills=["none", "easy"]))
    none = pd.DataFrame(columns=["who", "step"])
    one = Study(run, "W", "own", (SAF,), work, pd.DataFrame(), 60)
    object.__setattr__(one, "windows", (60, first))
    object.__setattr__(one, "agents", none)
    frame = headroom([one])
    of = {key: rows["wait_s"].to_numpy() for key, rows in frame.groupby(["kind", "policy", "backfill"])}
    assert np.allclose(of["given", "fifo", "none"], of["exact", "fifo", "none"]), "asks for no run time"
    assert not np.allclose(of["given", "sjf", "none"], of["exact", "sjf", "none"])
    assert all((waits >= of["bound", "", ""] - 1e-9).all() for waits in of.values())
    exact = work.with_exact_estimates()
    assert np.array_equal(exact.jobs.estimate_s, work.jobs.run_s)
    assert not np.array_equal(work.jobs.estimate_s, work.jobs.run_s)


def test_on_a_balanced_cluster_the_heuristics_are_those_of_the_slice():
    config = run_config(baseline_policies=["fifo"])
    asked = SimpleNamespace(evaluation=config.evaluation, simulation=config.simulation, lookahead=config.lookahead)
    asked.tuned_on = lambda *of: of == (SAF.trace, SAF.cluster, SAF.estimate)
    there = SAF.but(cluster=f"{SAF.cluster}{BALANCED}")
    for cell in (SAF, there):
        study = Study(SimpleNamespace(config=asked), "W", "own", (cell,), whole_workload(60), pd.DataFrame(), 60)
        assert "fifo conservative" in study.heuristics()


def paying() -> pd.DataFrame:
    """Ten windows with a large job of user b and three small of user a; ours lets the large one pay."""
    values = []
    for scheduler, small, large in (("base", 100.0, 100.0), ("strong", 50.0, 100.0), ("rltune", 20.0, 180.0)):
        values += [(scheduler, "a", "1", small, 1 + small / 10)] * 3
        values.append((scheduler, "b", "over 8", large, 1 + large / 100))
    return rows("scheduler user size wait_s bsld", *values, policy="fifo", backfill="none", vc=None)


def test_size_classes():
    assert list(size_class(np.array([1, 2, 4, 5, 8, 9, 64]))) == ["1", "2–4", "2–4", "5–8", "5–8", "over 8", "over 8"]


def test_groups_next_to_the_base_policy():
    frame = by_group(paying().assign(group=paying()["size"]), "base", QUICK).set_index(["group", "scheduler"])
    small, large = frame.loc[("1", "rltune")], frame.loc[("over 8", "rltune")]
    assert small[["jobs", "wait_s", "less_wait", "less_wait_low"]].tolist() == pytest.approx([30, 20, 0.8, 0.8])
    assert large[["wait_s", "less_wait", "less_wait_high", "bsld"]].tolist() == pytest.approx([180, -0.8, -0.8, 2.8])
    assert np.isnan(frame.loc[("1", "base"), "less_wait"])


def test_indices_are_the_simulators_and_their_intervals_hold_them():
    rng = np.random.default_rng(2)
    values = {"wait_s": rng.lognormal(4, 1, 600), "bsld": 1 + rng.lognormal(0, 1, 600), "gpus": 1, "run_s": 60.0}
    jobs = pd.DataFrame({"window": np.repeat(np.arange(20), 30), "group": rng.choice(list("abcd"), 600), **values})
    both = pd.concat([jobs.assign(scheduler="base"), jobs.assign(scheduler="other", wait_s=jobs["wait_s"] * 3)])
    frame = unequal(both, "base", QUICK).set_index("scheduler")
    means = jobs.groupby("group")[["bsld", "wait_s"]].mean()
    expected = {"jain_bsld": jain_index(means["bsld"].to_numpy()), "gini_wait": gini(means["wait_s"].to_numpy())}
    for index in ("jain_bsld", "gini_wait"):
        assert frame.loc["base", index] == pytest.approx(expected[index])
        assert frame.loc["base", f"{index}_low"] < expected[index] < frame.loc["base", f"{index}_high"]
        more = frame.loc["other", [f"more_{index}", f"more_{index}_low", f"more_{index}_high"]].astype(float)
        assert more.to_numpy() == pytest.approx(0), "the same slowdowns, and waits three times as long for all"
    one = unequal(jobs[jobs["window"] == 0].assign(scheduler="base"), "base", QUICK)
    assert one["jain_bsld_low"].isna().all() and one["jain_bsld"].notna().all()


def test_losers_are_those_that_wait_longer_and_have_a_name():
    jobs = paying().assign(group=paying()["user"])
    lost = losers(jobs, "base", "rltune")
    assert lost["group"].tolist() == ["b"] and lost["more_h"].item() == pytest.approx(10 * 80 / 3600)
    assert losers(jobs, "base", "strong").empty
    assert losers(jobs.assign(group="unknown"), "base", "rltune").empty


def thinned_study(project: Any, load: float) -> tuple[list[Study], dict[tuple[str, str, str], Workload]]:
    """The tiny workload, of which the run has a cluster with arrivals thinned to this load."""
    thin = project.cluster.with_name("small-balanced.yaml")
    thin.write_text(f"{project.cluster.read_text()}balance: {load}\n")
    more = "workloads: [{trace: tiny, cluster: small-balanced}]\n"
    project.change(project.run, "experiments:\n", f"{more}experiments:\n")
    opened = Run.open("config/tiny.yaml")
    keys = [("tiny", name, "lognormal-1") for name in ("small", "small-balanced")]
    workloads = {key: build_workload(opened, *key) for key in keys}
    cell = opened.config.cells()[0]
    return [Study(opened, "Tiny", "own", (cell,), workloads[keys[0]], pd.DataFrame())], workloads


def test_a_balanced_cluster_with_too_few_jobs_for_a_window_is_named(project):
    these, workloads = thinned_study(project, 0.01)
    (named,) = too_short(these, workloads)
    assert named.startswith("Tiny (") and named.endswith(" test jobs)")
    with pytest.raises(ConfigError, match=r"balanced clusters.* test parts have: Tiny \(\d+ test jobs\)"):
        balanced(these, workloads, {})


def test_what_is_long_enough_is_not_named(project):
    assert too_short(*thinned_study(project, 1000.0)) == []
