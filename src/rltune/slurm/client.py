"""Slurm's queue and nodes read, priorities written, through its own commands; never through a shell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rltune.slurm.records import Change, Outcome, Parsed, SlurmJob, SlurmNode


class Client:
    """One Slurm cluster, reached through the commands squeue, sinfo and scontrol.

    Each method raises :class:`rltune.errors.SlurmUnavailable` where Slurm does not answer in time, and
    :class:`rltune.errors.SlurmError` where its answer as a whole cannot be read.
    """

    def __init__(
        self, config: Path | str | None = None, timeout_s: float = 30.0, env: Mapping[str, str] | None = None
    ) -> None:
        raise NotImplementedError

    def version(self) -> str:
        """Slurm's version, such as 22.05.8."""
        raise NotImplementedError

    def jobs(self) -> Parsed[SlurmJob]:
        """Every job that waits or runs."""
        raise NotImplementedError

    def nodes(self) -> Parsed[SlurmNode]:
        """Every node."""
        raise NotImplementedError

    def update(self, changes: Sequence[Change]) -> list[Outcome]:
        """Change waiting jobs; one outcome a change, in their order. A job that is gone is an outcome."""
        raise NotImplementedError

    def release(self, ids: Iterable[int]) -> list[Outcome]:
        """Give jobs back to Slurm: it computes their priority again."""
        raise NotImplementedError

    def shared(self, ids: Iterable[int]) -> dict[int, str]:
        """Over-subscription of jobs (``OK``, ``NO``, ``YES``, ...); jobs that are gone are not in it."""
        raise NotImplementedError
