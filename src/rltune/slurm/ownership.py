"""Which jobs have a priority from the controller: decided by the list of assigned jobs and by the priority itself.

Neither alone is enough. A job whose priority somebody else has changed since is overridden; a job whose own priority happens
to lie in the band never was the controller's. A running job may be requeued, by its owner also one that has ended, and keeps
its priority then; a task of an array inherits that of the array.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from rltune.config.slurm import Band
from rltune.slurm.client import Client
from rltune.slurm.records import ENDED_STATES, WAITING_STATES, Change, JobState, Parsed, SlurmJob
from rltune.slurm.values import expand

FORMAT = 4
UNFIT = "BadConstraints"
"""Slurm's reason for a job that no node could run."""
ANSWERS = 2
"""Consecutive answers that have to show that a job is gone, or not the controller's any more: one may be incomplete."""


@dataclass(frozen=True)
class Assignment:
    """What the controller gave a job."""

    priority: int
    """0 where only something else was changed."""
    previous: int = 0
    """The controller's own priority before this one, which the job still has where this one did not arrive; 0 for none."""
    exclusive: bool = False
    """Whether it was given whole nodes."""
    excluded: str = ""
    """The nodes that it was given to exclude, in Slurm's short form."""
    excluded_before: tuple[str, ...] = ()
    """Those before, which it may still have, or get again by a change that is late."""
    shown: int = 0
    """Consecutive answers that showed it with the last of them."""
    unfit: bool = False
    """Whether Slurm could not start it with the nodes that it was given to exclude: it is given none any more."""
    missed: int = 0
    """Consecutive answers that did not show it running, or waiting with a priority of the controller's."""
    seen: bool = False
    """Whether Slurm has shown it waiting with a priority of the controller's, and not running, held or released since:
    another priority is somebody else's then."""
    ended_s: float = 0.0
    """When it was found to have ended, s since 1970; 0 for a job that waits or runs."""

    def includes(self, priority: int, band: Band) -> bool:
        """Whether the controller may have given the job this priority: any of the band, since one sent earlier may arrive
        late; or one of the list, in case the band has changed."""
        return priority > 0 and (priority in band or priority in (self.priority, self.previous))

    def restricts(self, job: SlurmJob) -> bool:
        """Whether a job excludes the nodes that the controller gave it to exclude."""
        return bool(job.excluded) and job.excluded in map(names, (self.excluded, *self.excluded_before))

    def given(self, excluded: str) -> Assignment:
        """The same with other nodes to exclude; empty: none."""
        before = dict.fromkeys(filter(None, (self.excluded, *self.excluded_before)))
        return replace(self, excluded=excluded, excluded_before=tuple(before), shown=0)

    def seen_with(self, job: SlurmJob) -> Assignment:
        """The same after an answer that has the job."""
        if job.excluded != names(self.excluded):
            return replace(self, shown=0)
        unfit = self.unfit or bool(self.excluded) and job.reason == UNFIT
        before = self.excluded_before if self.shown + 1 < ANSWERS else ()
        return replace(self, shown=min(self.shown + 1, ANSWERS), excluded_before=before, unfit=unfit)

    def without_node_settings(self) -> Assignment:
        """The same with the priority alone. The nodes are remembered: Slurm may lose the change."""
        return replace(self.given(""), exclusive=False)

    def has_node_settings(self, job: SlurmJob) -> bool:
        """Whether a job has whole nodes or excluded nodes from the controller."""
        return self.exclusive or self.restricts(job)


