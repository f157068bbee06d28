"""Jobs and nodes as Slurm reports them, in one form for all its versions. Times are epoch seconds, memory is MB.

Slurm's own words are explained in its manuals squeue(1), sinfo(1) and scontrol(1).
"""

import re
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rltune.traces.raw.slurm_fields import RUNNING, WAITING

PENDING = "PENDING"
WAITING_STATES = WAITING | {"REQUEUED"}
"""Base states of jobs that hold no nodes and may start later."""
ENDED_STATES = frozenset(
    {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"}
)
"""States of jobs that are over."""
UNFINISHED_STATES = WAITING_STATES | RUNNING
OVER = re.compile(r"invalid job id|already (completing|completed|finished)|(completed|finished) job", re.IGNORECASE)
"""Slurm's words for a job that has ended or that it does not know any more."""
STARTED = re.compile(r"no longer pending", re.IGNORECASE)
"""Its words for one that has started."""
UNUSABLE = frozenset(
    "DOWN DRAIN DRAINED DRAINING FAIL FAILING ERROR MAINT MAINTENANCE UNKNOWN NO_RESPOND NOT_RESPONDING INVAL INVALID "
    "INVALID_REG POWER_DOWN POWERING_DOWN REBOOT_ISSUED FUTURE RESERVED BLOCKED".split()
)
"""Flags of a node on which Slurm starts no job now. With REBOOT_REQUESTED it does, unless DRAIN comes with it (scontrol(1))."""

Record = TypeVar("Record")


@dataclass(frozen=True)
class SlurmJob:
    """One record of the queue: a job, one task of an array, the waiting rest of an array, a part of a het job."""

    id: int
    """Slurm's job id; of the waiting rest of an array, the array's own id."""
    user: str
    partition: str
    """As asked for: a waiting job may name several, separated by commas."""
    state: str
    """Base state in upper case: PENDING, RUNNING, COMPLETING, ..."""
    submit_s: float
    """When it was submitted, s since 1970."""
    gpus: int
    """GPUs over all nodes."""
    priority: int
    account: str = ""
    """Empty where Slurm keeps no accounts."""
    qos: str = ""
    """A waiting job may name several, separated by commas (Slurm 24.11 and later)."""
    reason: str = ""
    """Why it waits, in Slurm's word: Priority, Resources, JobHeldUser, Dependency, BeginTime, ...; empty for none."""
    start_s: float | None = None
    """When it started; of a waiting job when Slurm expects it to start, None where Slurm does not say."""
    time_limit_s: float | None = None
    """Time limit, s; None: no limit."""
    eligible_s: float | None = None
    """When it was or will be allowed to start, s since 1970: a begin time, a dependency."""
    nodes: int = 1
    """Nodes it has, or asks for (the least number of them while it waits)."""
    spreads: bool = False
    """Whether it waits for GPUs in all (``--gpus``) on no given number of nodes: Slurm spreads it over as many as it needs."""
    cpus: int = 1
    """CPUs it has, or asks for, over all nodes."""
    mem_mb: int | None = None
    """Memory over all nodes, MB; None: not known, or all the memory of its nodes."""
    gpu_type: str | None = None
    """The one GPU type it asks for or has; None where it names none or several."""
    gpus_by_type: dict[str, int] = field(default_factory=dict)
    """GPUs for each type it names, those of no type under an empty name."""
    node_names: tuple[str, ...] = ()
    """Nodes it runs on, in order; empty while it waits."""
    gpus_of_node: dict[str, int] | None = None
    """GPUs on each of its nodes; None where Slurm does not say."""
    held: bool = False
    """Its priority is 0, by its user's or an administrator's doing, so that Slurm does not consider it."""
    dependency: str = ""
    """Jobs it waits for, in Slurm's words; empty for none."""
    array_id: int | None = None
    """Id of its array; None where it is of none."""
    tasks: str = ""
    """Of a record that has its array's own id: the tasks it stands for, as scontrol takes them: ``1-3,7``."""
    het_id: int | None = None
    """Id of the leader of its heterogeneous job; None where it is of none."""
    constraint: str = ""
    """Features it asks of its nodes; empty for none."""
    excluded: frozenset[str] = frozenset()
    """Nodes that it must not get (ExcNodeList)."""
    is_bound: bool = False
    """Whether its user named nodes that it has to get (ReqNodeList), or a reservation."""
    asked_type: str | None = None
    """The one GPU type it requests, also where it runs; None where it names none or several."""
    comment: str = ""
    """Its user's comment, which may name the model that it trains."""
    shared: str = ""
    """Over-subscription: OK, NO (asks for whole nodes), YES, FORCE, EXCLUSIVE, USER; empty where not known."""


@dataclass(frozen=True)
class SlurmNode:
    """One node."""

    name: str
    state: frozenset[str]
    """All words of its state, in upper case: IDLE, MIXED, ALLOCATED, DOWN and flags such as DRAIN."""
    cpus: int
    cpus_alloc: int
    """CPUs that jobs hold; the rest is free."""
    mem_mb: int
    mem_alloc_mb: int
    gpus: dict[str, int]
    """GPUs for each type, those of no type under an empty name."""
    gpus_alloc: dict[str, int]
    """GPUs that jobs hold, for each type."""
    partitions: tuple[str, ...]
    features: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether Slurm starts jobs on it now: not down, drained or draining, failed, in maintenance or silent."""
        return bool(self.state) and not self.state & UNUSABLE


@dataclass(frozen=True)
class Parsed(Generic[Record]):
    """What could be read of Slurm's answer, and what could not."""

    records: tuple[Record, ...]
    faults: tuple[str, ...] = ()
    """One line for each record that could not be read: which, and why."""


@dataclass(frozen=True)
class Change:
    """What to change about a waiting job; None leaves a value as it is."""

    job: int
    priority: int | None = None
    """0 holds the job."""
    oversubscribe: bool | None = None
    """True: may share its nodes; False: asks for whole nodes."""
    exclude: str | None = None
    """Nodes that it must not get, in Slurm's short form; empty: none."""


@dataclass(frozen=True)
class Outcome:
    """What became of one change."""

    job: int
    ok: bool
    message: str = ""
    """Slurm's words where it refused; empty where all went well."""
    unknown: bool = False
    """Whether there was no answer: Slurm may have made the change."""

    @property
    def over(self) -> bool:
        """Whether it was refused because the job has ended, or is not known any more."""
        return not self.ok and bool(OVER.search(self.message))

    @property
    def started(self) -> bool:
        """Whether it was refused because the job has started."""
        return not self.ok and bool(STARTED.search(self.message))


@dataclass(frozen=True)
class JobState:
    """State and priority of a job that was asked for by its id."""

    state: str
    """In Slurm's word: PENDING, RUNNING, COMPLETED, ..."""
    priority: int
