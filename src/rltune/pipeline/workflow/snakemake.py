"""How Snakemake is called, and what it would do: a dry run, read event by event."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rltune.config import Workspace
from rltune.errors import RLTuneError
from rltune.pipeline.workflow.jobs import Job
from rltune.pipeline.workflow.profile import Profile
from rltune.traces.fetch import given_file

ASKS = {
    "--dry-run",
    "--dryrun",
    "--unlock",
    "--summary",
    "-S",
    "--detailed-summary",
    "-D",
    "--dag",
    "--rulegraph",
    "--filegraph",
    "--d3dag",
    "--lint",
    "-l",
    "--list-rules",
    "--list",
    "--list-target-rules",
    "--lt",
    "--report",
    "--archive",
    "--help",
    "-h",
    "--version",
    "-v",
    "--touch",
    "-t",
    "--cleanup-metadata",
    "--delete-all-output",
    "--delete-temp-output",
    "--list-changes",
    "--list-input-changes",
    "--list-params-changes",
    "--list-code-changes",
}
"""Options with which Snakemake tells or tidies something and runs no stage."""


class WorkflowError(RLTuneError):
    """The workflow could not be started."""


def only_asks(arguments: Sequence[str]) -> bool:
    """Whether Snakemake would run no stage with these arguments."""
    return any(a in ASKS or (a.startswith("-") and not a.startswith("--") and "n" in a) for a in arguments)


def command(
    workspace: Workspace, cores: int | None, events: Path | None = None, profile: Profile | None = None
) -> list[str]:
    """Snakemake's command line on the project's workflow; events of jobs are added to the file, if there is one.

    Jobs run here on so many cores, or where the profile says.
    """
    workflow = workspace.root / "workflow"
    where = profile.arguments(cores) if profile else ["--cores", str(cores)]
    logger = ["--logger", "rltune", "--logger-rltune-file", str(events)] if events else []
    return [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(workflow / "Snakefile"),
        "--workflow-profile",
        str(workflow / "profiles" / "default"),
        *where,
        *logger,
        # --config takes all that follows up to the next option: it must not be the last
        "--config",
        f"run={workspace.config_path}",
        "--rerun-incomplete",
        "--directory",
        str(workspace.base),
    ]


def environment(workspace: Workspace) -> dict[str, str]:
    """This process's environment, with our own commands found first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path, "RLTUNE_ROOT": str(workspace.root), "RLTUNE_PYTHON": sys.executable}


def find_own_files(workspace: Workspace) -> None:
    """See that the files are there which traces of the run say are the user's own.

    Raises ConfigError or DataError where one is not.
    """
    for name in workspace.config.traces():
        if (path := workspace.trace(name).path) is not None:
            given_file(name, path, workspace.root)


def would_run(workspace: Workspace, cores: int, *arguments: Sequence[str]) -> list[list[Job]]:
    """The jobs that Snakemake would run with each of these lists of arguments, asked side by side.

    Raises WorkflowError with what Snakemake says where it cannot tell; else as :func:`find_own_files`.
    """
    find_own_files(workspace)
    workspace.base.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{i}.jsonl" for i in range(len(arguments))]
        asked = [
            subprocess.Popen(
                [*command(workspace, cores, file), *extra, "--dry-run"],
                cwd=workspace.base,
                env=environment(workspace),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for file, extra in zip(files, arguments, strict=True)
        ]
        said = [process.communicate()[0] for process in asked]
        for process, text in zip(asked, said, strict=True):
            if process.returncode:
                raise WorkflowError(_reason(text))
        return [_jobs(file) for file in files]


def _jobs(file: Path) -> list[Job]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    told = [event for event in map(json.loads, lines) if event["event"] == "job"]
    return [Job.of(event) for event in told if event["output"]]  # the target `all` makes nothing


def _reason(text: str) -> str:
    """What Snakemake says is wrong, without its banner."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    at = next((i for i, line in enumerate(lines) if "Error" in line or "rror:" in line), max(len(lines) - 10, 0))
    return "Snakemake: " + "\n".join(lines[at:])
