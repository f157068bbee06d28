"""A Slurm in memory, for what the real daemons cannot be made to do at will; a policy; jobs and nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rltune.agent.policy_file import TrainedPolicy, save_policy, shapes_of
from rltune.config.slurm import BandConfig, SlurmConfig
from rltune.errors import SlurmUnavailable
from rltune.slurm.controller import Controller
from rltune.slurm.records import Change, JobState, Outcome, Parsed, SlurmJob, SlurmNode
from rltune.slurm.state_directory import StateDirectory

NOW_S = 1_700_000_000.0
BAND = BandConfig()


def job(number: int, **told: Any) -> SlurmJob:
    """A waiting job of one GPU; ``told`` changes fields."""
    gpus = told.get("gpus", 1)
    base: dict[str, Any] = {
        "id": number,
        "user": "ada",
        "account": "lab",
        "partition": "gpu",
        "qos": "normal",
        "state": "PENDING",
        "reason": "Priority",
        "submit_s": NOW_S - 1000 + number,
        "start_s": None,
        "end_limit_s": None,
        "time_limit_s": 3600.0,
        "nodes": 1,
        "tasks": 1,
        "cpus": gpus,
        "mem_mb": 1000 * gpus,
        "gpus": gpus,
        "gpu_type": None,
        "node_names": (),
        "gpus_of_node": None,
        "priority": 5000 - number,
        "held": False,
        "dependency": "",
        "array_id": None,
        "het_id": None,
        "constraint": "",
        "shared": "OK",
        "gpus_by_type": {told.get("gpu_type") or "": gpus} if gpus else {},
    }
    return SlurmJob(**{**base, **told})


def running(number: int, node: str, **told: Any) -> SlurmJob:
    """A job that runs on one node."""
    return job(number, **{"state": "RUNNING", "reason": "None", "start_s": NOW_S - 500, "node_names": (node,), **told})


def node(name: str, kind: str = "p100", gpus: int = 4, used: int = 0, **told: Any) -> SlurmNode:
    """A node of 32 CPUs; ``told`` changes fields."""
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
        "features": (),
    }
    return SlurmNode(**{**base, **told})


@dataclass
class FakeSlurm:
    """Jobs and nodes; ``silent``: it does not answer. ``before_update`` runs just before changes are applied."""

    queue: dict[int, SlurmJob]
    machines: list[SlurmNode]
    silent: bool = False
    faults: tuple[str, ...] = ()
    before_update: Callable[[], None] = lambda: None
    computed: dict[int, int] = field(default_factory=dict)
    """Slurm's own priority of each job."""
    writes: list[Change] = field(default_factory=list)
    released: list[int] = field(default_factory=list)
    hidden: set[int] = field(default_factory=set)
    """Jobs that are there, and that the queue's listing lacks."""
    looked: list[str] = field(default_factory=list)
    """What was asked of the queue, one by one."""

    def __post_init__(self) -> None:
        self.computed = {number: told.priority for number, told in self.queue.items()}

    def _answer(self) -> None:
        if self.silent:
            raise SlurmUnavailable("squeue: the controller does not answer")

    def jobs(self) -> Parsed[SlurmJob]:
        self._answer()
        self.looked.append("jobs")
        return Parsed(tuple(told for number, told in self.queue.items() if number not in self.hidden), self.faults)

    def nodes(self) -> Parsed[SlurmNode]:
        self._answer()
        return Parsed(tuple(self.machines))

    def update(self, changes: list[Change]) -> list[Outcome]:
        self._answer()
        self.before_update()
        return [self._apply(change) for change in changes]

    def _apply(self, change: Change) -> Outcome:
        told = self.queue.get(change.job)
        if told is None or told.state != "PENDING":
            return Outcome(change.job, False, "Job/step already completing or completed")
        if change.priority is not None and told.priority == 0:
            return Outcome(change.job, False, "Job is in held state")
        self.writes.append(change)
        if change.priority is not None:
            told = replace(told, priority=change.priority)
        if change.oversubscribe is not None:
            told = replace(told, shared="YES" if change.oversubscribe else "NO")
        self.queue[change.job] = told
        return Outcome(change.job, True)

    def release(self, ids: Iterable[int]) -> list[Outcome]:
        self._answer()
        outcomes = []
        for number in ids:
            if number in self.queue and self.queue[number].state == "PENDING":
                self.queue[number] = replace(self.queue[number], priority=self.computed[number], held=False)
                self.released.append(number)
                outcomes.append(Outcome(number, True))
            elif number in self.queue:
                outcomes.append(Outcome(number, False, "Job is no longer pending execution"))
            else:
                outcomes.append(Outcome(number, False, "Invalid job id specified"))
        return outcomes

    def states(self, ids: Iterable[int]) -> dict[int, JobState]:
        self._answer()
        self.looked.append("states")
        there = {number: self.queue[number] for number in ids if number in self.queue}
        return {number: JobState(told.state, told.priority) for number, told in there.items()}

    def unknown(self, ids: Iterable[int]) -> frozenset[int]:
        self._answer()
        self.looked.append("unknown")
        return frozenset(ids) - self.queue.keys()

    def oversubscription(self, ids: Iterable[int]) -> dict[int, str]:
        return {number: self.queue[number].shared for number in ids if number in self.queue}

    def start(self, number: int, node: str = "p100-2") -> None:
        """A waiting job starts."""
        self.queue[number] = replace(self.queue[number], state="RUNNING", start_s=NOW_S, node_names=(node,))

    def requeue(self, number: int) -> None:
        """A running job is put back, with the priority it had."""
        self.queue[number] = replace(self.queue[number], state="PENDING", start_s=None, node_names=())

    def add(self, *jobs: SlurmJob) -> None:
        """More jobs come."""
        self.queue |= {told.id: told for told in jobs}
        self.computed |= {told.id: told.priority for told in jobs}


