"""The configuration of the controller of a live Slurm cluster: ``config/slurm/example.yaml`` and its like."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from rltune.config.base import Block
from rltune.config.run import LookaheadConfig

MOST_PRIORITY = 2**32 - 3
"""Largest priority that Slurm takes: larger numbers of 32 bits mean "not set" and "without end" (slurm.h)."""


class ScopeConfig(Block):
    """Which waiting jobs are ranked. All others are left to Slurm, and never written to."""

    partitions: list[str] = Field(min_length=1)
    """Partitions whose jobs are ranked."""
    users: list[str] | None = None
    """Users whose jobs are ranked; null: all."""
    not_users: list[str] = []
    """Users whose jobs are left to Slurm."""
    accounts: list[str] | None = None
    """Accounts whose jobs are ranked; null: all."""
    qos: list[str] | None = None
    """QOS whose jobs are ranked; null: all but those of `not_qos`."""
    not_qos: list[str] = []
    """QOS whose jobs are left to Slurm: those under a service-level agreement (paper §3.1.2)."""
    priority_below: int | None = Field(None, ge=1, le=MOST_PRIORITY)
    """A job to which Slurm itself has given this priority or a higher one is left to it; null: one above the band is."""
    arrays: Literal["leave", "rank"] = "leave"
    """Tasks of job arrays. The waiting rest of an array is one record, and ranked as one task of it."""
    constraints: Literal["leave", "rank"] = "leave"
    """Jobs that ask for features of nodes, which the ranking knows nothing of."""


class BandConfig(Block):
    """Priorities that the controller writes; it never leaves them."""

    low: int = Field(1_000_000, ge=1, le=MOST_PRIORITY)
    """Lowest. Above what Slurm computes, so that ranked jobs come first, or below that of jobs that must come first."""
    high: int = Field(2_000_000, ge=1, le=MOST_PRIORITY)
    """Highest."""

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
    """Realised waits beside a simulation of Slurm's own order from the same beginning; where they are worse for long,
    every job is handed back."""

    enabled: bool = True
    """Whether it watches."""
    policy: Literal["multifactor_size", "multifactor", "fifo"] = "multifactor_size"
    """Slurm's own order as the simulation has it; `multifactor` counts a shorter job for more, in place of a larger one."""
    backfill: Literal["none", "greedy", "easy", "conservative"] = "conservative"
    """What the simulation lets start behind a job that does not fit, as the controller's `backfill`. With more than 2,000
    jobs `easy` takes the place of `conservative`, which takes too long then."""
    every_s: float = Field(600.0, gt=0)
    """Seconds between two comparisons."""
    begin_anew_s: float = Field(86400.0, gt=0)
    """How long one simulation goes on before it begins anew with the cluster as it is found."""
    jobs: int = Field(20, ge=1)
    """Fewest jobs for a comparison."""
    worse_by: float = Field(0.2, gt=0)
    """Share by which the waiting may be more than in the simulation."""
    times: int = Field(6, ge=1)
    """Comparisons in a row that have to be worse."""


class SlurmConfig(Block):
    """A controller."""

    policy: str
    """The trained policy: `results/cells/<cell>/policy.npz`."""
    scope: ScopeConfig
    """Which waiting jobs are ranked."""
    band: BandConfig = BandConfig()
    """Priorities that are written."""
    interval_s: float = Field(60.0, gt=0)
    """Seconds from the beginning of one cycle to that of the next (paper §5.6: one minute)."""
    slurm_conf: str | None = None
    """Path of slurm.conf; null: where Slurm's commands look for it."""
    timeout_s: float = Field(30.0, gt=0)
    """How long a command of Slurm's may take."""
    folder: str = "results/slurm"
    """Where state, decisions and metrics are written."""
    base_policy: str | None = None
    """Order of what the agent does not see (all but the first 256) and that it started from; null: the policy's."""
    backfill: Literal["none", "greedy", "easy", "conservative"] = "easy"
    """What Slurm's scheduler lets start behind a job that does not fit: sched/backfill reserves nodes for every job of the
    queue, as `conservative` does; `easy` reserves for the first alone, which is quicker to plan."""
    placement: Literal["lookahead", "best_fit"] = "lookahead"
    """How the nodes of jobs that could start now are thought out: by the placement model, or by best fit."""
    lookahead: LookaheadConfig = LookaheadConfig()
    """The placement model."""
    exclusive: Literal["never", "model"] = "never"
    """Who gets OverSubscribe=NO, a node to itself: nobody, or a job of several GPUs that the placement model puts on idle
    nodes although others would hold it (with `interference_slowdown` above 1). Slurm cannot be told to forget the flag: a job that is
    given back has OverSubscribe=YES, which on a partition of OverSubscribe=YES lets it share."""
    interference_slowdown: float = Field(1.0, ge=1, le=100)
    """Run time of a job of several GPUs while another such job is on one of its nodes, over its run time by itself."""
    default_limit_s: float = Field(86400.0, gt=0)
    """Expected run time of a job without a time limit."""
    failures: int = Field(5, ge=1)
    """Failed cycles in a row after which every job is handed back."""
    policy_days: float | None = Field(None, gt=0)
    """Age of the policy file from which every job is handed back; null: any."""
    watchdog: WatchdogConfig = WatchdogConfig()
    """When it gives up because jobs wait longer than without it."""