@dataclass(frozen=True)
class Ownership:
    """Jobs with priorities of the controller's, and jobs whose priorities somebody else has set since."""

    assigned: dict[int, Assignment] = field(default_factory=dict)
    overridden: dict[int, int] = field(default_factory=dict)
    """Job → consecutive answers that lacked it."""

    def as_json(self) -> dict[str, Any]:
        """The content of assigned.json."""
        jobs = {job: asdict(assignment) for job, assignment in sorted(self.assigned.items())}
        return {"format": FORMAT, "jobs": jobs, "overridden": dict(sorted(self.overridden.items()))}

    @classmethod
    def from_json(cls, content: Any) -> Ownership:
        """The inverse. Raises ValueError, KeyError or TypeError for what is none of this version."""
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']}, expected {FORMAT}")
        found = {"assigned": content["jobs"], "overridden": content["overridden"]}
        return TypeAdapter(cls).validate_python(found)

    @property
    def present(self) -> dict[int, Assignment]:
        """Assignments of jobs that have not ended."""
        return {job: given for job, given in self.assigned.items() if not given.ended_s}

    def raised(self, jobs: Iterable[SlurmJob], band: Band) -> list[int]:
        """Jobs whose priority somebody has raised to another one of the band; only operators can. Without tasks of arrays,
        which get what their array gets where they left it after it was read."""
        waiting = (job for job in jobs if job.state in WAITING_STATES and job.array_id is None)
        found = ((job, self.assigned.get(job.id)) for job in waiting)
        return [
            job.id
            for job, given in found
            if given is not None
            and given.seen
            and job.priority in band
            and job.priority > max(given.priority, given.previous)
        ]

    def restricted(self, jobs: Iterable[SlurmJob]) -> frozenset[int]:
        """Jobs whose excluded nodes the controller has set."""
        return frozenset(job.id for job in jobs if job.id in self.assigned and self.assigned[job.id].restricts(job))

    def undo(self, job: SlurmJob) -> Change | None:
        """The change that removes whole nodes and excluded nodes from a waiting job; None where it has neither."""
        given = self.assigned.get(job.id)
        if given is None or job.state not in WAITING_STATES or not given.has_node_settings(job):
            return None
        return Change(
            job.id, oversubscribe=True if given.exclusive else None, exclude="" if given.restricts(job) else None
        )

    def owns(self, job: SlurmJob, band: Band) -> bool:
        """Whether a job waits with a priority that the controller gave it, or its array."""
        assignment = self.assigned.get(job.id) or self.assigned.get(job.array_id or 0)
        return job.state in WAITING_STATES and assignment is not None and assignment.includes(job.priority, band)

    def owned(self, jobs: Iterable[SlurmJob], band: Band) -> dict[int, int]:
        """Jobs that wait with a priority that the controller gave them → that priority."""
        return {job.id: job.priority for job in jobs if self.owns(job, band)}

    def affected(self, jobs: Collection[SlurmJob], band: Band) -> frozenset[int]:
        """Jobs that wait with a priority or with excluded nodes that the controller gave them."""
        waiting = [job for job in jobs if job.state in WAITING_STATES]
        return frozenset(self.owned(waiting, band)) | self.restricted(waiting)

    def set_by_others(self, jobs: Iterable[SlurmJob], band: Band) -> frozenset[int]:
        """Jobs that wait with a priority that somebody else gave them after the controller had, including tasks that
        inherit it from their array."""
        others = [job for job in jobs if job.state in WAITING_STATES and job.priority and not self.owns(job, band)]
        known = self.overridden.keys() | {j.id for j in others if j.id in self.assigned and self.assigned[j.id].seen}
        return frozenset(j.id for j in others if j.id in known or (j.array_id in known and j.id not in self.assigned))

    def unaccounted(self, read: Parsed[SlurmJob]) -> list[int]:
        """Jobs of the list that an answer lacks although they may exist: some record of the answer could not be read, or
        it lacks every job of the list."""
        there = {number for job in read.records for number in (job.id, job.array_id)}
        known = {**self.present, **self.overridden}
        lacking = [job for job in known if job not in there]
        return lacking if read.faults or len(lacking) == len(known) else []

    def nearly_forgotten(self, jobs: Iterable[int]) -> list[int]:
        """Of jobs that an answer lacks, those that the next such answer would remove from the list."""
        missed = {**self.overridden, **{job: given.missed for job, given in self.assigned.items()}}
        return [job for job in jobs if missed[job] + 1 >= ANSWERS]

    def before_release(self, jobs: Iterable[int]) -> Ownership:
        """The list just before jobs are released: whatever priority they have afterwards is Slurm's."""
        changed = {job: replace(self.assigned[job], seen=False) for job in jobs if job in self.assigned}
        return replace(self, assigned={**self.assigned, **changed})


