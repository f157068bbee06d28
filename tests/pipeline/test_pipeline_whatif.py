"""The replay of a log's end against plain Python: hours, GPU-hours, use of the cluster, blocks, what is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rltune.agent.ways import way_of
from rltune.config import Workspace
from rltune.evaluation.contenders import Contender
from rltune.evaluation.intervals import Intervals
from rltune.evaluation.whatif import by_block, totals
from rltune.pipeline import whatif
from rltune.pipeline.peers import scheduler_of
from rltune.pipeline.whatif import WhatIfStudy
from rltune.simulator import twin

HOURS = 6
"""Of a block, so that the last tenth of a day's log has several."""
BLOCK = """
whatif: {current: {policy: fifo, backfill: none}, others: [{policy: sjf}, {policy: fifo, backfill: none}], warm_up: 0.05,
         block_h: 6, predicted: history-rolling}
"""


@pytest.fixture
def study(project: Any, monkeypatch: pytest.MonkeyPatch) -> WhatIfStudy:
    """A small log with users, recorded waits and gaps; in the place of an agent stands its base policy."""
    rng = np.random.default_rng(5)
    n = 240
    submit = np.cumsum(rng.exponential(900, n)).round().astype(int) + 1_700_000_000
    frame = pd.DataFrame(
        {
            "id": [f"j{i}" for i in range(n)],
            "submitted": submit,
            "ngpu": rng.choice([1, 2, 4, 8], n),
            "secs": np.maximum(1, rng.lognormal(8, 1.2, n)).round().astype(int),
            "who": rng.choice(["ann", "ben", "cy"], n),
            "queued": rng.exponential(500, n).round(),
        }
    )
    frame.loc[::9, "queued"] = np.nan
    frame.to_csv(project.jobs, index=False)
    project.change(project.trace, "columns: {", "columns: {user: who, wait_s: queued, ")
    project.change(project.trace, "path: jobs.csv\n", "path: jobs.csv\ntime_zone: Europe/Berlin\n")
    project.run.write_text(project.run.read_text() + BLOCK)
    monkeypatch.setattr(whatif, "agent_in", lambda workspace, cell, work: Contender(scheduler_of(workspace, cell)))
    return WhatIfStudy(Workspace.open("config/tiny.yaml"))


def test_it_replays_the_last_part_behind_a_warm_up(study: WhatIfStudy) -> None:
    assert study.measured == (216, 240) and study.begins == 216 - 12
    jobs, ran = study.replays()
    assert list(ran["scheduler"]) == ["current", "sjf-easy", "qssf", "configuration", "rltune"], (
        "today's rule is not among the others again"
    )
    assert list(ran["estimate"]) == ["lognormal-1", "lognormal-1", "history-rolling", "lognormal-1", "lognormal-1"]
    for _, mine in jobs.groupby("scheduler"):
        assert list(mine["job"]) == list(range(216, 240))


