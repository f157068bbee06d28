"""The configuration of the controller of a live Slurm cluster: ``config/slurm/example.yaml`` and others like it."""

from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rltune.config.base import Block, Speeds
from rltune.config.max_wait import DEFAULT, MaxWait

MOST_PRIORITY = 2**32 - 3
"""Largest priority that Slurm takes: larger numbers of 32 bits mean "not set" and "infinite" (slurm.h)."""


class EligibleConfig(Block):
    """Which waiting jobs are ranked. All others are left to Slurm and never changed."""

    partitions: list[str] = Field(min_length=1)
    """Partitions whose jobs are ranked."""
    users: list[str] | None = None
    """Users whose jobs are ranked; null: all."""
    accounts: list[str] | None = None
    """Accounts whose jobs are ranked; null: all."""
    exclude_qos: list[str] = []
    """QOS whose jobs are left to Slurm, such as those under a service-level agreement (paper §3.1.2)."""
    priority_below: int | None = Field(None, ge=1, le=MOST_PRIORITY)
    """Jobs to which Slurm gives this priority or more are left to Slurm; null: those above the band."""
    also: list[Literal["arrays", "constraints"]] = []
    """Jobs that are ranked too: `arrays`, tasks of job arrays (the waiting tasks of an array are one record, ranked as
    one task); `constraints`, jobs that request node features, which the ranking ignores."""


class Band(NamedTuple):
    """The lowest and the highest priority that the controller writes."""

    low: int
    high: int

    def __contains__(self, priority: Any) -> bool:
        """Whether a priority lies in the band."""
        return bool(self.low <= priority <= self.high)


def _two(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"found {value!r}, expected the lowest and the highest priority, such as [1000000, 2000000]")
    return value


def _possible(band: Band) -> Band:
    if not 1 <= band.low <= band.high - 20_000 <= MOST_PRIORITY - 20_000:
        raise ValueError(
            f"found {band.low} to {band.high}, expected a band of 20,000 priorities or more, so that each job of a long "
            f"queue has its own, from 1 to {MOST_PRIORITY}"
        )
    return band


class WatchdogConfig(Block):
    """Compares actual waits with a simulation of Slurm's own order from the same state; if they stay longer, every job
    is released."""

    policy: Literal["multifactor_size", "multifactor", "fifo"] = "multifactor_size"
    """Slurm's own order in the simulation; `multifactor` favours shorter jobs, `multifactor_size` larger ones."""
    every_s: ClassVar[float] = 600.0
    """Seconds between two comparisons."""
    restart_s: ClassVar[float] = 86400.0
    """How long one simulation continues before it restarts from the cluster's present state."""
    min_jobs: int = Field(20, ge=1)
    """Minimum number of jobs for a comparison."""
    tolerance: float = Field(0.2, gt=0)
    """Fraction by which the mean wait may exceed that of the simulation, besides `interval_s`."""
    tail_tolerance: ClassVar[float] = 1.0
    """Fraction by which the 95th and 99th percentile of the wait and the largest wait may exceed those of the simulation, each
    by size of the jobs (`max_wait_h`), besides `interval_s`."""
    patience: int = Field(6, ge=1)
    """Consecutive comparisons that have to exceed the tolerance."""


class SlurmConfig(Block):
    """The controller of a live Slurm cluster."""

    policy: str
    """The trained policy: `results/cells/<cell>/policy.npz`."""
    eligible: EligibleConfig
    """Which waiting jobs are ranked."""
    band: Annotated[Band, BeforeValidator(_two), AfterValidator(_possible)] = Band(1_000_000, 2_000_000)
    """Lowest and highest priority that is written; no others are. The lowest: above what Slurm computes, so that ranked jobs
    come first, or below that of jobs that must come first."""
    max_wait_h: MaxWait = Field(DEFAULT, min_length=1)
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
    exclusive: Literal["never", "model"] = "never"
    """Which jobs get OverSubscribe=NO, nodes to themselves: none, or jobs of several GPUs that the placement model puts
    on idle nodes although partly used ones would hold them (with `interference_slowdown` above 1). Slurm cannot unset
    this flag: a released job has OverSubscribe=YES, which in a partition with OverSubscribe=YES lets it share nodes."""
    interference_slowdown: float = Field(1.0, ge=1, le=100)
    """Factor on the run time of a job of several GPUs while another such job is on one of its nodes."""
    speeds: Speeds | None = None
    """Speed of jobs on each GPU type: one number per type (only ratios count), or `gavel` or a CSV file, by the model that a
    job names in its comment. The controller then also chooses the type of each job that may use several. Time limits are
    taken to be for the slowest type that a job may use. Not with `exclusive: model`. null: types are left to Slurm."""
    default_time_limit_s: ClassVar[float] = 86400.0
    """Estimated run time of a job without a time limit, s; of a waiting one at least, if others have longer limits."""
    max_failures: int = Field(5, ge=1)
    """Consecutive failed cycles after which every job is released."""
    max_policy_age_days: float | None = Field(None, gt=0)
    """Days since the submission of the last job that the policy was trained on above which every job is released; null: no
    limit."""
    watchdog: WatchdogConfig | None = WatchdogConfig()
    """When to pause for a day because jobs wait longer than without the controller; null: never."""

    @model_validator(mode="after")
    def _decides_types_or_whole_nodes(self) -> Self:
        if self.speeds is not None and self.exclusive == "model":
            raise ValueError("speeds: goes with exclusive: never; the placement model for whole nodes ignores speeds")
        return self
