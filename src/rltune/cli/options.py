"""Options that several commands have, and what they do first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rltune.config import Workspace
    from rltune.pipeline.workflow.profile import Profile

ConfigOption = Annotated[str, typer.Option("--config", help="The run's configuration.")]
BaseOption = Annotated[str, typer.Option("--base", help="Folder for results and cache; default: the project.")]
CoresOption = Annotated[
    int | None,
    typer.Option(min=1, help="CPU cores to use; default: all of this machine, or as many as the profile's jobs."),
]
ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="NAME",
        help=(
            "Where the stages run: slurm or kubernetes (workflow/profiles, to be filled in first), or a folder of yours with "
            "such a config.yaml; default: on this machine."
        ),
    ),
]


def cores_here() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def scheduler(workspace: Workspace, profile: str) -> Profile | None:
    """The profile of this name; None where none is named."""
    from rltune.pipeline.workflow.profile import find_profile

    return find_profile(workspace.root, profile) if profile else None


def own_policies(workspace: Workspace) -> dict[str, Path]:
    """The policies of the user's own, loaded; compiled code only where there are any."""
    if not workspace.plugins:
        return {}
    from rltune.pipeline.plugins import load_plugins

    return load_plugins(workspace)
