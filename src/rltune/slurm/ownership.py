"""Which jobs have a priority of the controller's: told by the list of touched jobs and by the priority itself.

Neither alone is enough. A job whose priority somebody else has changed since is theirs; a job whose own priority happens to
lie in the band was never ours. A job that runs may be put back into the queue, and keeps its priority then; a task of an
array takes over that of the array.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from rltune.config.slurm import BandConfig
from rltune.slurm.records import ENDED_STATES, WAITING_STATES, JobState, Parsed, Slurm, SlurmJob
from rltune.slurm.touched import Owned, Touch

ANSWERS = 2
"""So many in a row have to say that a job is gone, or is not ours any more: one may lack jobs and look whole."""


def touch_of(job: SlurmJob, touched: Mapping[int, Touch]) -> Touch | None:
    """What a job was given, by itself or as a task of its array."""
    return touched.get(job.id) or (touched.get(job.array_id) if job.array_id is not None else None)


def is_ours(job: SlurmJob, touched: Mapping[int, Touch], band: BandConfig) -> bool:
    """Whether a job waits with a priority that the controller gave it."""
    touch = touch_of(job, touched)
    return job.state in WAITING_STATES and touch is not None and touch.gave(job.priority, band)


def ours(jobs: Iterable[SlurmJob], touched: Mapping[int, Touch], band: BandConfig) -> frozenset[int]:
    """Ids of the jobs that wait with a priority that the controller gave them."""
    return frozenset(job.id for job in jobs if is_ours(job, touched, band))


def theirs(jobs: Iterable[SlurmJob], owned: Owned, band: BandConfig) -> frozenset[int]:
    """Ids of the jobs that wait with a priority that somebody else gave them after the controller had, tasks among them
    that have it from their array."""
    touched = owned.touched
    others = [job for job in jobs if job.state in WAITING_STATES and job.priority and not is_ours(job, touched, band)]
    known = owned.theirs.keys() | {job.id for job in others if job.id in touched and touched[job.id].seen}
    return frozenset(job.id for job in others if job.id in known or job.array_id in known and job.id not in touched)


def doubted(owned: Owned, read: Parsed[SlurmJob]) -> list[int]:
    """Jobs of the list that an answer lacks although they may be there: some record of it could not be read, or it lacks
    every one of them."""
    there = {number for job in read.records for number in (job.id, job.array_id)}
    known = [*owned.touched, *(job for job in owned.theirs if job not in owned.touched)]
    lacking = [job for job in known if job not in there]
    return lacking if read.faults or len(lacking) == len(known) else []


def due(owned: Owned, jobs: Iterable[int]) -> list[int]:
    """Of jobs that an answer lacks, those that it would be the last to lack before they are forgotten."""
    missed = {**owned.theirs, **{job: touch.missed for job, touch in owned.touched.items()}}
    return [job for job in jobs if missed[job] + 1 >= ANSWERS]


def asked_for(slurm: Slurm, jobs: Sequence[int]) -> tuple[dict[int, JobState], frozenset[int]]:
    """(How jobs stand that are asked for by their ids, those of them that are over: ended, or unknown by Slurm's word)."""
    if not jobs:
        return {}, frozenset()
    found = slurm.states(jobs)
    lacking = [job for job in jobs if job not in found]
    over = {job for job, standing in found.items() if standing.state in ENDED_STATES}
    return found, frozenset(over | slurm.unknown(lacking) if lacking else over)


def remembered(
    owned: Owned, read: Parsed[SlurmJob], band: BandConfig, doubts: Collection[int] = (), over: Collection[int] = ()
) -> tuple[Owned, dict[int, str]]:
    """(What to keep of the list after an answer, job → why it is forgotten).

    Forgotten is what is gone, is held, or has another priority by now, each by ANSWERS in a row; of the last kind it is
    noted that the priority is somebody else's. A job that runs is kept, for it may be requeued. ``doubts``: jobs that the
    answer lacks and that stay for all that; ``over``: those of them that are over by Slurm's own word.
    """
    doubts, over = frozenset(doubts), frozenset(over)
    members: dict[int, list[SlurmJob]] = defaultdict(list)
    for job in read.records:
        for number in {job.id, job.array_id} - {None}:
            members[number].append(job)  # type: ignore[index]
    single = {job.id: job for job in read.records}
    kept: dict[int, Touch] = {}
    others: dict[int, int] = {}
    forgotten: dict[int, str] = {}
    for number, before in {**owned.touched, **_taken_over(read.records, owned.touched, band)}.items():
        own = single.get(number)
        touch = replace(before, missed=_missed(before, members[number], band), seen=_is_seen(before, own, band))
        if touch.missed >= ANSWERS and number in doubts:
            touch = replace(touch, missed=0)
        if touch.missed < ANSWERS and number not in over:
            kept[number] = touch
            continue
        forgotten[number] = _why(own, touch)
        if own is not None and touch.seen:
            others[number] = 0
    for number, missed in owned.theirs.items():
        own = single.get(number)
        missed = 0 if members[number] else missed + 1
        if missed >= ANSWERS and number in doubts:
            missed = 0
        if own is not None and own.state in WAITING_STATES and own.priority == 0:
            forgotten[number] = "held"
        elif missed < ANSWERS and number not in over:
            others[number] = missed
    return Owned(kept, others), forgotten


def _taken_over(jobs: Iterable[SlurmJob], touched: Mapping[int, Touch], band: BandConfig) -> dict[int, Touch]:
    """Touches of tasks that have taken over what their arrays were given."""
    return {
        job.id: Touch(job.priority, alone=touched[job.array_id].alone)
        for job in jobs  # type: ignore[index]
        if job.id not in touched and is_ours(job, touched, band)
    }


def _missed(touch: Touch, records: Iterable[SlurmJob], band: BandConfig) -> int:
    """Answers in a row, this one too, that did not show any need of a touch."""
    for job in records:
        if job.state not in WAITING_STATES or touch.gave(job.priority, band) or touch.alone:
            return 0
    return touch.missed + 1


def _is_seen(touch: Touch, own: SlurmJob | None, band: BandConfig) -> bool:
    """Whether the last that was seen of a job was that it waits with a priority of the controller's, somebody else's
    aside."""
    if own is None:
        return touch.seen
    if own.state not in WAITING_STATES or own.priority == 0:
        return False
    return touch.seen or touch.gave(own.priority, band)


def _why(own: SlurmJob | None, touch: Touch) -> str:
    if own is None:
        return "gone"
    if own.priority == 0:
        return "held"
    whose = "which somebody has set" if touch.seen else "Slurm's own"
    return f"has priority {own.priority}, {whose}"
