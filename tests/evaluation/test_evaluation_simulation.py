"""``rltune simulate``: what it prints is what the simulator did, and what is wrong is explained."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rltune.cluster.workload import build_workload
from rltune.config.context import Run
from rltune.evaluation import simulation
from rltune.evaluation.simulation import Request, Result, make_scheduler, run
from rltune.report.simulation import until_s
from rltune.simulator.metrics import sequence_table

RUN = ("simulate", "--trace", "tiny", "--cluster", "small", "--config", "config/tiny.yaml")
Cli = Callable[..., Any]


@pytest.fixture
def tiny(project: Any) -> Run:
    return Run.open("config/tiny.yaml")


def simulated(tiny: Run, request: Request, estimate: str = "lognormal-1", **rules: Any) -> Result:
    workload = build_workload(tiny, "tiny", "small", estimate)
    return run(tiny.config, workload, request, make_scheduler(tiny.config, **{"policy": "fifo", **rules}))


def test_windows_have_the_metrics_of_the_evaluation(tiny):
    result = simulated(tiny, Request(window=100))
    table = sequence_table(result.workload.jobs, result.state, result.workload.layout.gpus)
    found = result.metrics()
    assert len(table) == 12 and table["wait_s"].mean() > 0
    for name in ("wait_s", "jct_s", "bsld"):
        assert found[f"{name}_mean"] == pytest.approx(table[name].mean())
    assert found["wait_s_max"] == table["largest_wait_s"].max()
    assert found["utilisation"] == pytest.approx(table["utilisation_span"].mean())
    assert found["jobs_per_s"] > 0


def test_the_mean_queue_is_that_over_time(tiny):
    result = simulated(tiny, Request(replay=True))
    jobs = result.jobs()
    begin, end = jobs["submit_s"].min(), jobs["submit_s"].max()
    times = np.linspace(begin, end, 20_000)
    queued = [((jobs["submit_s"] <= t) & (jobs["start_s"] > t)).sum() for t in times]
    assert result.metrics()["mean_queue"] == pytest.approx(np.mean(queued), rel=0.01) and np.mean(queued) > 1


def test_a_warm_up_is_simulated_and_not_measured(tiny):
    whole, warm = (simulated(tiny, Request(replay=True, warm_up=share)) for share in (0.0, 0.25))
    pd.testing.assert_frame_equal(whole.jobs(), warm.jobs())
    later = whole.jobs().iloc[300:]
    found = warm.metrics()
    assert found["wait_s_mean"] == pytest.approx(later["wait_s"].mean())
    assert found["wait_s_mean"] != pytest.approx(whole.metrics()["wait_s_mean"])
    begin, end = later["submit_s"].min(), later["submit_s"].max()
    jobs = whole.jobs()
    used = (jobs["end_s"].clip(upper=end) - jobs["start_s"].clip(lower=begin)).clip(lower=0) @ jobs["gpus"]
    assert found["utilisation"] == pytest.approx(used / (end - begin) / 20)


@pytest.mark.parametrize(
    ("request_", "first", "n"),
    [
        (Request(), [0, 256, 512, 768], 256),
        (Request(window=32, begin=1100), [1100, 1132, 1164], 32),
        (Request(window=32, part="test", jobs=70), [1080, 1112], 32),
        (Request(begin=7, jobs=50), [7], 50),
        (Request(part="validation", replay=True), [972], 108),
        (Request(jobs=90, replay=True), [0], 90),
    ],
)
def test_which_jobs(request_, first, n, tiny):
    state = simulated(tiny, request_).state
    assert state.first.tolist() == first and state.n.tolist() == [n] * len(first)


def test_a_bound_is_a_bound(tiny):
    for policy in ("fifo", "saf"):
        least, ours = simulated(tiny, Request(window=64), policy=policy, backfill="easy").bound()
        assert 0 < least <= ours


def test_a_job_is_shown_with_its_own_user(tiny):
    result = simulated(tiny, Request(begin=7, jobs=96, window=32))
    work = result.workload
    jobs = replace(result, workload=replace(work, table=work.table.assign(user=work.job_ids))).jobs()
    assert jobs["user"].tolist() == jobs["job_id"].tolist() and "vc" in jobs


def test_it_prints_a_table_and_writes_what_is_asked_for(project, cli):
    (project.root / "out").mkdir()
    options = "--policy sjf --backfill easy --windows 64 --part test --bound"
    files = "--csv out/jobs.csv --timeline out/time.csv --gantt out/chart.svg"
    outcome = cli(*RUN, *options.split(), *files.split())
    assert outcome.status == 0, outcome
    shown = (
        "tiny (own data) on small|jobs 1,080 to 1,143: 1 window of 64|sjf, backfill easy|median|wait (s)|JCT (s)|"
        "bounded slowdown|utilisation over the span|mean queue length|per second|lower bound on the mean wait|mean wait over the lower bound"
    )
    assert [part for part in shown.split("|") if part not in outcome.out] == []
    jobs = pd.read_csv(project.root / "out" / "jobs.csv")
    assert len(jobs) == 64 and {"window", "job_id", "gpus", "nodes", "start_s", "wait_s"} <= set(jobs)
    shown = re.search(r"^wait \(s\) +(\S+)", outcome.out, re.MULTILINE)
    assert shown and float(shown[1].replace(",", "")) == pytest.approx(jobs["wait_s"].mean(), rel=0.01)
    over_time = pd.read_csv(project.root / "out" / "time.csv").set_index("time_s")
    for k, job in jobs.iterrows():
        running = (jobs["start_s"] <= job["start_s"]) & (job["start_s"] < jobs["end_s"])
        assert over_time.loc[job["start_s"], "used_gpus"] == jobs.loc[running, "gpus"].sum(), k
    assert (project.root / "out" / "chart.svg").read_text().count("<svg") == 1
    assert not (project.root / "results").exists(), "nothing of it is kept"


def test_the_rules_of_the_run_hold_by_default(project, cli):
    rest = ("--backfill", "easy", "--windows", "64", "--csv")
    options = "--overrun now --sticky-head".split()
    assert cli(*RUN, *rest, "said.csv", *options).status == 0
    assert cli(*RUN, *rest, "default.csv").status == 0
    project.change(project.run, "title: A tiny run", "title: T\nsimulation: {overrun: now, sticky_head: true}")
    assert cli(*RUN, *rest, "run.csv").status == 0
    said, default, of_run = ((project.root / f"{name}.csv").read_text() for name in ("said", "default", "run"))
    assert said == of_run != default


@pytest.mark.parametrize(("share", "number"), [(0.07, 7), (0.14, 14), (0.28, 28), (0.55, 55), (0.551, 56)])
def test_a_share_of_jobs_is_a_number_without_the_rounding_of_a_product(tiny, share, number):
    found = simulated(tiny, Request(jobs=100, replay=True, warm_up=share))
    assert f"the first {number} of them not measured" in found.about()
    assert found.metrics()["wait_s_mean"] == pytest.approx(found.jobs()["wait_s"].iloc[number:].mean())


def test_a_chart_of_too_many_jobs_is_refused_before_the_simulation(project, cli, monkeypatch):
    monkeypatch.setattr(simulation, "MOST_DRAWN", 100)
    monkeypatch.setattr(simulation, "simulate", None)
    cli(*RUN, "--replay", "--gantt", "x.png").explains("--gantt", "1200 jobs", "at most 100", "--jobs")


def test_jobs_of_no_whole_window_are_named(tiny):
    said = simulated(tiny, Request(jobs=500)).about()
    assert said.endswith("an idle cluster; the last 244 make no whole window and are left out")


@pytest.mark.parametrize(
    ("last_start", "last_end", "until"), [(110.0, 200.0, None), (110.0, 5000.0, 110.0), (3100.0, 5000.0, None)]
)
def test_one_long_job_does_not_squeeze_the_drawing(last_start, last_end, until):
    bars = pd.DataFrame({"job": range(20), "submit_s": 100.0, "start_s": 110.0, "end_s": 200.0})
    bars.loc[3, ["start_s", "end_s"]] = last_start, last_end
    assert until_s(bars) == (until and pytest.approx(until))
