"""The deployment of a run: which jobs are submitted, runs that are kept or failed, and the chapter without Slurm."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rltune import COMPILED, sources_digest
from rltune.agent.ways import way_of
from rltune.config import Workspace
from rltune.errors import ClusterDied, ConfigError, SlurmError
from rltune.evaluation.contenders import Contender, way_taken
from rltune.pipeline import deployment
from rltune.pipeline.deployment import DeploymentStudy
from rltune.pipeline.peers import scheduler_of
from rltune.report import read
from rltune.report.artefact import load_artefacts
from rltune.report.page.deployment import ALWAYS, DEPLOYMENT
from rltune.report.tables.comparison import learned_in
from rltune.slurm.emulate import packages
from rltune.slurm.experiment import kept
from rltune.slurm.experiment.conduct import Conducted
from rltune.slurm.experiment.rules import in_the_order_of
from rltune.slurm.experiment.submission import Submission

ROOT = Path(__file__).resolve().parents[2]

CELL = "tiny__small__fifo__wait__none__lookahead__strict__engineered__lognormal-1__tiny__s1"
BLOCK = f"""
deployment: {{cell: {CELL}, jobs: 8, repetitions: 2, schedulers: [slurm, rltune, saf], speed: 100, block_jobs: 4}}
"""


@pytest.fixture
def study(project: Any, monkeypatch: pytest.MonkeyPatch) -> DeploymentStudy:
    """A small log with users and, of half of the jobs, limits; in the place of the agent stands its base policy."""
    rng, n = np.random.default_rng(5), 240
    frame = pd.DataFrame(
        {
            "id": [f"j{i}" for i in range(n)],
            "submitted": np.cumsum(rng.exponential(900, n)).round().astype(int) + 1_700_000_000,
            "ngpu": rng.choice([1, 2, 8, 16], n),
            "secs": rng.integers(60, 9000, n),
            "who": rng.choice(["Ann B", "ben"], n),
        }
    )
    frame["limit"] = np.where(np.arange(n) % 2, 2 * frame["secs"], np.nan)
    frame.to_csv(project.jobs, index=False)
    project.change(project.trace, "columns: {", "columns: {user: who, requested_s: {column: limit, unit: s}, ")
    project.run.write_text(project.run.read_text() + BLOCK)
    monkeypatch.setattr(deployment, "agent_in", lambda workspace, cell, work: Contender(scheduler_of(workspace, cell)))
    monkeypatch.setattr(packages, "missing", lambda groups: [])
    return DeploymentStudy(Workspace.open("config/tiny.yaml"))


def conducted(submissions: list[Submission], *_: object) -> Conducted:
    """What a cluster gives on which every job starts at once."""
    at = np.array([job.at_s for job in submissions])
    run = np.array([job.run_s for job in submissions])
    jobs = pd.DataFrame(
        {
            "job": [job.name for job in submissions],
            "slurm_id": range(len(at)),
            "gpus": [job.gpus for job in submissions],
            "asked_gpus": [job.gpus for job in submissions],
            "at_s": at,
            "submit_s": at,
            "start_s": at,
            "end_s": at + run,
            "run_s": run,
            "state": "COMPLETED",
        }
    )
    facts = {"true_s": 1.0, "drift_s": 0.0, "slurm": "22.05", "simulated_s": float((at + run).max())}
    return Conducted(jobs, pd.DataFrame(), facts)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of jobs of each run that was made, on a cluster that is none."""
    made: list[int] = []

    def conduct(
        cluster: object, submissions: list[Submission], order: object, speed: float, log: Path, say: Callable
    ) -> Conducted:
        made.append(len(submissions))
        assert speed == 100 and order is None
        log.write_text("what the controller said")
        return conducted(submissions)

    monkeypatch.setattr(deployment, "conduct", conduct)
    return made