def write_policy(path: Path, features: str = "engineered", seed: int = 1, **facts: Any) -> Path:
    """A policy of random weights."""
    rng, widths = np.random.default_rng(seed), [shapes_of(features)["actor"][1], 16, 1]
    weights: list[np.ndarray] = []
    for a, b in zip(widths, widths[1:]):
        weights += [rng.normal(size=(a, b)).astype(np.float32), rng.normal(size=b).astype(np.float32)]
    save_policy(path, TrainedPolicy(tuple(weights), {"features": features, "agent": "rltune", **facts}))
    return path


def make_config(**told: Any) -> SlurmConfig:
    """A configuration for partition gpu."""
    base = {"policy": "policy.npz", "eligible": {"partitions": ["gpu"]}, "interval_s": 0.01, "timeout_s": 5.0}
    return SlurmConfig.model_validate({**base, **told})


def controller(slurm: FakeSlurm, folder: Path, live: bool = True, state: Path | None = None, **told: Any) -> Controller:
    """A controller of a fake Slurm, its clock at NOW_S; what it says is in ``.said``."""
    folder.mkdir(exist_ok=True)
    policy = folder / "policy.npz"
    if not policy.is_file():
        write_policy(policy)
    said: list[str] = []
    made = Controller(
        make_config(**told), slurm, StateDirectory(state or folder), policy, live, lambda: NOW_S, said.append
    )
    made.said = said  # type: ignore[attr-defined]
    return made


def five_nodes(*used: int) -> list[SlurmNode]:
    """The cluster of paper §5.6 with so many GPUs in use, node by node."""
    shapes = [
        ("p100-1", "p100", 4),
        ("p100-2", "p100", 4),
        ("k80-1", "k80", 2),
        ("k80-2", "k80", 2),
        ("m40-1", "m40", 1),
    ]
    return [node(*shape, used=taken) for shape, taken in zip(shapes, [*used, *[0] * (5 - len(used))], strict=True)]


def busy(n: int = 6) -> FakeSlurm:
    """Jobs that wait for a full cluster, but for one GPU."""
    jobs = [running(1, "p100-1", gpus=4), running(2, "p100-2", gpus=3)]
    jobs += [job(10 + k, gpus=1 + k % 2, reason="Resources" if k == 0 else "Priority") for k in range(n)]
    return FakeSlurm({told.id: told for told in jobs}, five_nodes(4, 3, 2, 2, 1))


def priorities(slurm: FakeSlurm) -> dict[int, int]:
    """Waiting job → its priority."""
    return {number: told.priority for number, told in slurm.queue.items() if told.state == "PENDING"}


def beside_one(shared: str) -> FakeSlurm:
    """A job of two GPUs; p100-1 has two free beside another such job, p100-2 is idle."""
    jobs = [running(1, "p100-1", gpus=2), job(10, gpus=2, gpu_type="p100", shared=shared)]
    return FakeSlurm({told.id: told for told in jobs}, five_nodes(2, 0, 2, 2, 1))
