"""Options that several commands have, and what they do first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rltune.config import Workspace

ConfigOption = Annotated[str, typer.Option("--config", help="The run's configuration.")]
BaseOption = Annotated[str, typer.Option("--base", help="Folder for results and cache; default: the project.")]


def own_policies(workspace: Workspace) -> dict[str, Path]:
    """The policies of the user's own, loaded; compiled code only where there are any."""
    if not workspace.plugins:
        return {}
    from rltune.pipeline.plugins import load_plugins

    return load_plugins(workspace)