def test_hours_are_those_of_a_plain_simulation(study: WhatIfStudy) -> None:
    """The twin runs the same jobs; sums by loops."""
    jobs, ran = study.replays()
    found = totals(jobs, Intervals(200)).set_index("scheduler")
    begin, end = study.measured
    for scheduler, _, _, contender, work in study.contenders():
        scheduler = contender.scheduler
        start, _ = twin.run(
            work.jobs, work.layout, study.begins, end - study.begins, scheduler.policy, scheduler.backfill
        )
        wait_h = gpu_h = used = 0.0
        since, until = work.jobs.submit_s[begin], work.jobs.submit_s[end - 1]
        per_block: dict[pd.Timestamp, float] = {}
        t0 = pd.Timestamp(1_700_000_000, unit="s", tz="UTC") + pd.Timedelta(seconds=float(first_gap(study)))
        for job in range(study.begins, end):
            row = work.jobs.row[job]
            began = start[job - study.begins]
            used += row["gpus"] * max(0.0, min(began + row["run_s"], until) - max(began, since))
            if job >= begin:
                wait_h += (began - row["submit_s"]) / 3600
                gpu_h += row["gpus"] * (began - row["submit_s"]) / 3600
                at = (t0 + pd.Timedelta(seconds=float(row["submit_s"]))).tz_convert("Europe/Berlin").tz_localize(None)
                block = at.normalize() + pd.Timedelta(hours=at.hour // HOURS * HOURS)
                per_block[block] = per_block.get(block, 0.0) + (began - row["submit_s"]) / 3600
        assert found.loc[scheduler, "wait_h"] == pytest.approx(wait_h)
        assert found.loc[scheduler, "gpu_h"] == pytest.approx(gpu_h)
        assert by_block(jobs, scheduler, "wait")[0] == pytest.approx([per_block[b] for b in sorted(per_block)])
        mine = ran.set_index("scheduler").loc[scheduler]
        assert mine["utilisation"] == pytest.approx(used / (until - since) / 20)


def first_gap(study: WhatIfStudy) -> float:
    """Seconds from the clock's beginning in the fixture to the first submission."""
    return float(pd.read_csv(study.workspace.root / "jobs.csv")["submitted"].min() - 1_700_000_000)


def test_what_was_recorded_is_the_logs_own(study: WhatIfStudy) -> None:
    recorded = study.recorded()
    raw = pd.read_csv(study.workspace.root / "jobs.csv").set_index("id").loc[recorded["job_id"]]
    assert recorded["wait_s"].to_numpy() == pytest.approx(raw["queued"].to_numpy(), nan_ok=True)
    assert recorded["wait_s"].isna().any()
    days = study.days(study.replays()[0])
    known = raw["queued"].sum() / 3600
    assert days[days["scheduler"] == "recorded"]["wait_h"].sum() == pytest.approx(known)


@pytest.mark.parametrize("uses_calibrated", [False, True])
def test_the_way_an_agent_chose_runs_alone_too(
    uses_calibrated: bool, study: WhatIfStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no rule has it: its order, its reservations and its beliefs, without a network."""

    def agent(workspace: Workspace, cell: Any, work: Any) -> Contender:
        scheduler = scheduler_of(
            workspace,
            cell,
            policy="sjf",
            backfill="conservative" if not uses_calibrated else "easy",
            placement="best_fit",
        )
        way = asdict(way_of(scheduler, uses_calibrated))
        return Contender(scheduler, SimpleNamespace(facts={"way": way, "learned": True, "best_epoch": 0}))  # type: ignore[arg-type]

    monkeypatch.setattr(whatif, "agent_in", agent)
    calibrated = replace(study.workload, calibrated_s=np.full(len(study.workload.jobs.submit_s), 1000.0))
    study.__dict__["workload"] = calibrated
    told = {scheduler: (contender, work) for scheduler, _, _, contender, work in study.contenders()}
    assert list(told) == ["current", "sjf-easy", "qssf", "configuration", "rltune"]
    alone, work = told["configuration"]
    assert alone.policy is None and alone.scheduler == told["rltune"][0].scheduler
    assert (work.jobs.row["estimate_s"] == 1000.0).all() == uses_calibrated
    assert study.facts_of_agents() == {"configuration": "configuration", "agents": 1, "idle": 1}


def test_a_way_that_a_rule_has_is_not_run_twice(study: WhatIfStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        whatif,
        "agent_in",
        lambda workspace, cell, work: Contender(
            scheduler_of(workspace, cell, policy="sjf", backfill="easy", placement="best_fit")
        ),
    )
    assert study.way == "sjf-easy" and [c[0] for c in study.contenders()] == ["current", "sjf-easy", "qssf", "rltune"]


def test_groups_cover_all_jobs_once(study: WhatIfStudy) -> None:
    jobs, _ = study.replays()
    groups = study.groups(jobs, Intervals(200))
    for (_, scheduler), part in groups.groupby(["grouping", "scheduler"]):
        assert part["jobs"].sum() == 24
        assert (part["wait_s"] * part["jobs"]).sum() == pytest.approx(
            jobs[jobs["scheduler"] == scheduler]["wait_s"].sum()
        )
    sizes = groups[groups["grouping"] == "size"]["group"].drop_duplicates()
    assert list(sizes) == [s for s in ("1", "2–4", "5–8") if s in set(sizes)]


def test_jobs_behind_the_measured_part_do_not_decide_what_is_told_of_users(study: WhatIfStudy) -> None:
    """Heavy and light are told by the jobs before: whatever the measured ones run, the groups stay."""
    before = study.replays()[0].query("scheduler == 'current'").set_index("job_id")["user"]
    frame = pd.read_csv(study.workspace.root / "jobs.csv")
    frame.loc[216:, "secs"] = 100_000
    frame.to_csv(study.workspace.root / "jobs.csv", index=False)
    study.workspace.jobs("tiny").unlink()
    changed = WhatIfStudy(study.workspace).replays()[0].query("scheduler == 'current'").set_index("job_id")["user"]
    assert dict(before) == dict(changed)


@pytest.mark.parametrize(
    ("block", "parts"),
    [
        ("whatif: {current: {policy: lifo}}", ["whatif.current.policy", "'lifo'", "fifo"]),
        ("whatif: {others: []}", ["whatif.others"]),
        (
            "whatif: {current: {policy: saf}, others: [{policy: saf}, {policy: saf, backfill: easy}]}",
            ["whatif", "saf-easy", "today's order", "at least one other rule"],
        ),
        ("whatif: {worth: 2}", ["whatif.worth", "2"]),
        ("whatif: {warmup: 0.1}", ["whatif.warmup", "did you mean 'warm_up'"]),
    ],
)
def test_a_wrong_block_is_explained(block: str, parts: list[str], project: Any, cli: Callable[..., Any]) -> None:
    project.run.write_text(project.run.read_text() + f"\n{block}\n")
    cli("config", "check", "config/tiny.yaml").explains("config/tiny.yaml", *parts)
