"""A fake Slurm in memory, for what real daemons cannot be made to do; a policy, jobs and nodes for tests."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from rltune.agent.policy_file import TrainedPolicy, save_policy
from rltune.config.slurm import Band, SlurmConfig
from rltune.environment.features import width_of
from rltune.errors import SlurmUnavailable
from rltune.slurm.controller import Controller, Cycle
from rltune.slurm.ownership import Assignment
from rltune.slurm.records import Change, JobState, Outcome, Parsed, SlurmJob, SlurmNode
from rltune.slurm.service import Service
from rltune.slurm.state_directory import StateDirectory
from rltune.slurm.values import expand

NOW_S = 1_700_000_000.0
BAND = Band(1_000_000, 2_000_000)


def job(number: int, **given: Any) -> SlurmJob:
    """A waiting job of one GPU; ``given`` changes fields."""
    gpus = given.get("gpus", 1)
    base: dict[str, Any] = {
        "user": "ada",
        "account": "lab",
        "partition": "gpu",
        "qos": "normal",
        "state": "PENDING",
        "reason": "Priority",
        "submit_s": NOW_S - 1000 + number,
        "time_limit_s": 3600.0,
        "cpus": gpus,
        "mem_mb": 1000 * gpus,
        "gpus": gpus,
        "priority": 5000 - number,
        "shared": "OK",
        "gpus_by_type": {given.get("gpu_type") or "": gpus} if gpus else {},
    }
    return SlurmJob(number, **{**base, **given})


def running(number: int, node: str, **given: Any) -> SlurmJob:
    """A job that runs on one node."""
    return job(number, **{"state": "RUNNING", "reason": "None", "start_s": NOW_S - 500, "node_names": (node,), **given})


def node(name: str, kind: str = "p100", gpus: int = 4, used: int = 0, **given: Any) -> SlurmNode:
    """A node of 32 CPUs; ``given`` changes fields."""
    base: dict[str, Any] = {
        "name": name,
        "state": frozenset({"MIXED" if used else "IDLE"}),
        "cpus": 32,
        "cpus_alloc": used,
        "mem_mb": 128_000,
        "mem_alloc_mb": 1000 * used,
        "gpus": {kind: gpus},
        "gpus_alloc": {kind: used},
        "partitions": ("gpu",),
    }
    return SlurmNode(**{**base, **given})


@dataclass
class FakeSlurm:
    """Jobs and nodes in memory, and what can go wrong with them."""

    queue: dict[int, SlurmJob]
    machines: list[SlurmNode]
    silent: bool = False
    """Slurm does not answer."""
    faults: tuple[str, ...] = ()
    before_update: Callable[[], None] = lambda: None
    """Called just before changes are applied."""
    after_release: Callable[[], None] = lambda: None
    """Called after each batch of releases."""
    refuses: dict[int, str] = field(default_factory=dict)
    """Jobs whose release is refused, with Slurm's words."""
    ended_s: float = 0.0
    """How long jobs that have ended may be requeued."""
    batch: int = 500
    hidden: set[int] = field(default_factory=set)
    """Jobs of the queue that its listing lacks."""
    computed: dict[int, int] = field(default_factory=dict)
    """Slurm's own priority of each job."""
    writes: list[Change] = field(default_factory=list)
    released: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.computed = {number: one.priority for number, one in self.queue.items()}

    def _answer(self) -> None:
        if self.silent:
            raise SlurmUnavailable("squeue: the controller does not answer")

    def jobs(self) -> Parsed[SlurmJob]:
        self._answer()
        return Parsed(tuple(one for number, one in self.queue.items() if number not in self.hidden), self.faults)

    def nodes(self) -> Parsed[SlurmNode]:
        self._answer()
        return Parsed(tuple(self.machines))

    def update(self, changes: list[Change]) -> list[Outcome]:
        self._answer()
        self.before_update()
        return [self._all(change.job, lambda one, at=change: self._apply(replace(at, job=one))) for change in changes]

    def _all(self, number: int, write: Callable[[int], Outcome]) -> Outcome:
        """Write to a job; by the id of an array alone, where its record names no tasks, to all tasks of it, as Slurm does."""
        is_rest = number in self.queue and self.queue[number].tasks
        tasks = [] if is_rest else [k for k, one in self.queue.items() if k != number == one.array_id]
        outcomes = [write(one) for one in (number, *tasks)]
        return replace(next((o for o in outcomes if o.ok), outcomes[0]), job=number)

    def _apply(self, change: Change) -> Outcome:
        one = self.queue.get(change.job)
        if one is None or one.state != "PENDING":
            return Outcome(change.job, False, "Job/step already completing or completed")
        if change.priority is not None and one.priority == 0:
            return Outcome(change.job, False, "Job is in held state")
        self.writes.append(change)
        shared = {None: one.shared, True: "YES", False: "NO"}[change.oversubscribe]
        priority = one.priority if change.priority is None else change.priority
        excluded = one.excluded if change.exclude is None else frozenset(expand(change.exclude))
        self.change(change.job, priority=priority, shared=shared, excluded=excluded)
        return Outcome(change.job, True)

    def release(self, ids: Iterable[int]) -> list[Outcome]:
        self._answer()
        outcomes = [self._all(number, self._release) for number in ids]
        self.after_release()
        return outcomes

    def _release(self, number: int) -> Outcome:
        if number in self.refuses:
            return Outcome(number, False, self.refuses[number])
        if number not in self.queue:
            return Outcome(number, False, "Invalid job id specified")
        if self.queue[number].state != "PENDING":
            return Outcome(number, False, "Job is no longer pending execution")
        self.change(number, priority=self.computed[number], held=False)
        self.released.append(number)
        return Outcome(number, True)

    def states(self, ids: Iterable[int]) -> dict[int, JobState]:
        self._answer()
        there = {number: self.queue[number] for number in ids if number in self.queue}
        return {number: JobState(one.state, one.priority) for number, one in there.items()}

    def requeue_s(self) -> float:
        self._answer()
        return self.ended_s

    def unknown(self, ids: Iterable[int]) -> frozenset[int]:
        self._answer()
        return frozenset(ids) - self.queue.keys()

    def change(self, *numbers: int, **given: Any) -> None:
        """Change fields of jobs."""
        self.queue |= {number: replace(self.queue[number], **given) for number in numbers}

    def hold(self, number: int) -> None:
        """A user holds a waiting job."""
        self.change(number, priority=0, held=True, reason="JobHeldUser")

    def start(self, number: int, node: str = "p100-2") -> None:
        """A waiting job starts."""
        self.change(number, state="RUNNING", start_s=NOW_S, node_names=(node,))

    def requeue(self, number: int) -> None:
        """A running job is put back, with the priority it had."""
        self.change(number, state="PENDING", start_s=None, node_names=())

    def add(self, *jobs: SlurmJob) -> None:
        """More jobs come."""
        self.queue |= {one.id: one for one in jobs}
        self.computed |= {one.id: one.priority for one in jobs}

    def all_released(self) -> bool:
        """Whether every waiting job has the priority that Slurm computed."""
        return all(self.computed[number] == priority for number, priority in priorities(self).items())


