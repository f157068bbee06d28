"""The replay of a log's end against plain Python: hours, GPU-hours, utilisation, blocks, and what each scheduler is given."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from operator_cases import META, agent, log, run_of, workload_of
from workload_cases import cluster, group

from rltune.agent.scheduler_choice import AgentScheduler
from rltune.config import whatif
from rltune.evaluation.intervals import Intervals
from rltune.evaluation.studies.hours_waited import by_block, totals
from rltune.evaluation.studies.what_if import WhatIfStudy
from rltune.reference import twin
from rltune.traces.estimates.history import end_s

HOURS = 6
"""Of a block, so that the last tenth of three days of a log has several."""
BLOCK = {
    "current": {"policy": "fifo", "backfill": "none"},
    "others": [{"policy": "sjf"}, {"policy": "fifo", "backfill": "none"}],
}


def study_of(jobs: pd.DataFrame | None = None, policy: Any = None) -> WhatIfStudy:
    run = run_of(whatif=BLOCK)
    given, predicted = (workload_of(run, estimate, jobs) for estimate in ("lognormal-1", "history-rolling"))
    return WhatIfStudy(run, given, predicted, [policy or agent()], 60.0)


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> WhatIfStudy:
    monkeypatch.setattr(whatif, "BLOCK_H", HOURS)
    monkeypatch.setattr(whatif, "WARM_UP", 0.05)
    return study_of()


def test_it_replays_the_last_part_after_a_warm_up(study):
    assert study.measured == slice(216, 240) and study.first == 216 - 12
    jobs, ran = study.replays()
    assert list(ran["scheduler"]) == ["current", "sjf-easy", "qssf", "configuration", "rltune", "bounded"]
    assert list(ran["estimate"]) == ["lognormal-1"] * 2 + ["history-lightgbm"] + ["lognormal-1"] * 3
    for _, rows in jobs.groupby("scheduler"):
        assert list(rows["job"]) == list(range(216, 240))


def test_hours_are_those_of_a_plain_simulation(study):
    """The twin runs the same jobs; sums by loops."""
    jobs, ran = study.replays()
    found = totals(jobs, Intervals(200)).set_index("scheduler")
    begin, end = study.measured.start, study.measured.stop
    for entry in study.entries():
        work, scheduler = entry.workload, entry.contender.scheduler
        if scheduler.placement == "lookahead":
            continue
        start = twin.run(work.jobs, work.layout, study.first, end - study.first, scheduler)
        wait_h = gpu_h = used = 0.0
        since, until = work.jobs.submit_s[begin], work.jobs.submit_s[end - 1]
        per_block: dict[pd.Timestamp, float] = {}
        for job in range(study.first, end):
            row, began = work.jobs.row[job], start[job - study.first]
            used += row["gpus"] * max(0.0, min(began + row["run_s"], until) - max(began, since))
            if job >= begin:
                hours = (began - row["submit_s"]) / 3600
                wait_h, gpu_h = wait_h + hours, gpu_h + row["gpus"] * hours
                at = pd.Timestamp(META.t0) + pd.Timedelta(seconds=float(row["submit_s"]))
                at = at.tz_convert("Europe/Berlin").tz_localize(None)
                block = at.normalize() + pd.Timedelta(hours=at.hour // HOURS * HOURS)
                per_block[block] = per_block.get(block, 0.0) + hours
        name = entry.scheduler
        assert found.loc[name, "wait_h"] == pytest.approx(wait_h) and found.loc[name, "gpu_h"] == pytest.approx(gpu_h)
        assert by_block(jobs, name, "wait")[0] == pytest.approx([per_block[b] for b in sorted(per_block)])
        assert ran.set_index("scheduler").loc[name, "utilisation"] == pytest.approx(used / (until - since) / 20)


def test_what_the_log_says_of_itself_does_not_depend_on_speeds(study):
    """Jobs that ran on K80s are simulated as on P100s, four times as fast; the log's GPUs were in use as long as it says."""
    kinds = [group(2, 8, "P100", mem_gb=512), group(2, 2, "K80", mem_gb=128)]
    faster = cluster(kinds, gpu_types="any", speeds={"P100": 4.0, "K80": 1.0}, recorded_on="K80")
    run = replace(study.run, clusters={"small": faster})
    workload = workload_of(run)
    other = WhatIfStudy(run, workload, workload, study.policies, 60.0)
    assert (workload.jobs.run_s < study.workload.jobs.run_s).mean() > 0.9
    pd.testing.assert_frame_equal(other.recorded(), study.recorded())
    np.testing.assert_array_equal(end_s(workload.table), end_s(study.table))
    assert other.facts()["used"] == study.facts()["used"]


