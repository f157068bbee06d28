"""What several folders of tests use: the command line, a small project, one whole smoke run."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import random_cases  # noqa: F401  # the profiles
from chromium import Chromium
from xdist.scheduler import LoadScopeScheduling

from rltune.config.context import Run
from rltune.report.pdf import find_chromium

ROOT = Path(__file__).resolve().parents[1]
os.environ.pop("RLTUNE_ROOT", None)  # the user's; tests open this project, or make others

USE_THE_SMOKE_RUN = ("test_determinism.py", "test_notebooks.py", "test_workflow_smoke.py")
"""Files of tests whose tests share one run of the whole workflow."""
MAKE = ("make", "--no-print-directory", "--old-file", ".venv/.ready")
"""Make that takes the virtual environment as it is."""

TRACE = """\
title: Tiny
data: own
format: csv
path: jobs.csv
columns: {job_id: id, submit_s: submitted, gpus: ngpu, run_s: {column: secs, unit: s}}
"""
CLUSTER = """\
title: Small
gpu_types: ignore
pools:
  - name: all
    groups:
      - {gpu_type: P100, nodes: 2, gpus: 8, cpus: 64, mem_gb: 512}
      - {gpu_type: P100, nodes: 2, gpus: 2, cpus: 16, mem_gb: 128}
"""
RUN = """\
title: A tiny run
experiments:
  # the only one
  - workloads: [{trace: tiny, cluster: small}]
    policy: [fifo]
    preset: [tiny]
evaluation: {sequence_jobs: [32], bootstrap: 200}
presets:
  tiny: {epochs: 2, trajectories: 2, sequence_jobs: 32, iterations: 2,
         batch_decisions: 64, validate_every: 1, validation_windows: 1}
"""


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str

    def explains(self, *parts: str) -> None:
        """It failed with one paragraph that names these, and without a traceback."""
        assert self.status == 1, self
        assert "Traceback" not in self.out + self.err, self.err
        assert self.err.startswith("rltune: ") and "\n\n" not in self.err.strip(), self.err
        assert not [part for part in parts if part not in self.err], self.err


class Project:
    """A copy of the project's workflow with one tiny trace and one small cluster of its own."""

    def __init__(self, root: Path) -> None:
        self.root, self.jobs, self.results = root, root / "jobs.csv", root / "results"
        self.run, self.trace = root / "config" / "tiny.yaml", root / "config" / "traces" / "tiny.yaml"
        self.cluster = root / "config" / "clusters" / "small.yaml"

    def change(self, path: Path, old: str, new: str) -> None:
        """Replace a text that must be there."""
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


@dataclass(frozen=True)
class Shell:
    """Runs commands as a user would, in processes of their own, with an empty home folder."""

    home: Path

    def environment(self) -> dict[str, str]:
        """The variables of a shell in which the project's virtual environment is active, without those of this make."""
        ours = ("RLTUNE_", "MAKE", "MFLAGS", "ARGS")
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
            "HOME": str(self.home),
        }

    def start_make(self, *arguments: object, cwd: Path, output: Path) -> subprocess.Popen[bytes]:
        """Start ``make`` as the leader of a process group; what it prints goes to a file.

        It heeds Ctrl-C as in a terminal, also where a shell that runs the tests in the background ignores it.
        """
        given = {"cwd": cwd, "env": self.environment(), "start_new_session": True}
        given["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        with open(output, "wb") as file:
            return subprocess.Popen([*MAKE, *map(str, arguments)], stdout=file, stderr=file, **given)

    def run(self, *command: object, cwd: Path, timeout: float = 900) -> Outcome:
        """Run a command to its end."""
        given = {"cwd": cwd, "env": self.environment(), "timeout": timeout}
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, **given)
        return Outcome(done.returncode, done.stdout, done.stderr)

    def rltune(self, *arguments: object, cwd: Path) -> Outcome:
        """Run ``rltune``."""
        return self.run("rltune", *arguments, cwd=cwd)

    def make(self, *arguments: object, cwd: Path, timeout: float = 900) -> Outcome:
        """Run ``make`` in a project that is set up."""
        return self.run(*MAKE, *arguments, cwd=cwd, timeout=timeout)