def no_answer() -> None:
    """Raise what an unanswered command raises."""
    raise SlurmUnavailable("scontrol: no answer within 30 s")


def write_policy(path: Path, seed: int = 1, **facts: Any) -> Path:
    """A policy of random weights."""
    rng, width = np.random.default_rng(seed), width_of("engineered")
    weights = tuple(rng.normal(size=shape).astype(np.float32) for shape in ((width, 16), 16, (16, 1), 1))
    save_policy(path, TrainedPolicy(weights, {"features": "engineered", "agent": "rltune", **facts}))
    return path


def make_config(**given: Any) -> SlurmConfig:
    """A configuration for partition gpu."""
    base = {"policy": "policy.npz", "eligible": {"partitions": ["gpu"]}, "interval_s": 0.01, "timeout_s": 5.0}
    return SlurmConfig.model_validate({**base, **given})


def controller(
    slurm: FakeSlurm, folder: Path, live: bool = True, state: Path | None = None, **given: Any
) -> Controller:
    """A controller of a fake Slurm, its clock at NOW_S; its messages are in ``.said``."""
    folder.mkdir(exist_ok=True)
    policy = folder / "policy.npz"
    if not policy.is_file():
        write_policy(policy)
    said: list[str] = []
    made = Controller(
        make_config(**given),
        slurm,
        StateDirectory(state or folder),
        policy,
        live,
        lambda: NOW_S,
        lambda line, level=0: said.append(line),
        pause=lambda seconds: None,
    )
    made.said = said  # type: ignore[attr-defined]
    return made


def serve(made: Controller, then: Callable[[str, Service], object] = lambda line, service: None, **given: Any) -> int:
    """Run a service of a controller; its exit status. ``then`` is called after each message, with it and the service."""
    service = Service(made, **{"between_tries_s": 0.0, **given})
    made.say = lambda line, level=0: (made.said.append(line), then(line, service))  # type: ignore[attr-defined]
    return service.run()


def ranked(folder: Path, cycles: int = 2, n: int = 6, **given: Any) -> tuple[FakeSlurm, Controller]:
    """(A busy cluster, a live controller that has ranked its waiting jobs: 10 to 15 of six)."""
    slurm = busy(n)
    made = controller(slurm, folder, **given)
    for _ in range(cycles):
        made.cycle()
    return slurm, made


def cycled(made: Controller, times: int) -> Cycle:
    """What the last of so many cycles did."""
    return [made.cycle() for _ in range(times)][-1]


def assigned(made: Controller) -> dict[int, Assignment]:
    """What the list of a controller's folder holds."""
    return StateDirectory(made.directory.path).ownership().assigned


def five_nodes(*used: int) -> list[SlurmNode]:
    """The cluster of paper §5.6 with so many GPUs in use, node by node."""
    sizes = {"p100-1": 4, "p100-2": 4, "k80-1": 2, "k80-2": 2, "m40-1": 1}
    return [node(name, name[:-2], gpus, taken) for (name, gpus), taken in zip_longest(sizes.items(), used, fillvalue=0)]


def busy(n: int = 6) -> FakeSlurm:
    """Jobs that wait for a full cluster, but for one GPU."""
    jobs = [running(1, "p100-1", gpus=4), running(2, "p100-2", gpus=3)]
    jobs += [job(10 + k, gpus=1 + k % 2, reason="Resources" if k == 0 else "Priority") for k in range(n)]
    return FakeSlurm({one.id: one for one in jobs}, five_nodes(4, 3, 2, 2, 1))


def priorities(slurm: FakeSlurm) -> dict[int, int]:
    """Waiting job → its priority."""
    return {number: one.priority for number, one in slurm.queue.items() if one.state == "PENDING"}


def partly_used_node(shared: str) -> FakeSlurm:
    """A job of two GPUs waits; p100-1 runs another such job and has two GPUs free, p100-2 is idle."""
    jobs = [running(1, "p100-1", gpus=2), job(10, gpus=2, gpu_type="p100", shared=shared)]
    return FakeSlurm({one.id: one for one in jobs}, five_nodes(2, 0, 2, 2, 1))