@lru_cache(maxsize=64)
def names(nodes: str) -> frozenset[str]:
    """Nodes of Slurm's short form."""
    return frozenset(expand(nodes))


def look_up(slurm: Client, jobs: Sequence[int]) -> tuple[dict[int, JobState], frozenset[int]]:
    """(States of jobs requested by their ids, those of them that have ended or that Slurm says it does not know)."""
    found = slurm.states(jobs)
    over = {job for job, state in found.items() if state.state in ENDED_STATES}
    return found, frozenset(over | slurm.unknown(job for job in jobs if job not in found))


def update_ownership(
    old: Ownership,
    read: Parsed[SlurmJob],
    band: Band,
    unaccounted: Collection[int] = (),
    over: Collection[int] = (),
    now_s: float = 0.0,
    requeue_s: float = 0.0,
) -> tuple[Ownership, dict[int, str]]:
    """(The list after an answer, job → why it is removed from the list).

    A job is removed that is gone, is held, or has another priority, each in ANSWERS consecutive answers; in the last case it
    is noted that the priority is somebody else's. A running job stays, since it may be requeued, and so does one that has
    ended, for ``requeue_s``. ``unaccounted``: jobs that the answer lacks and that stay nevertheless; ``over``: those of them
    that have ended according to Slurm; ``now_s``: s since 1970.
    """
    members: dict[int, list[SlurmJob]] = defaultdict(list)
    for job in read.records:
        for number in {job.id, job.array_id or job.id}:
            members[number].append(job)
    single = {job.id: job for job in read.records}
    inherited = {
        job.id: Assignment(job.priority, exclusive=old.assigned[job.array_id or 0].exclusive)
        for job in read.records
        if job.id not in old.assigned and old.owns(job, band)
    }
    kept: dict[int, Assignment] = {}
    overridden: dict[int, int] = {}
    forgotten: dict[int, str] = {}
    for number, before in {**old.assigned, **inherited}.items():
        record = single.get(number)
        missed = _missed(before, members[number], band)
        new = replace(before, missed=missed, seen=_is_seen(before, record, band), ended_s=0.0)
        new = new if record is None else new.seen_with(record)
        if missed >= ANSWERS and number in unaccounted:
            new = replace(new, missed=0)
        if new.missed < ANSWERS and number not in over:
            kept[number] = new
            continue
        ended_s = before.ended_s or now_s
        if not members[number] and now_s - ended_s < requeue_s:
            kept[number] = replace(new, ended_s=ended_s)
            continue
        forgotten[number] = _reason(record, new)
        if record is not None and new.seen:
            overridden[number] = 0
    for number, before_missed in old.overridden.items():
        record = single.get(number)
        missed = 0 if members[number] else before_missed + 1
        if missed >= ANSWERS and number in unaccounted:
            missed = 0
        if record is not None and record.state in WAITING_STATES and record.priority == 0:
            forgotten[number] = "held"
        elif missed < ANSWERS and number not in over:
            overridden[number] = missed
    return Ownership(kept, overridden), forgotten


def _missed(given: Assignment, records: Iterable[SlurmJob], band: Band) -> int:
    """Consecutive answers, including this one, that did not show that an assignment still matters."""
    for job in records:
        if job.state not in WAITING_STATES or given.includes(job.priority, band) or given.has_node_settings(job):
            return 0
    return given.missed + 1


def _is_seen(given: Assignment, record: SlurmJob | None, band: Band) -> bool:
    """Whether a job was last seen waiting with a priority of the controller's (priorities of others apart)."""
    if record is None:
        return given.seen
    if record.state not in WAITING_STATES or record.priority == 0:
        return False
    return given.seen or given.includes(record.priority, band)


def _reason(record: SlurmJob | None, given: Assignment) -> str:
    if record is None:
        return "gone"
    if record.priority == 0:
        return "held"
    return f"has priority {record.priority}, {'which somebody has set' if given.seen else 'computed by Slurm'}"
