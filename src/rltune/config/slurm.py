"""The configuration of the controller of a live Slurm cluster: ``config/slurm/example.yaml`` and others like it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from rltune.config.base import Block

MOST_PRIORITY = 2**32 - 3
"""Largest priority that Slurm takes: larger numbers of 32 bits mean "not set" and "infinite" (slurm.h)."""


class EligibleConfig(Block):
    """Which waiting jobs are ranked. All others are left to Slurm and never changed."""

    partitions: list[str] = Field(min_length=1)
    """Partitions whose jobs are ranked."""
    users: list[str] | None = None
    """Users whose jobs are ranked; null: all."""
    exclude_users: list[str] = []
    """Users whose jobs are left to Slurm."""
    accounts: list[str] | None = None
    """Accounts whose jobs are ranked; null: all."""
    qos: list[str] | None = None
    """QOS whose jobs are ranked; null: all but those of `exclude_qos`."""
    exclude_qos: list[str] = []
    """QOS whose jobs are left to Slurm: those under a service-level agreement (paper §3.1.2)."""
    priority_below: int | None = Field(None, ge=1, le=MOST_PRIORITY)
    """Jobs to which Slurm gives this priority or more are left to Slurm; null: those above the band."""
    also: list[Literal["arrays", "constraints"]] = []
    """Jobs that are ranked too: `arrays`, tasks of job arrays (the waiting tasks of an array are one record, ranked as
    one task); `constraints`, jobs that request node features, which the ranking ignores."""


class BandConfig(Block):
    """Priorities that the controller writes; it never writes others."""

    low: int = Field(1_000_000, ge=1, le=MOST_PRIORITY)
    """Lowest priority: above what Slurm computes, so that ranked jobs come first, or below that of jobs that must come
    first."""
    high: int = Field(2_000_000, ge=1, le=MOST_PRIORITY)
    """Highest priority."""

    def __contains__(self, priority: int) -> bool:
        """Whether a priority lies in the band."""
        return self.low <= priority <= self.high

    @model_validator(mode="after")
    def _is_wide_enough(self) -> BandConfig:
        if self.high - self.low < 20_000:
            raise ValueError(
                f"found {self.low} to {self.high}, expected a band of 20,000 priorities or more, so that "
                "each job of a long queue has its own"
            )
        return self


class WatchdogConfig(Block):
    """Compares actual waits with a simulation of Slurm's own order from the same state; if they stay longer, every job
    is released."""

    policy: Literal["multifactor_size", "multifactor", "fifo"] = "multifactor_size"
    """Slurm's own order in the simulation; `multifactor` favours shorter jobs, `multifactor_size` larger ones."""
    every_s: float = Field(600.0, gt=0)
    """Seconds between two comparisons."""
    restart_s: float = Field(86400.0, gt=0)
    """How long one simulation continues before it restarts from the cluster's present state."""
    min_jobs: int = Field(20, ge=1)
    """Minimum number of jobs for a comparison."""
    tolerance: float = Field(0.2, gt=0)
    """Fraction by which the mean wait may exceed that of the simulation."""
    tail_tolerance: float = Field(1.0, gt=0)
    """Fraction by which the 95th and 99th percentile of the wait and the largest wait may exceed those of the simulation, each
    by size of the jobs (`max_wait_h`)."""
    patience: int = Field(6, ge=1)
    """Consecutive comparisons that have to exceed the tolerance."""


class SlurmConfig(Block):
    """The controller of a live Slurm cluster."""

    policy: str
    """The trained policy: `results/cells/<cell>/policy.npz`."""
    eligible: EligibleConfig
    """Which waiting jobs are ranked."""
    band: BandConfig = BandConfig()
    """Priorities that are written."""
    max_wait_h: dict[Annotated[int, Field(ge=1)], Annotated[float, Field(gt=0)]] = Field(
        {1: 24.0, 8: 72.0, 1024: 168.0}, min_length=1
    )
    """Hours after which a job goes before all others that are ranked, by its size: most GPUs → hours; larger jobs have the
    hours of the largest size. A written priority does not age. The defaults end at 168 h, the wait (PriorityMaxAge) from which
    a job's age counts fully in Slurm's own priority; small jobs, which any order can start soon, get less."""
    interval_s: float = Field(60.0, gt=0)
    """Seconds from the start of one cycle to the start of the next (paper §5.6: one minute)."""
    slurm_conf: str | None = None
    """Path of slurm.conf; null: where Slurm's commands look for it."""
    timeout_s: float = Field(30.0, gt=0)
    """Time limit of a Slurm command."""
    state_directory: str = "results/slurm"
    """Folder for the list of assigned jobs, decisions and metrics."""
    base_policy: str | None = None
    """Order of the jobs that the agent does not see (all but the first 256); null: that of the trained policy."""
    backfill: Literal["none", "greedy", "easy", "conservative"] = "easy"
    """How jobs that could start now are found: sched/backfill reserves nodes for every job of the queue, as
    `conservative` does; `easy` reserves for the first job alone, which is faster."""
    placement: Literal["lookahead", "best_fit"] = "lookahead"
    """How nodes of jobs that could start now are chosen: by the placement model, or by best fit."""
    exclusive: Literal["never", "model"] = "never"
    """Which jobs get OverSubscribe=NO, nodes to themselves: none, or jobs of several GPUs that the placement model puts
    on idle nodes although partly used ones would hold them (with `interference_slowdown` above 1). Slurm cannot unset
    this flag: a released job has OverSubscribe=YES, which in a partition with OverSubscribe=YES lets it share nodes."""
    interference_slowdown: float = Field(1.0, ge=1, le=100)
    """Factor on the run time of a job of several GPUs while another such job is on one of its nodes."""
    default_time_limit_s: float = Field(86400.0, gt=0)
    """Estimated run time of a job without a time limit."""
    max_failures: int = Field(5, ge=1)
    """Consecutive failed cycles after which every job is released."""
    max_policy_age_days: float | None = Field(None, gt=0)
    """Days since the submission of the last job that the policy was trained on above which every job is released; null: no
    limit."""
    watchdog: WatchdogConfig | None = WatchdogConfig()
    """When to pause for a day because jobs wait longer than without the controller; null: never."""

    def size_of(self, gpus: int) -> int:
        """The size class of a job: the least size of `max_wait_h` that it does not exceed, or the largest."""
        sizes = sorted(self.max_wait_h)
        return next((size for size in sizes if gpus <= size), sizes[-1])
