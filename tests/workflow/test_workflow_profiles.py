"""Where the stages run: profiles of schedulers, what is asked of them, shares of the cells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from workflow_fakes import cell_job, clean_job, record_of, told

from rltune.config import Workspace
from rltune.errors import ConfigError
from rltune.pipeline.workflow import profile as profiles
from rltune.pipeline.workflow.costs import Costs
from rltune.pipeline.workflow.estimate import estimate
from rltune.pipeline.workflow.jobs import Job
from rltune.pipeline.workflow.live import Live, failure, progress
from rltune.pipeline.workflow.profile import find_profile
from rltune.pipeline.workflow.share import shared, targets
from rltune.pipeline.workflow.snakemake import command

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "workflow" / "profiles"
KUBERNETES = PROFILES / "kubernetes"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(ROOT)
    return Workspace.open("config/smoke.yaml", tmp_path)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every plugin and command of a scheduler were there."""
    monkeypatch.setattr(profiles.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(profiles.shutil, "which", lambda name: f"/usr/bin/{name}")


@pytest.mark.parametrize("name", ["slurm", "kubernetes"])
def test_a_shipped_profile_is_found_and_given_to_snakemake(name: str, workspace: Workspace, installed: None) -> None:
    found = find_profile(ROOT, name)
    assert found.jobs == 50 and found.executor == {"slurm": "slurm", "kubernetes": "cluster-generic"}[name]
    started = command(workspace, None, profile=found)
    assert started[started.index("--profile") + 1] == str(PROFILES / name) and "--cores" not in started
    assert "--cores" in command(workspace, 8, profile=found), "so many at once, as the user asked"
    assert str(PROFILES / "default") in started, "what holds on any machine holds there too"


def test_what_is_wrong_with_a_profile_is_told(tmp_path: Path, installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def mistake(name: str | Path) -> str:
        with pytest.raises(ConfigError) as caught:
            find_profile(ROOT, str(name))
        return str(caught.value)

    assert "found 'slurmm' (did you mean 'slurm'?); expected kubernetes or slurm" in mistake("slurmm")
    mine = tmp_path / "config.yaml"
    mine.write_text("executor: slurm\n")
    assert f"{mine}: found executor: 'slurm' and jobs: None" in mistake(tmp_path) and "jobs: 50" in mistake(tmp_path)
    mine.write_text("executor: [\n")
    assert f"{mine}: not valid YAML" in mistake(tmp_path)
    mine.write_text("executor: slurm\njobs: 3\n")
    monkeypatch.setattr(profiles.shutil, "which", lambda name: None)
    assert "needs the command sbatch" in mistake(tmp_path) and "login node" in mistake(tmp_path)
    monkeypatch.setattr(profiles.importlib.util, "find_spec", lambda name: None)
    assert "-m pip install snakemake-executor-plugin-slurm" in mistake("slurm")


def test_runs_that_are_to_be_alone_are_no_shorter_with_more_cores(workspace: Workspace) -> None:
    jobs = [Job("deploy", {"scheduler": "slurm", "repetition": str(k)}, (f"slurm-{k}/jobs.csv",)) for k in range(4)]
    paper = Workspace.open("config/deployment.yaml", workspace.base)
    assert paper.config.deployment is not None
    apart = paper.config.model_copy(update={"deployment": paper.config.deployment.model_copy(update={"alone": True})})
    alone = Costs(replace(paper, config=apart))
    assert alone.time(jobs, 2) == pytest.approx(alone.time(jobs, 1))
    beside = Costs(workspace)
    assert beside.time(jobs, 2) == pytest.approx(beside.time(jobs, 1) / 2)


def test_a_scheduler_is_asked_for_what_the_table_says_and_more_for_whole_traces(workspace: Workspace) -> None:
    costs = Costs(workspace)
    asked, train = costs.table["ask"], cell_job("train", workspace)
    assert costs.memory_mb(train) == asked["memory_mb"]["train"]
    assert costs.minutes(train) == asked["least_minutes"], "a short one gets the least"
    costs.learn(train, 3600)
    assert costs.minutes(train) == asked["time_factor"] * 60
    paper = Costs(Workspace.open("config/paper.yaml", workspace.base))
    assert paper.memory_mb(clean_job("philly")) == asked["full_trace_memory"] * asked["memory_mb"]["clean"]


def test_every_rule_asks_for_memory_and_time() -> None:
    for path in (ROOT / "workflow" / "rules").glob("*.smk"):
        text = path.read_text()
        for name in [line[5:-1] for line in text.splitlines() if line.startswith("rule ")]:
            assert f'    resources:\n        **asks("{name}"),\n' in text, name


def test_waiting_in_a_queue_is_told_from_running_and_not_counted(workspace: Workspace) -> None:
    one, two = (cell_job("train", workspace, i) for i in range(2))
    record = record_of(workspace.base / "a.jsonl", told(one, 1), told(two, 2))
    record.read()
    record.scheduler = "slurm"
    costs = Costs(workspace)
    assert "2 in the queue of slurm" in progress(workspace, record, costs)
    log = workspace.base / one.log[0]
    log.parent.mkdir(parents=True)
    log.touch()
    line = progress(workspace, record, costs)
    assert "train philly-smoke" in line and "1 in the queue of slurm" in line
    text = estimate(workspace, [one, two], 50, "slurm").text
    assert "on 50 cores of slurm, its queue not counted" in text


def test_what_a_scheduler_left_of_a_failed_job_is_shown(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    train = cell_job("train", workspace)
    left = workspace.base / "slurm_logs" / "7.log"
    left.parent.mkdir()
    said = "slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch."
    left.write_text(f"SNAKEMAKE\n=====\n{said}\nElapsed time: 0\n")
    failed = {"event": "failed", "id": 1, "logs": ["slurm_logs/7.log"]}
    record = record_of(workspace.base / "a.jsonl", told(train, 1), failed, told(train, 2))
    live = Live(workspace, record, sys.stdout)
    assert not record.failed and list(record.running) == [train.key], "it is tried again"
    assert failure(workspace, record, train) == (
        f"  slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch.\n  {Path('slurm_logs/7.log')}"
    )
    with open(record.path, "a") as file:
        for event in (failed | {"id": 2}, told(train, 3)):
            file.write(json.dumps({"time": 1010.0, **event}) + "\n")
    live.tick()
    said = capsys.readouterr().out
    assert said.startswith("FAILED: train") and "oom_kill" in said and "\nagain: train" in said


def test_shares_of_the_cells_are_all_of_them_once(workspace: Workspace) -> None:
    cells = workspace.config.cells()
    for shares in range(1, len(cells) + 1):
        parts = [shared(workspace, f"{i}/{shares}") for i in range(1, shares + 1)]
        assert sorted(c for part in parts for c in part) == sorted(cells) and all(parts)
    assert targets(workspace, cells[:1]) == [f"results/smoke/cells/{cells[0].name}/windows.csv"]


@pytest.mark.parametrize("share", ["0/2", "3/2", "1/4", "half", "1", "1/0", "-1/2"])
def test_a_share_that_is_none_is_refused(share: str, workspace: Workspace) -> None:
    with pytest.raises(ConfigError, match=rf"--share: found '{share}', expected I/N .* 3 cells: 1/2 on one machine"):
        shared(workspace, share)


KUBECTL = """\
#!/usr/bin/env python3
# A cluster of one machine: create runs the job's command at once, get says how it ended.
import json, os, subprocess, sys
where = os.environ["FAKE_CLUSTER"]
words = sys.argv[1:]
if words[0] == "create":
    job = json.load(sys.stdin)
    pod = job["spec"]["template"]["spec"]["containers"][0]
    env = {**os.environ, **{e["name"]: e["value"] for e in pod["env"]}}
    done = subprocess.run(pod["command"], cwd=pod["workingDir"], env=env, capture_output=True)
    state = {"status": {"conditions": [{"type": "Failed" if done.returncode else "Complete", "status": "True"}]}}
    json.dump({**job, **state}, open(os.path.join(where, job["metadata"]["name"]), "w"))
elif words[:2] == ["get", "job"]:
    path = os.path.join(where, words[2])
    print(open(path).read() if os.path.exists(path) else "")
elif words[:2] == ["delete", "job"]:
    for name in words[2:]:
        if not name.startswith("--"):
            os.remove(os.path.join(where, name))
else:
    sys.exit("error: unknown command")
"""


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubectl of our own on PATH; the folder of its jobs."""
    for folder in ("bin", "cluster"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bin" / "kubectl").write_text(KUBECTL)
    (tmp_path / "bin" / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_CLUSTER", str(tmp_path / "cluster"))
    monkeypatch.setenv("RLTUNE_PYTHON", sys.executable)
    return tmp_path / "cluster"


def call(*words: str | Path, cwd: Path) -> str:
    done = subprocess.run([*map(str, words)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("script", "state"), [("touch made\n", "success"), ("exit 3\n", "failed")])
def test_a_kubernetes_job_is_made_asked_and_deleted(script: str, state: str, kubectl: Path, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text(script)
    asked = yaml.safe_load((KUBERNETES / "config.yaml").read_text())["cluster-generic-submit-cmd"]
    for old, new in (
        ("{rule}", "train"),
        ("{threads}", "1"),
        ("{resources.mem_mb}", "4000"),
        ("{resources.runtime}", "30"),
        ("$RLTUNE_PYTHON", sys.executable),
        ("$RLTUNE_ROOT", str(ROOT)),
    ):
        asked = asked.replace(old, new)
    name = call(*asked.split(), tmp_path / "job.sh", cwd=tmp_path)
    job = json.loads((kubectl / name).read_text())
    pod = job["spec"]["template"]["spec"]
    assert pod["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "4000M"}
    assert pod["activeDeadlineSeconds"] == 1800 and job["spec"]["backoffLimit"] == 0
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "rltune" and len(name) <= 63
    ask = [sys.executable, KUBERNETES / "job.py", "status", name]
    assert call(*ask, cwd=tmp_path) == state and (tmp_path / "made").exists() is (state == "success")
    call(KUBERNETES / "cancel", name, cwd=tmp_path)
    assert call(*ask, cwd=tmp_path) == "failed", "a job that somebody deleted does not run for ever"


def test_without_kubectl_it_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, KUBERNETES / "job.py", "status", "x"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "needs the command kubectl" in done.stderr