def test_a_log_is_as_long_where_clocks_change(study):
    meta = replace(study.workload.meta, t0="2024-03-30T12:00:00+00:00")  # the night before Berlin's clocks skip an hour
    spring = replace(study, workload=replace(study.workload, meta=meta))
    assert spring.facts()["log_days"] == study.facts()["log_days"] == np.ptp(log()["submit_s"]) / 86_400


def test_recorded_waits_are_the_logs_own(study):
    recorded, raw = study.recorded(), log().iloc[216:]
    np.testing.assert_array_equal(recorded["wait_s"], raw["wait_s"])
    assert recorded["wait_s"].isna().any()
    days = study.days(study.replays()[0])
    assert days[days["scheduler"] == "recorded"]["wait_h"].sum() == pytest.approx(raw["wait_s"].sum() / 3600)


@pytest.mark.parametrize("uses_calibrated", [False, True])
def test_the_configuration_an_agent_chose_runs_without_its_network_too(uses_calibrated, study):
    """Unless a rule has it: its order, its reservations and its calibrated estimates."""
    scheduler = replace(study.agents[0].scheduler, policy="sjf", backfill="easy", placement="best_fit")
    scheduler = scheduler if uses_calibrated else replace(scheduler, backfill="conservative")
    table = study.workload.table.assign(calibrated_s=1000.0)
    policy = agent(scheduler=AgentScheduler(scheduler, uses_calibrated).facts())
    study = replace(study, workload=replace(study.workload, table=table), policies=[policy])
    found = {entry.scheduler: entry for entry in study.entries()}
    assert list(found) == ["current", "sjf-easy", "qssf", "configuration", "rltune", "bounded"]
    alone = found["configuration"]
    assert alone.contender.policy is None and alone.contender.scheduler == scheduler
    assert (alone.workload.jobs.row["estimate_s"] == 1000.0).all() == uses_calibrated
    assert ("as calibrated" in alone.estimate) == ("as calibrated" in found["rltune"].estimate) == uses_calibrated
    facts = study.facts()
    assert (facts["configuration"], facts["agents"], facts["idle"]) == ("configuration", 1, 1)


def test_a_configuration_that_a_rule_has_is_not_run_twice(study):
    scheduler = replace(study.agents[0].scheduler, policy="sjf", backfill="easy", placement="best_fit")
    slowed = replace(study.workload, slowdowns={"multi_node_slowdown": 1.2})
    study = replace(study, workload=slowed, policies=[agent(scheduler=AgentScheduler(scheduler).facts())])
    assert study.configuration == "sjf-easy"
    assert [entry.scheduler for entry in study.entries()] == ["current", "sjf-easy", "qssf", "rltune", "bounded"]


def test_groups_cover_all_jobs_once(study):
    jobs, _ = study.replays()
    groups = study.groups(jobs, Intervals(200))
    for (_, scheduler), part in groups.groupby(["grouping", "scheduler"]):
        hours = jobs[jobs["scheduler"] == scheduler]["wait_s"].sum()
        assert part["jobs"].sum() == 24 and (part["wait_s"] * part["jobs"]).sum() == pytest.approx(hours)
    sizes = groups[groups["grouping"] == "size"]["group"].drop_duplicates()
    assert list(sizes) == [s for s in ("1", "2–4", "5–8") if s in set(sizes)]


def test_measured_jobs_do_not_decide_who_is_a_heavy_user(study):
    changed = log()
    changed.loc[216:, "run_s"] = 100_000.0
    before, after = (
        s.replays()[0].query("scheduler == 'current'").set_index("job_id")["user"] for s in (study, study_of(changed))
    )
    assert dict(before) == dict(after)
