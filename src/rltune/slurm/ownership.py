"""Which jobs have a priority of the controller's: told by the list of touched jobs and by the priority itself.

Neither alone is enough. A job whose priority somebody else has changed since is theirs again; a job whose own priority
happens to lie in the band was never ours. A job that runs may be put back into the queue, and keeps its priority then; a
task of an array takes over that of the array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rltune.slurm.folder import Touch
from rltune.slurm.records import WAITING_STATES, Parsed, SlurmJob


ANSWERS = 2
"""So many in a row have to say that a job is gone, or is not ours any more: one may lack jobs and look whole."""


def touch_of(job: SlurmJob, touched: Mapping[int, Touch]) -> Touch | None:
    """What a job was given, by itself or as a task of its array."""
    return touched.get(job.id) or (touched.get(job.array_id) if job.array_id is not None else None)


def is_ours(job: SlurmJob, touched: Mapping[int, Touch]) -> bool:
    """Whether a job waits with a priority that the controller gave it."""
    touch = touch_of(job, touched)
    return job.state in WAITING_STATES and touch is not None and touch.gave(job.priority)


def ours(jobs: Iterable[SlurmJob], touched: Mapping[int, Touch]) -> frozenset[int]:
    """Ids of the jobs that wait with a priority that the controller gave them."""
    return frozenset(job.id for job in jobs if is_ours(job, touched))


def remembered(touched: Mapping[int, Touch], read: Parsed[SlurmJob]) -> dict[int, Touch]:
    """The touches to keep after a reading: forgotten is what Slurm says, twice, is gone, or has another priority by now.

    A job that runs is kept, for it may be requeued; where some record could not be read nothing is forgotten.
    """
    if read.faults:
        return dict(touched)
    shown: set[int] = set()
    for job in read.records:
        for number in (job.id, job.array_id):
            touch = touched.get(number) if number is not None else None
            if touch is not None and (job.state not in WAITING_STATES or touch.gave(job.priority) or touch.alone):
                shown.add(number)  # type: ignore[arg-type]
    after = {job: replace(touch, missed=0 if job in shown else touch.missed + 1) for job, touch in touched.items()}
    return {job: touch for job, touch in after.items() if touch.missed < ANSWERS}
