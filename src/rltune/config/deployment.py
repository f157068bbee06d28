"""The block ``deployment`` of a run: an agent's controller on an emulated Slurm cluster, compared with Slurm itself."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rltune.config.base import Block, EachOnce

Scheduler = Literal["slurm", "slurm_fastest", "rltune", "rltune_types", "fifo", "sjf", "saf"]
LEARNED = ("rltune", "rltune_types")
"""Those that have the trained agent."""
CLUSTER = "deployment"
"""The cluster of paper §5.6."""
SHORT, SHORT_S = "short", 3600.0
"""The partition of jobs whose users request up to so many s (on the fastest type), on the same nodes and of the same priority as
that of the others (our choice)."""
QOS = {"low": (0.0, 0.2), "medium": (0.5, 0.6), "high": (1.0, 0.2)}
"""QOS of a job → its factor in Slurm's priority, its share of the jobs (our choice)."""
INTERVAL_S = 60.0
"""Seconds of the cluster's clock between two cycles of the controller (paper §5.6: one minute)."""
LONG_CYCLE_S = 30.0
"""Seconds of the cluster's clock: after a longer cycle of the controller, new jobs are unranked for more than half of
the paper's minute."""


class Deployment(Block):
    """Jobs of the test part submitted to a Slurm cluster of real daemons on a fast clock (paper §5.6). Each repetition
    has other jobs, and every scheduler gets the same ones."""

    cell: str | None = None
    """The cell whose agent is deployed, on its cluster; null: the run's first cell on cluster `deployment`."""
    jobs: int = Field(1024, ge=4)
    """Jobs per repetition (paper §5.6)."""
    repetitions: int = Field(3, ge=1)
    """Repetitions, each with the next jobs of the test part."""
    schedulers: Annotated[list[Scheduler], EachOnce] = Field(["slurm", "rltune", "saf"], min_length=2)
    """`slurm`: multifactor priority only; `rltune`: the agent's controller; `fifo`, `sjf`, `saf`: the same controller
    with a rule's order. Where GPU types differ in speed: `slurm_fastest`, as `slurm`, but users request the type on which
    their job is fastest; `rltune_types`, as `rltune`, and the controller also chooses GPU types. `slurm` and `rltune` are
    required."""
    speed: float = Field(100.0, ge=1, le=1000)
    """Speed of the cluster's clock, relative to the true one."""

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if lacking := {"slurm", "rltune"} - set(self.schedulers):
            raise ValueError(
                f"schedulers: found {', '.join(self.schedulers)}, expected {' and '.join(sorted(lacking))} "
                "too: they are what is compared"
            )
        return self

    @property
    def block_jobs(self) -> int:
        """Consecutive submissions that are resampled together for intervals within the repetitions."""
        return min(64, max(4, self.jobs // 4))

    def runs(self) -> list[tuple[str, int]]:
        """(Scheduler, repetition from 1) of every run, repetition by repetition."""
        return [(scheduler, k + 1) for k in range(self.repetitions) for scheduler in self.schedulers]