@dataclass(frozen=True)
class SmokeRun:
    """One whole run of config/smoke.yaml, to be read and not changed."""

    root: Path
    run: Run
    outcome: Outcome

    @property
    def results(self) -> Path:
        return self.root / self.run.config.results

    @property
    def artefacts(self) -> Path:
        return self.results / "artefacts"

    @property
    def report(self) -> Path:
        return self.results / "report"

    def cells(self, name: str) -> list[Path]:
        """A file of every cell, in their order."""
        return [self.results / "cells" / cell.name / name for cell in self.run.config.cells()]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs Slurm's daemons; refuse what would make a second run of the whole workflow."""
    uses = item.fixturenames  # type: ignore[attr-defined]
    if "slurm_packages" in uses:
        item.add_marker("daemons")
    if "smoke_run" in uses and item.path.name not in USE_THE_SMOKE_RUN:
        raise pytest.UsageError(f"{item.nodeid} uses smoke_run: name its file in USE_THE_SMOKE_RUN (tests/conftest.py)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first, so that no process waits for it in the end."""
    items.sort(key=lambda item: item.path.parent.name != "workflow")


class Together(LoadScopeScheduling):
    """Tests go to whichever process is free, but those that share something costly stay in one."""

    def _split_scope(self, nodeid: str) -> str:
        folder, _, file = nodeid.partition("::")[0].rpartition("/")
        if folder.endswith(("report", "packaging")):
            return folder
        if not folder.endswith("workflow"):
            return nodeid
        return "smoke" if file in USE_THE_SMOKE_RUN else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together:
    """xdist's own groups (--dist loadgroup) do nothing under pytest 9.2: it keeps ids elsewhere."""
    config.option.loadscopereorder = False  # they come in the order that they were sorted into
    return Together(config, log)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs the command line in this process."""
    from rltune.cli import main

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["rltune", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        return Outcome(status, *capsys.readouterr())

    return run


@pytest.fixture
def forget() -> Iterator[None]:
    """Policies and placements that a test registers are gone after it."""
    from rltune.placement.placers import CUSTOM as PLACEMENTS
    from rltune.policies import CUSTOM
    from rltune.simulator.config import ASKED

    before = [(registry, dict(registry)) for registry in (CUSTOM, PLACEMENTS, ASKED)]
    yield
    for registry, content in before:
        registry.clear()
        registry.update(content)


def copy_project(root: Path) -> Path:
    """What a run needs of the checkout, in another folder; the virtual environment is the one that runs the tests."""
    for folder in ("config", "notebooks", "workflow"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for file in ("Makefile", "environment.yml"):
        shutil.copy(ROOT / file, root / file)
    (root / ".venv").symlink_to(sys.prefix)
    return root


@pytest.fixture(scope="session")
def make_project(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Project]:
    """Makes a :class:`Project` in a new folder."""
    rng = np.random.default_rng(7)
    n = 1200
    submitted = np.cumsum(rng.exponential(60, n)).round().astype(int)
    seconds = np.maximum(1, rng.lognormal(6, 2, n)).round().astype(int)
    rows = zip(submitted, rng.choice([1, 2, 4, 8], n), seconds, strict=True)
    text = "id,submitted,ngpu,secs\n" + "".join(f"j{i},{s},{g},{r}\n" for i, (s, g, r) in enumerate(rows))

    def make() -> Project:
        project = Project(copy_project(tmp_path_factory.mktemp("project")))
        project.trace.write_text(TRACE)
        project.cluster.write_text(CLUSTER)
        project.run.write_text(RUN)
        project.jobs.write_text(text)
        return project

    return make


@pytest.fixture
def project(make_project: Callable[[], Project], monkeypatch: pytest.MonkeyPatch) -> Project:
    """A small project, with its root as the current folder."""
    made = make_project()
    monkeypatch.chdir(made.root)
    return made


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Runs commands in processes of their own."""
    return Shell(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def smoke_run(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> SmokeRun:
    """The whole workflow, once, on config/smoke.yaml, in a copy of the project."""
    root = copy_project(tmp_path_factory.mktemp("smoke"))
    outcome = shell.make("smoke", "CORES=2", cwd=root)
    if outcome.status:
        pytest.fail(f"the smoke run failed with status {outcome.status}\n{outcome.out}\n{outcome.err}", pytrace=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        return SmokeRun(root, Run.open("config/smoke.yaml"), outcome)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """A headless Chromium; tests that need one are skipped where there is none."""
    if (program := find_chromium()) is None:
        pytest.skip("no Chromium on this machine: make test-all installs it, as root")
    started = Chromium(program, tmp_path_factory.mktemp("chromium"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def real_traces() -> Path:
    """Folder of real trace rows; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("RLTUNE_REAL_TRACES") or ROOT.parent / "shared" / "traces")
    if not (folder / "philly" / "philly_jobs.csv.gz").is_file():
        pytest.skip(f"no real trace rows at {folder}: RLTUNE_REAL_TRACES=/folder make test")
    return folder