def test_repetitions_take_the_next_jobs_of_the_test_part(study: DeploymentStudy) -> None:
    begin, _ = study.workload.split.test
    assert list(study.firsts) == [begin, begin + 8]
    jobs = study.submissions(2)
    assert [job.name for job in jobs] == [f"job{begin + 8 + k}" for k in range(8)] and jobs[0].at_s == 0
    assert {job.account for job in jobs} <= {"ann_b", "ben"} and {job.partition for job in jobs} == {"all"}
    rows = study.workload.jobs
    for k, job in enumerate(jobs, begin + 8):
        assert (job.gpus, job.run_s) == (rows.gpus[k], rows.run_s[k]) and job.nodes == -(-job.gpus // 8)
        assert job.at_s == rows.submit_s[k] - rows.submit_s[begin + 8]
        assert job.limit_s >= job.run_s, "nothing is ended by its limit"
        limit = study._table["requested_s"].iloc[k]
        assert pd.isna(limit) or job.limit_s == limit == 2 * job.run_s


def test_the_order_of_each_scheduler(study: DeploymentStudy) -> None:
    assert study.order("slurm") is None
    rule = study.order("saf")
    assert (
        rule is not None
        and (rule.base_policy, rule.interval_s) == ("saf", 60.0)
        and rule.policy.facts["base_policy_bias"] == 1.0
    )


def test_a_run_is_there_with_all_its_files_or_not_at_all(study: DeploymentStudy, runs: list[int]) -> None:
    assert study.there() == [] and "6 of 6 runs" in study.missing()
    study.run("slurm", 1)
    assert study.there() == [("slurm", 1)] and runs == [8]
    folder = study.folder("slurm", 1)
    assert {path.name for path in folder.parent.iterdir()} == {"slurm-1"}, "nothing is left beside it"
    (folder / "facts.json").unlink()
    assert study.there() == []
    study.run("slurm", 1)
    jobs, cycles, facts = study.measured()
    assert list(jobs["index"]) == list(range(8)) and set(jobs["scheduler"]) == {"slurm"} and not len(cycles)
    assert list(jobs["asked_gpus"]) == [job.gpus for job in study.submissions(1)]
    (told,) = facts.to_dict("records")
    assert (told["cell"], told["jobs"], told["tries"], told["retries"], told["alone"]) == (CELL, 8, 1, [], False)
    assert told["code"] == sources_digest("slurm", *COMPILED) and told["policy"] is None


def test_a_failed_run_keeps_its_logs_and_is_not_there(study: DeploymentStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(cluster: object, submissions: object, order: object, speed: float, log: Path, say: object) -> Conducted:
        log.write_text("its last words")
        raise ClusterDied("slurmctld of the emulated cluster ended with status 1")

    monkeypatch.setattr(deployment, "conduct", dies)
    failed, said = study.folder("saf", 2).with_name("saf-2.failed-2"), []
    with pytest.raises(ClusterDied, match=rf"run saf 2: slurmctld .* ended with status 1; logs are in {failed}"):
        study.run("saf", 2, said.append)
    assert len(said) == 1 and "saf-2.failed-1; it is begun anew" in said[0]
    assert (failed / "controller.log").read_text() == "its last words" and study.there() == []


def failing_once(error: BaseException) -> Callable[..., Conducted]:
    errors = [error]

    def conduct(cluster: object, submissions: list[Submission], *_: object) -> Conducted:
        if errors:
            raise errors.pop()
        return conducted(submissions)

    return conduct


def test_a_run_begun_anew_says_why(study: DeploymentStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "conduct", failing_once(ClusterDied("slurmdbd ended")))
    study.run("slurm", 1, lambda line: None)
    facts = study.measured()[2].iloc[0]
    assert (facts["tries"], facts["retries"]) == (2, ["slurmdbd ended"])


@pytest.mark.parametrize(
    "error", [SlurmError("the controller ended by itself"), KeyboardInterrupt(), ConfigError("no")]
)
def test_only_a_cluster_that_failed_of_itself_is_tried_again(
    study: DeploymentStudy, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setattr(deployment, "conduct", failing_once(error))
    with pytest.raises(type(error)):
        study.run("slurm", 1)
    left = [path.name for path in study.folder("slurm", 1).parent.iterdir()]
    assert left == (["slurm-1.failed-1"] if isinstance(error, SlurmError) else []), "no half folder stays"


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("speed: 100", "speed: 200", ("slurm-1/facts.json", "speed: found 100.0, expected 200.0")),
        ("jobs: 8", "jobs: 9", ("slurm-1/facts.json", "jobs: found 8, expected 9", "and 1 more such runs")),
    ],
)
def test_a_run_of_another_configuration_is_refused(
    study: DeploymentStudy, runs: list[int], project: Any, old: str, new: str, parts: tuple[str, ...]
) -> None:
    for repetition in (1, 2):
        study.run("slurm", repetition)
    project.change(project.run, old, new)
    with pytest.raises(ConfigError) as error:
        DeploymentStudy(Workspace.open("config/tiny.yaml")).measured()
    assert all(part in str(error.value) for part in (*parts, "remove the run's folder")), error.value


def test_a_run_of_another_agent_is_refused(study: DeploymentStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "conduct", failing_once(ClusterDied("")))
    monkeypatch.setattr(DeploymentStudy, "order", lambda self, scheduler: None)
    policy = study.workspace.policy(study.cell)
    policy.parent.mkdir(parents=True)
    policy.write_bytes(b"one agent")
    study.run("rltune", 1, lambda line: None)
    study.run("slurm", 1)
    assert study.measured()[2]["policy"].notna().tolist() == [False, True]
    policy.write_bytes(b"another")
    with pytest.raises(ConfigError, match=r"rltune-1/facts\.json: policy: found"):
        study.measured()


def test_a_run_of_other_jobs_is_refused(study: DeploymentStudy, runs: list[int], project: Any) -> None:
    study.run("slurm", 1)
    later = DeploymentStudy(Workspace.open("config/tiny.yaml"))
    later.__dict__["firsts"] = study.firsts - 1
    with pytest.raises(
        ConfigError, match=r"slurm-1/jobs\.csv: job: found 8 jobs from job\d+ on, expected 8 from job\d+ on"
    ):
        later.measured()


def test_a_part_of_the_runs_is_not_shown_where_the_rest_cannot_be_made(
    study: DeploymentStudy, runs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    study.run("slurm", 1)
    assert kept.showable(study.workspace) and len(study.measured()[2]) == 1
    monkeypatch.setattr(packages, "missing", lambda groups: [packages.ACCOUNTING])
    assert not kept.showable(study.workspace) and not any(map(len, study.measured()))
    assert "the others are not shown without them" in study.missing()


def test_the_simulator_runs_the_same_jobs(study: DeploymentStudy) -> None:
    found = study.simulated()
    assert set(zip(found["scheduler"], found["repetition"])) == set(study.settings.runs())
    assert set(found["backfill"]) == {"easy", "conservative"}
    for (_, _, repetition), mine in found.groupby(["backfill", "scheduler", "repetition"]):
        jobs = study.submissions(int(repetition))
        assert list(mine["index"]) == list(range(8)) and list(mine["run_s"]) == [job.run_s for job in jobs]
        assert np.allclose(mine["submit_s"], [job.at_s for job in jobs]) and (mine["start_s"] >= mine["submit_s"]).all()


def test_the_simulator_has_an_agent_go_by_each_rule_whichever_it_chose(
    study: DeploymentStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an agent may choose in training, Slurm decides where it is deployed."""
    scheduler = scheduler_of(study.workspace, study.cell)
    way = asdict(way_of(scheduler)) | {"policy": "saf", "backfill": "greedy"}
    agent = Contender(
        scheduler,
        replace(in_the_order_of("saf"), facts={"features": "engineered", "base_policy_bias": 1.0, "way": way}),
    )
    monkeypatch.setattr(deployment, "agent_in", lambda workspace, cell, work: agent)
    went_by, run = [], deployment.run

    def seen(course: Any, contender: Contender, *where: Any) -> Any:
        if contender.policy is not None:
            went_by.append((way_taken(course, contender)[0].policy, way_taken(course, contender)[0].backfill))
        return run(course, contender, *where)

    monkeypatch.setattr(deployment, "run", seen)
    study.simulated()
    assert went_by == [("saf", "easy"), ("saf", "conservative")]


def test_what_is_missing_is_named_with_the_command_that_installs_it(
    study: DeploymentStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "missing", lambda groups: [packages.ACCOUNTING])
    said = study.missing()
    assert (
        "slurmdbd, mariadb-server" in said and "apt-get install --no-install-recommends slurmdbd mariadb-server" in said
    )
    assert "make slurm-deps" in said
    monkeypatch.undo()


@pytest.mark.parametrize("with_runs", [True, False])
def test_the_chapter_with_runs_and_without_slurm(
    study: DeploymentStudy, monkeypatch: pytest.MonkeyPatch, with_runs: bool
) -> None:
    """The notebook's own code; the agent that it is about was never trained here, so its learning is told by hand."""
    monkeypatch.setattr(deployment, "conduct", lambda cluster, submissions, *_: conducted(submissions))
    monkeypatch.setattr(read, "histories", lambda workspace, cells: pd.DataFrame())
    monkeypatch.setattr(sys.modules[learned_in.__module__], "learned_in", lambda histories: "yes")
    for scheduler, repetition in study.settings.runs() if with_runs else ():
        monkeypatch.setattr(DeploymentStudy, "order", lambda self, scheduler: None)
        study.run(scheduler, repetition)
    if not with_runs:
        monkeypatch.setattr(packages, "missing", lambda groups: groups)
    cells = json.loads((ROOT / "notebooks" / "deployment.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    code[0] = 'config, base = "config/tiny.yaml", ""'
    exec("\n".join(code), {})
    there = load_artefacts(study.workspace.artefacts)
    assert set(there) == set(DEPLOYMENT if with_runs else ALWAYS)
    assert ("apt-get install" in " ".join(there["deployment-runs"].artefact.notes)) == (not with_runs)
    if with_runs:
        assert "100 times as fast" in there["deployment-machinery"].artefact.notes[0]


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("jobs: 8", "jobs: 80", ("2 repetitions of 80 jobs need 160", "found 24 in the test part of tiny")),
        ("[slurm, rltune, saf]", "[slurm, saf]", ("schedulers", "expected rltune too")),
        ("[slurm, rltune, saf]", "[slurm, rltune, rltune]", ("schedulers", "expected each once")),
        ("block_jobs: 4", "block_jobs: 9", ("block_jobs", "at most the 8")),
        (f"cell: {CELL}, ", "", ("found no experiment on cluster deployment", "finetuning-synthetic")),
        (CELL, "nope", ("'nope'", "the run has")),
    ],
)
def test_mistakes_are_explained(
    study: DeploymentStudy, project: Any, old: str, new: str, parts: tuple[str, ...]
) -> None:
    project.change(project.run, old, new)
    with pytest.raises(ConfigError) as error:
        _ = DeploymentStudy(Workspace.open("config/tiny.yaml")).firsts
    assert all(part in str(error.value) for part in parts), error.value


def test_jobs_that_ask_for_types_are_refused(study: DeploymentStudy) -> None:
    study.__dict__["_table"] = study._table.assign(gpu_type="P100")
    matching = study.workspace.cluster("small").model_copy(update={"gpu_types": "match"})
    object.__setattr__(study.workspace, "cluster", lambda name: matching)
    with pytest.raises(ConfigError, match="found 8 jobs of tiny that ask for GPU types"):
        study.submissions(1)
