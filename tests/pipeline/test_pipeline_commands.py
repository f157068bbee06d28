"""The command line itself: help, checks, wrong usage."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rltune.config import Workspace
from rltune.config.schema import schema_text

COMMANDS = (
    "",
    "init",
    "run",
    "merge",
    "pdf",
    "workflow-report",
    "expected",
    "estimate",
    "status",
    "notebook",
    "simulate",
    "cluster",
    "cluster balance",
    "trace",
    "trace inspect",
    "trace list",
    "trace fetch",
    "config",
    "config check",
    "slurm",
    "slurm emulate",
    "slurm run",
    "slurm status",
    "slurm release",
    "config schema",
    "stage",
    "stage notebook",
    "stage fit",
    "stage estimate",
    "stage baselines",
    "stage deploy",
    "stage report",
)
Cli = Callable[..., Any]


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str, cli: Cli) -> None:
    outcome = cli(*command.split(), "--help")
    assert outcome.status == 0 and "Usage: " in outcome.out and not outcome.err


def test_every_command_is_tested_for_help() -> None:
    from rltune import cli as module

    found = {""}
    for prefix, app in (
        ("", module.app),
        ("trace ", module.trace_app),
        ("cluster ", module.cluster_app),
        ("config ", module.config_app),
        ("stage ", module.stage_app),
        ("slurm ", module.slurm_app),
    ):
        names = (c.name or c.callback.__name__ for c in app.registered_commands if c.callback)
        found |= {prefix + name.replace("_", "-") for name in names}
        found |= {prefix + g.name for g in app.registered_groups if g.name}
    assert found == set(COMMANDS)


@pytest.mark.parametrize("arguments", [["nope"], ["run", "--cores", "0"], ["run", "--cors", "2"], ["trace", "inspect"]])
def test_wrong_usage(arguments: list[str], cli: Cli) -> None:
    outcome = cli(*arguments)
    assert outcome.status == 2 and "Usage: " in outcome.err and "Traceback" not in outcome.err


def test_the_installed_command_answers() -> None:
    command = Path(sys.executable).parent / "rltune"
    done = subprocess.run([command, "config", "check", "--config", "nope.yaml"], capture_output=True, text=True)
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.startswith("rltune: nope.yaml: no such file; there is none in ")


def test_check_lists_the_cells(project: Any, cli: Cli) -> None:
    project.change(project.run, "[fifo]", "[fifo, saf]")
    outcome = cli("config", "check", "--config", "config/tiny.yaml")
    cells = Workspace.open("config/tiny.yaml").config.cells()
    assert outcome.status == 0 and "valid; 2 cells" in outcome.out and str(project.root / "results") in outcome.out
    assert all(f"{cell.hash}  {cell.name}" in outcome.out for cell in cells)


def test_check_takes_an_absolute_path_and_any_folder_below_the_root(project: Any, cli: Cli, monkeypatch: Any) -> None:
    monkeypatch.chdir(project.root / "config" / "traces")
    assert cli("config", "check", "--config", "config/tiny.yaml").status == 0
    assert cli("config", "check", "--config", project.run).status == 0


def test_check_writes_nothing(project: Any, cli: Cli) -> None:
    before = sorted(project.root.rglob("*"))
    assert cli("config", "check", "--config", "config/tiny.yaml").status == 0
    assert sorted(project.root.rglob("*")) == before


def test_schema_mends_drift(project: Any, cli: Cli) -> None:
    path = project.root / "config" / "schema.json"
    path.write_text("{}\n")
    assert cli("config", "schema").status == 0
    assert path.read_text(encoding="utf-8") == schema_text()


def test_a_report_of_nothing_says_what_is_missing(project: Any, cli: Cli) -> None:
    outcome = cli("stage", "report", "--config", "config/tiny.yaml")
    page = project.root / "results" / "report" / "index.html"
    assert outcome.status == 0 and outcome.out.strip() == f"[report] {page}"
    assert "fig12" in page.read_text(encoding="utf-8")
