"""What the controller needs of a Slurm: the client (rltune.slurm.client), or one in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rltune.slurm.records import Change, Outcome, Parsed, SlurmJob, SlurmNode, Standing


class Slurm(Protocol):
    """Queue and nodes, and the ways to change jobs."""

    def jobs(self) -> Parsed[SlurmJob]:
        """Every job that waits or runs."""

    def nodes(self) -> Parsed[SlurmNode]:
        """Every node."""

    def update(self, changes: list[Change]) -> list[Outcome]:
        """Change waiting jobs."""

    def release(self, ids: Iterable[int]) -> list[Outcome]:
        """Give jobs back."""

    def shared(self, ids: Iterable[int]) -> dict[int, str]:
        """Over-subscription of jobs."""

    def standing(self, ids: Iterable[int]) -> dict[int, Standing]:
        """State and priority of those jobs that are shown."""

    def unknown(self, ids: Iterable[int]) -> frozenset[int]:
        """Those jobs of which Slurm says that it does not know them."""
