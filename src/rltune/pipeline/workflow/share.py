"""One matrix on several machines without a scheduler between them: each does a share of the cells."""

from __future__ import annotations

import re

from rltune.config import Cell, Workspace
from rltune.errors import ConfigError


def shared(workspace: Workspace, share: str) -> list[Cell]:
    """The cells of share ``I/N``: each N-th from the I-th on, so that every share has some of each kind.

    Raises ConfigError for a text that is no share.
    """
    match = re.fullmatch(r"(\d+)/(\d+)", share)
    cells = workspace.config.cells()
    first, shares = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= first <= shares <= len(cells):
        raise ConfigError(
            f"--share: found {share!r}, expected I/N with I from 1 to N, and N at most the run's {len(cells)} cells: "
            "1/2 on one machine, 2/2 on the other"
        )
    return cells[first - 1 :: shares]


def targets(workspace: Workspace, cells: list[Cell]) -> list[str]:
    """The files that Snakemake is asked for so that these cells are trained and judged, and nothing else is made."""
    return [str(workspace.windows(cell).relative_to(workspace.base)) for cell in cells]
