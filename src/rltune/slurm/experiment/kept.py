"""Runs of the experiment that are kept: which are there, and whether they are what the configuration asks for."""

from __future__ import annotations

import hashlib
from typing import Any

from rltune.config import Workspace
from rltune.config.deployment import RUN_FILES, Deployment
from rltune.errors import ConfigError
from rltune.files import read_json
from rltune.slurm.emulate import packages


def asked(workspace: Workspace) -> Deployment:
    """The block ``deployment`` of the run; its defaults where it has none."""
    return workspace.config.deployment or Deployment()


def policy_digest(workspace: Workspace, scheduler: str) -> str | None:
    """Twelve hexadecimal digits of the agent's file; None under a scheduler that is no agent, or where there is no file."""
    path = workspace.policy(workspace.config.deployed_cell())
    if scheduler != "rltune" or not path.is_file():
        return None
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def conditions(workspace: Workspace, scheduler: str) -> dict[str, Any]:
    """What a run's facts.json has to say for the run to be one of this configuration's."""
    cell = workspace.config.deployed_cell()
    return {
        **asked(workspace).conditions(),
        "cell": cell.name,
        "cluster": cell.cluster,
        "trace": cell.trace,
        "policy": policy_digest(workspace, scheduler),
    }


def there(workspace: Workspace) -> list[tuple[str, int]]:
    """(Scheduler, repetition) of the runs that are finished, whatever they were made under."""
    return [run for run in asked(workspace).runs() if all((workspace.deployed(*run) / n).is_file() for n in RUN_FILES)]


def stale(workspace: Workspace, run: tuple[str, int]) -> str:
    """In what a finished run differs from what is asked for: its file, field, found and expected; "" where in nothing."""
    path = workspace.deployed(*run) / "facts.json"
    found, policy_is_there = read_json(path), workspace.policy(workspace.config.deployed_cell()).is_file()
    for name, expected in conditions(workspace, run[0]).items():
        if name == "policy" and not policy_is_there:
            continue
        if found.get(name) != expected:
            return f"{path}: {name}: found {found.get(name, 'nothing')}, expected {expected}"
    return ""


def refuse_stale(workspace: Workspace) -> None:
    """Raises ConfigError that names the finished runs which the configuration does not ask for."""
    if wrong := [told for run in there(workspace) if (told := stale(workspace, run))]:
        more = f" (and {len(wrong) - 1} more such runs)" if len(wrong) > 1 else ""
        raise ConfigError(
            f"{wrong[0]}{more}: it was made under another configuration; give this one another `results`, or "
            "remove the run's folder, and the workflow makes it anew"
        )


def showable(workspace: Workspace) -> bool:
    """Whether the chapter shows runs: all that are asked for are there, or Slurm's packages are and make them."""
    if not packages.missing(packages.needed(accounting=True, speed=asked(workspace).speed)):
        return True
    finished = there(workspace)
    return len(finished) == len(asked(workspace).runs()) and not any(stale(workspace, run) for run in finished)
