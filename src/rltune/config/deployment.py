"""The block ``deployment`` of a run: a trained agent's controller on an emulated Slurm cluster, beside Slurm itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from rltune.config.base import Block

Scheduler = Literal["slurm", "rltune", "fifo", "sjf", "saf"]
CLUSTER = "deployment"
"""The cluster of paper §5.6."""
RUN_FILES = ("jobs.csv", "cycles.csv", "facts.json")
"""What a run leaves in its folder."""
LONG_CYCLE_S = 30.0
"""Seconds of the cluster's clock: a cycle of the controller that lasts longer leaves new jobs without a place in the order
for more than half of the paper's minute."""


class Deployment(Block):
    """Jobs of the test part submitted to a Slurm cluster of real daemons on a fast clock (paper §5.6), once under each
    scheduler and as often again as there are repetitions, each with jobs of its own."""

    cell: str | None = None
    """The cell whose agent is deployed, on whose cluster; null: the run's first cell on cluster `deployment`."""
    jobs: int = Field(1024, ge=4)
    """Jobs of a repetition (paper §5.6)."""
    repetitions: int = Field(3, ge=1)
    """Repetitions, each with the next jobs of the test part."""
    schedulers: Annotated[list[Scheduler], Field(min_length=2)] = ["slurm", "rltune", "saf"]
    """`slurm`: multifactor priority alone; `rltune`: the agent's controller beside it; `fifo`, `sjf`, `saf`: a rule's order
    written by the same controller. `slurm` and `rltune` have to be there."""
    speed: float = Field(100.0, ge=1, le=1000)
    """How fast the cluster's clock runs."""
    interval_s: float = Field(60.0, gt=0)
    """Seconds of the cluster's clock between two cycles of the controller (paper §5.6: one minute)."""
    alone: bool = False
    """A run has all cores that the workflow may use, so that all are made under alike conditions; else other jobs run
    beside it where there are cores."""
    block_jobs: int = Field(64, ge=1)
    """Consecutive submissions that are resampled together for intervals."""

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if lacking := {"slurm", "rltune"} - set(self.schedulers):
            raise ValueError(
                f"schedulers: found {', '.join(self.schedulers)}, expected {' and '.join(sorted(lacking))} "
                "too: they are what is compared"
            )
        if len(set(self.schedulers)) < len(self.schedulers):
            raise ValueError(f"schedulers: found {', '.join(self.schedulers)}, expected each once")
        if self.block_jobs > self.jobs:
            raise ValueError(
                f"block_jobs: found {self.block_jobs}, expected at most the {self.jobs} `jobs` of a repetition"
            )
        return self

    def conditions(self) -> dict[str, Any]:
        """What a single run depends on, not how many there are."""
        return self.model_dump(include={"cell", "jobs", "speed", "interval_s"})

    def runs(self) -> list[tuple[str, int]]:
        """(Scheduler, repetition from 1) of every run, repetition by repetition."""
        return [(scheduler, k + 1) for k in range(self.repetitions) for scheduler in self.schedulers]
