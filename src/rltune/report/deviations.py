"""Where the software departs from the paper and from its released code, read from ``config/deviations.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from rltune.config.base import Block
from rltune.config.load import read_block

FILE = "config/deviations.yaml"
"""Where they lie, relative to the project's root."""


class Deviation(Block):
    """One departure."""

    title: str
    """What it is about."""
    of: Literal["paper", "release", "both"]
    """What it departs from."""
    theirs: str
    """What the paper or the released code does."""
    ours: str
    """What this software does."""
    why: str
    """The reason."""
    evidence: list[str] = Field(min_length=1)
    """`#id` of an artefact of the report, a document, or `tests/….py::test_name`."""

    @property
    def artefacts(self) -> list[str]:
        """Ids of the artefacts that show it."""
        return [item[1:] for item in self.evidence if item.startswith("#")]

    @property
    def files(self) -> list[str]:
        """Documents, and tests with their names, from the project's root."""
        return [item for item in self.evidence if not item.startswith("#")]


class Deviations(Block):
    """All of them."""

    deviations: list[Deviation] = Field(min_length=1)
    """In the order of the page."""


def load_deviations(root: Path) -> list[Deviation]:
    """Read those of the project at ``root``.

    Raises ConfigError naming file, line and key for every mistake in the file.
    """
    return read_block(root / FILE, Deviations, root).deviations
