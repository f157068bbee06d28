"""Which GPU type a job gets: the rules on small cases, and what they leave alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from workload_cases import at_speeds, cluster, compiled, group, table

from rltune.cluster.fit import Jobs, fit, with_wrong_speeds
from rltune.cluster.layout import Layout
from rltune.errors import DataError
from rltune.simulator.batch import simulate
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.metrics import job_table

FAST, SLOW = 0, 1


def case(*jobs: tuple[float, float, float]) -> tuple[Jobs, Layout]:
    """(submit_s, run_s on the fast type, times as long on the slow one) jobs of one GPU; one GPU of each type."""
    rows = [{"submit_s": submit, "run_s": run} for submit, run, _ in jobs]
    made, layout = compiled(cluster([group(1, 1, "V100"), group(1, 1, "K80")]), rows)
    slow = np.array([[1.0, factor] for *_, factor in jobs])
    made.row["estimate_s"] = made.row["run_s"]
    return at_speeds(made, slow, mean_speed=[1.0, 0.5]), layout


def ran(
    made: tuple[Jobs, Layout],
    types: str | SchedulerConfig,
    price: float = 0.0,
    policy: str = "fifo",
    backfill: str = "conservative",
) -> list[tuple[float, float]]:
    """(Start, end) of each job."""
    scheduler = types
    if isinstance(types, str):
        scheduler = SchedulerConfig(policy, backfill, types=types, gpu_price=price)
    jobs, layout = made
    table = job_table(jobs, simulate(jobs, layout, np.array([0]), np.array([len(jobs.gpus)]), scheduler, check=True))
    return list(zip(table["start_s"], table["end_s"]))


def test_each_rule():
    """Two jobs of 100 s, three times as long on the slow type, and a third of 150 s, ten times as long there."""
    three = case((0, 100, 3), (1, 100, 3), (2, 150, 10))
    assert ran(three, "fastest_free") == [(0, 100), (1, 301), (100, 250)]
    assert ran(three, "fastest_only") == [(0, 100), (100, 200), (200, 350)]
    assert ran(three, "least") == [(0, 100), (100, 200), (200, 350)], "200 s is before 301 s"


def test_a_job_waits_for_a_faster_type_only_as_long_as_that_pays():
    assert ran(case((0, 100, 3), (0, 60, 2.5)), "least") == [(0, 100), (0, 150)], "150 s is before 160 s"
    assert ran(case((0, 100, 3), (0, 60, 2.8)), "least") == [(0, 100), (100, 160)], "160 s is before 168 s"


def test_a_price_leaves_the_fast_type_to_those_whom_it_helps():
    """The first job is a fifth faster on the expensive type; with a price it goes to the other."""
    two = case((0, 100, 1.25), (1, 100, 10))
    assert ran(two, "least") == [(0, 100), (100, 200)]
    assert ran(two, "least", price=1.0) == [(0, 125), (1, 101)]


def test_order_and_type_together_let_the_short_job_go_first():
    """In turn the first job takes the fast GPU and the second the slow one, 200 s in all; the other way round it is 120 s."""
    two = case((0, 100, 3), (0, 10, 10))
    assert ran(two, "least") == [(0, 100), (0, 100)]
    assert ran(two, "joint") == ran(two, "allox") == [(10, 110), (0, 10)]
    overdue = replace(SchedulerConfig("fifo", "conservative", types="joint"), max_wait_h={1: 0.1 / 3600})
    late = case((0, 50, 9), (1, 100, 3), (1, 10, 30))
    assert ran(late, "joint") == [(0, 50), (60, 160), (50, 60)]
    assert ran(late, overdue) == [(0, 50), (50, 150), (150, 160)], "who is past the maximum wait keeps the order"


@pytest.mark.parametrize("types", ["least", "joint"])
@pytest.mark.parametrize("locality", ["plus_one", "any", "worth_it", "soonest_end"])
def test_a_plan_spreads_a_job_where_it_completes_sooner_then(types, locality):
    """From 10 s on each of two nodes has one GPU free, from 100 s on each has both. A job of two GPUs and 50 s comes at 11 s."""

    def last(longer: float, **rules: Any) -> tuple[float, float]:
        first = [{"submit_s": 0.0, "run_s": run} for run in (10.0, 100.0, 10.0, 100.0)]
        jobs, layout = compiled(cluster([group(2, 2, "V100")]), [*first, {"submit_s": 11.0, "run_s": 50.0, "gpus": 2}])
        jobs.row["estimate_s"] = jobs.row["run_s"]
        ones = np.ones(jobs.cut.shape)
        return ran((at_speeds(jobs, ones, longer * ones), layout), SchedulerConfig("fifo", "conservative", **rules))[-1]

    assert last(1.5, types=types, locality=locality) == (11, 86), "86 s is before 150 s"
    assert last(3.0, types=types, locality=locality) == (100, 150), "150 s is before 161 s"
    assert last(1.5, types=types) == (100, 150)
    assert last(2.0, types=types, locality=locality) == (11, 111)
    assert last(2.0, types=types, locality=locality, split_worth=2.0) == (100, 150), "50 s lost count as 100 s"


def test_schedulers_plan_by_wrong_speeds_and_jobs_run_as_they_do():
    """If the slow GPU is expected to take 150 s and not 300, the second job goes there, and ends after 300 s."""
    jobs, layout = case((0, 100, 3), (0, 100, 3))
    assert ran((jobs, layout), "least") == [(0, 100), (100, 200)]
    jobs.cut["slow"][:, SLOW], jobs.cut["off"][:, SLOW] = 1.5, 1.0
    assert ran((jobs, layout), "least") == [(0, 100), (0, 300)]
    wrong = with_wrong_speeds(jobs, 0.2, np.random.default_rng(1)).cut
    factor = wrong["slow"] / jobs.cut["slow"]
    assert (abs(factor - 1) <= 0.2).all() and np.ptp(factor) > 0
    assert wrong["slow"] * (1 + wrong["off"]) == pytest.approx(jobs.cut["slow"] * (1 + jobs.cut["off"]))


def test_without_a_rule_it_follows_from_backfilling_and_speeds():
    three = case((0, 100, 3), (1, 100, 3), (2, 150, 10))
    assert ran(three, "auto") == ran(three, "least") and ran(three, "auto", price=3.0) == ran(three, "least", price=3.0)
    for backfill in ("none", "greedy", "easy"):
        assert ran(three, "auto", backfill=backfill) == ran(three, "fastest_free", backfill=backfill), backfill
    same, _ = case((0, 100, 1), (0, 100, 1))
    bound, _ = case((0, 100, 3), (0, 100, 3))
    bound.cut["full"][:, SLOW] = -1  # what a job may not use does not count
    bound.cut["slow"][:, 1 - SLOW] = 1.02  # nor that it is slower on one node than on several
    for scheduler, jobs in (
        (SchedulerConfig("fifo", "conservative"), same),
        (SchedulerConfig("fifo", "conservative"), bound),
        (SchedulerConfig("fifo", "conservative", "lookahead"), three[0]),
    ):
        assert scheduler.on(jobs).types == "any"
    assert SchedulerConfig("fifo", "conservative", sticky_head=True).on(three[0]).types == "fastest_free"


TWO = ([group(1, 2, "V100"), group(1, 2, "K80")],)


def test_run_times_are_on_the_fastest_type_that_could_hold_the_job():
    speeds = {"V100": 4.0, "K80": 1.0, "P100": 2.0}
    rows = table([{"run_s": 100.0, "requested_s": 200.0}, {"run_s": 100.0, "gpu_type": "K80"}])
    fitted, audit = fit(rows, cluster(*TWO, speeds=speeds, recorded_on="P100"))
    assert fitted["run_s"].tolist() == [50.0, 100.0], "recorded on a P100; on a K80, which it asks for"
    assert fitted["requested_s"].iloc[0] == 100.0
    assert audit.noted["run time on the fastest GPU type, by the cluster's speeds"] == 2
    anywhere, _ = fit(rows, cluster(*TWO, speeds=speeds, recorded_on="P100", gpu_types="any"))
    assert anywhere["run_s"].tolist() == [50.0, 25.0], "a quarter of what it took on the K80"


@pytest.mark.parametrize(("k80s", "run_s"), [(3, 25.0), (1, 100.0)])
def test_jobs_that_name_no_type_were_recorded_on_the_most_frequent(k80s, run_s):
    mixed = cluster([group(2, 4, "V100"), group(k80s, 4, "K80")], speeds={"V100": 4.0, "K80": 1.0}, gpu_types="any")
    assert fit(table([{"run_s": 100.0}]), mixed)[0]["run_s"].tolist() == [run_s]


def test_a_model_that_the_trace_names_has_its_own_speeds(tmp_path):
    rows = table([{"model": "a"}, {"model": "b"}, {}])
    profile = tmp_path / "speeds.csv"
    head = "model,gpus,gpu_type,consolidated_steps_per_s,unconsolidated_steps_per_s"
    speeds = ("a,1,P100,1,", "a,1,V100,4,", "a,1,K80,1,", "b,1,P100,1,", "b,1,V100,1,", "b,1,K80,2,")
    profile.write_text("\n".join([head, *speeds]) + "\n")
    fitted, _ = fit(rows, cluster(*TWO, speeds=str(profile), recorded_on="P100"))
    assert fitted["run_s"].tolist()[:2] == [25.0, 50.0], "each on its fastest type"
    assert fitted["model"].tolist()[:2] == ["a", "b"] and fitted["model"].notna().all(), "the third is drawn"
    few = cluster(*TWO, speeds=str(profile), recorded_on="P100", max_job_gpus=4)
    left_out = table([{"model": "a"}, {"model": "c", "resource": "cpu", "gpus": 0, "cpus": 1.0}, {"gpus": 8}])
    with profile.open("a") as more:
        more.write("a,8,V100,4,\n")  # with so many on no P100, where the job was recorded
    assert fit(left_out, few)[0]["model"].tolist() == ["a"], "the profile need not have the others"
    with pytest.raises(DataError, match="no model 'c', which the trace names; found a, b"):
        fit(table([{"model": "c"}]), cluster(*TWO, speeds=str(profile), recorded_on="P100"))
