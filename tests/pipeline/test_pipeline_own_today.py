"""Today's order in `rltune init`: found in the log before its measured tenth, told, and the user's word before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rltune.cluster.fit import compile_jobs
from rltune.cluster.layout import build_layout
from rltune.config import Workspace
from rltune.config.whatif import Rule
from rltune.errors import ConfigError
from rltune.evaluation.recorded import nearness
from rltune.evaluation.today import Found
from rltune.pipeline import own, own_today
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import job_table

JOBS = 3000
INIT = ("init", "jobs.csv", "--nodes", "nodes.csv", "--name", "mine", "--time-zone", "UTC", "--yes")
RECORDED = np.arange(1, 21) * 600.0


def fake(**factors: float) -> Found:
    """Rules (`fifo_none`) whose waits are so many times the recorded ones."""
    found = {tuple(rule.split("_")): nearness(factor * RECORDED, RECORDED) for rule, factor in factors.items()}
    return dict(sorted(found.items(), key=lambda of: of[1].factor))  # type: ignore[arg-type]


FOUND = fake(fifo_none=1.1, fifo_easy=1.3, multifactor_easy=1.2, multifactor_none=1.8)


@pytest.mark.parametrize(
    ("policy", "backfill", "rule", "why"),
    [
        (None, None, ("fifo", "none"), "found in the log: 1.1 times the recorded hours, rank correlation 1.00: near"),
        ("multifactor", None, ("multifactor", "easy"), "as given, the rest found in the log: 1.2 times"),
        (None, "easy", ("multifactor", "easy"), "as given, the rest found in the log: 1.2 times"),
        ("multifactor", "none", ("multifactor", "none"), "as given: 1.8 times"),
        ("f1", None, ("f1", "easy"), "as given"),
        ("f1", "conservative", ("f1", "conservative"), "as given"),
    ],
)
def test_what_the_user_says_comes_first(
    policy: str | None, backfill: str | None, rule: tuple[str, str], why: str
) -> None:
    today = own_today.choose(FOUND, policy, backfill)
    assert today.rule == Rule(policy=rule[0], backfill=rule[1]) and today.why.startswith(why)  # type: ignore[arg-type]


def test_of_rules_hardly_to_be_told_apart_the_most_usual_is_taken() -> None:
    found = fake(saf_fits=1.2, sjf_easy=1.201, fifo_none=1.204, fifo_easy=1.21, multifactor_easy=1.3)
    assert own_today.choose(found).rule == Rule(policy="fifo", backfill="easy")
    assert own_today.choose(found, "saf").rule == Rule(policy="saf", backfill="greedy")


def test_an_answer_that_agrees_with_what_was_found_is_what_was_found() -> None:
    today = own_today.choose(FOUND)
    assert own_today.answered(FOUND, today, own_today.parse("fifo none")) is today
    assert own_today.answered(FOUND, today, own_today.parse("fifo")) is today
    assert own_today.answered(FOUND, today, own_today.parse("fifo, easy")).why.startswith("as given: 1.3 times")


@pytest.mark.parametrize("text", ["", "fifo none easy", "lifo", "fifo off"])
def test_an_answer_that_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="today"):
        own_today.parse(text)


def test_the_table_says_which_is_nearest_and_which_hardly_differ() -> None:
    found = fake(fifo_none=1.1, fifo_easy=1.11, multifactor_easy=1.5)
    told = own_today.told(found, own_today.choose(found, "multifactor"))
    lines = told.splitlines()
    assert lines[2].split()[:2] == ["fifo", "none"] and lines[2].endswith("nearest")
    assert next(line for line in lines if line.split()[0] == "multifactor").endswith("taken")
    assert "recorded mean wait is 6,300 s" in lines[0] and "hardly to be told from the nearest: fifo easy" in told
    assert "NONE OF THE RULES" not in told


def test_where_none_is_near_it_says_what_that_means() -> None:
    found = fake(fifo_none=3.0, fifo_easy=0.2)
    told = own_today.told(found, own_today.choose(found))
    assert "NONE OF THE RULES IS NEAR" in told and "not to act on them" in told and "FAR OFF" in told


def test_where_nothing_is_recorded_it_cannot_be_found() -> None:
    told = own_today.told({}, own_today.choose({}))
    assert "cannot be found" in told and "multifactor easy" in told and "--today" in told
    assert own_today.choose({}, "fifo", "none").rule == Rule(policy="fifo", backfill="none")


def log(folder: Path, waits_s: np.ndarray | None = None) -> pd.DataFrame:
    """A busy log of 32 GPUs; its waits none but where given."""
    rng = np.random.default_rng(5)
    run_s = np.maximum(5, rng.lognormal(7.6, 1.4, JOBS)).round().astype(int)
    submit = 1_700_000_000 + np.cumsum(rng.exponential(540, JOBS)).round().astype(int)
    frame = pd.DataFrame(
        {
            "job_id": range(JOBS),
            "user": rng.choice(list("abcdef"), JOBS),
            "submit_time": submit,
            "start_time": submit + (0 if waits_s is None else np.asarray(waits_s).round().astype(int)),
            "duration": run_s,
            "gpus": rng.choice([1, 2, 4, 8, 16], JOBS, p=[0.5, 0.2, 0.15, 0.1, 0.05]),
            "time_limit": (run_s * rng.uniform(1, 4, JOBS)).round().astype(int),
            "status": "COMPLETED",
        }
    )
    frame.to_csv(folder / "jobs.csv", index=False)
    (folder / "nodes.csv").write_text("name,gpus,nodes\nn,8,4\n")
    return frame


def examined(folder: Path) -> own.Examined:
    return own.examine(own.read_log(folder / "jobs.csv", "UTC"), folder / "nodes.csv", "mine")


def scheduled(folder: Path, policy: str, backfill: str) -> np.ndarray:
    """Waits of the log under a rule."""
    log(folder)
    seen = examined(folder)
    jobs = compile_jobs(seen.fitted, seen.fitted["requested_s"].to_numpy(float), seen.cluster)
    state = simulate(
        jobs, build_layout(seen.cluster), np.array([0]), np.array([JOBS]), SchedulerConfig(policy, backfill)
    )
    return job_table(jobs, state)["wait_s"].to_numpy()


@pytest.mark.parametrize(("policy", "backfill"), [("fifo", "none"), ("multifactor", "easy")])
def test_init_writes_the_rule_that_made_the_log(
    policy: str, backfill: str, project: Any, cli: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("rltune.cli.own._time", lambda config: "about a minute")
    waits = scheduled(project.root, policy, backfill) + np.random.default_rng(3).uniform(0, 45, JOBS)
    log(project.root, waits)
    outcome = cli(*INIT)
    assert outcome.status == 0, outcome
    assert Workspace.open("config/mine.yaml").config.whatif.current == Rule(policy=policy, backfill=backfill)
    text = (project.root / "config" / "mine.yaml").read_text()
    assert "scheduled today, found in the log:" in text and ": near." in text
    assert cli(*INIT, "--force", "--today", "saf").status == 0
    assert Workspace.open("config/mine.yaml").config.whatif.current.policy == "saf"


def test_the_measured_tenth_has_no_say(tmp_path: Path) -> None:
    """What the report finds there is a check, as none of it was looked at."""
    waits = scheduled(tmp_path, "fifo", "easy")
    log(tmp_path, waits)
    seen = examined(tmp_path)
    before = own_today.find(seen.fitted, seen.log.clean.meta, seen.cluster, seen.estimate)
    waits = np.append(waits[: int(0.9 * JOBS)], np.full(JOBS - int(0.9 * JOBS), 99_999.0))
    changed = seen.fitted.assign(wait_s=waits)
    assert own_today.find(changed, seen.log.clean.meta, seen.cluster, seen.estimate) == before
    assert next(iter(before)) == ("fifo", "easy")
