"""Stages as jobs of Slurm: the profile `slurm`, filled in as its comments say, on an emulated cluster of real daemons."""

import importlib.util
import shutil
from collections.abc import Iterator

import pytest

from rltune.config import load_cluster, project_root
from rltune.slurm.emulate import Emulation, packages

PLUGIN = "snakemake-executor-plugin-slurm"
FILLED_IN = {
    "# slurm-status-command: squeue": "slurm-status-command: squeue",  # there is no accounting
    "# slurm-no-account: true": "slurm-no-account: true",
    "slurm-init-seconds-before-status-checks: 20": "slurm-init-seconds-before-status-checks: 2",
}
"""Lines of the profile → what a user of this cluster makes of them."""


@pytest.fixture
def slurm() -> Iterator[Emulation]:
    """A cluster; skipped where Slurm or Snakemake's plugin for it is not installed."""
    if lacking := packages.missing():
        pytest.skip(f"not installed: {packages.install_command(lacking)}")
    if importlib.util.find_spec(PLUGIN.replace("-", "_")) is None:
        pytest.skip(f"not installed: .venv/bin/python -m pip install {PLUGIN}")
    settings = {"MinJobAge": "7200"}  # ended jobs stay in the queue to the end
    with Emulation(load_cluster("deployment", project_root()), settings=settings) as emulation:
        yield emulation


@pytest.mark.daemons
@pytest.mark.timeout(2400)
def test_the_smoke_run_as_jobs_of_slurm(slurm, project, shell, monkeypatch):
    """The whole smoke run, every stage a job; some start emulated clusters of their own."""
    profile = project.root / "workflow" / "profiles" / "slurm" / "config.yaml"
    for old, new in FILLED_IN.items():
        project.change(profile, old, new)
    # within a job the plugin takes SLURM_CONF away, without which srun looks where this cluster's is not
    folder = project.root / "bin"
    folder.mkdir()
    (folder / "srun").write_text(f'#!/bin/sh\nSLURM_CONF={slurm.conf} exec {shutil.which("srun")} "$@"\n')
    (folder / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{slurm.env['PATH']}")
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    outcome = shell.make("smoke", "PROFILE=slurm", "ARGS=--jobs 2", cwd=project.root, timeout=1800)
    assert outcome.status == 0, outcome
    assert (project.results / "smoke" / "report" / "index.html").is_file()
    ended = [line.split("|") for line in slurm.run("squeue", "-h", "--states=all", "-o", "%T|%M").splitlines()]
    stages = outcome.err.count("done: ")
    assert stages > 20 and [state for state, _ in ended] == ["COMPLETED"] * stages, (ended, outcome)
