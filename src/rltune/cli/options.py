"""Options that several commands have, and what they do first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rltune.config.context import Run

ConfigOption = Annotated[str, typer.Option("--config", help="The run's configuration.")]
BaseOption = Annotated[str, typer.Option("--base", help="Folder for results and cache; default: the project.")]


def own_policies(run: Run) -> dict[str, Path]:
    """The run's custom policies, loaded; compiled code only where there are any."""
    if not run.config.plugins:
        return {}
    from rltune.evaluation.plugins import load_plugins

    return load_plugins(run)
