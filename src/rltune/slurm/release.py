"""Release jobs to Slurm: jobs that are not ranked any more, and all of them when the controller ends.

Slurm's release lifts a hold, too: a job is released only while it waits with the priority that the controller gave it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from rltune.config.slurm import BandConfig, SlurmConfig
from rltune.slurm.client import BATCH
from rltune.slurm.ownership import ANSWERS, Assignment, Ownership, look_up, update_ownership
from rltune.slurm.records import WAITING_STATES, Change, Outcome, Slurm, SlurmJob

CHANGED = "was held, was given another priority or has started just before its release"


@dataclass
class Released:
    """What has been released so far."""

    ownership: Ownership
    """What is still on the list."""
    jobs: set[int] = field(default_factory=set)
    refused: dict[int, Outcome] = field(default_factory=dict)
    running: int = 0
    """Jobs of the list that run: they keep the assigned priority if they are requeued."""


def release(slurm: Slurm, jobs: Mapping[int, int], band: BandConfig, fresh: bool) -> Iterator[Outcome]:
    """Release jobs that waited with these priorities, batch by batch, if they still do: an outcome each.

    Before each batch Slurm reports its jobs again, but for the first where the priorities are ``fresh``. A job that has
    changed has no outcome.
    """
    ids = sorted(jobs)
    for k in range(0, len(ids), BATCH):
        batch = ids[k : k + BATCH]
        if k or not fresh:
            found = {job: state for job, state in slurm.states(batch).items() if state.state in WAITING_STATES}
            batch = [j for j in batch if j in found and (found[j].priority == jobs[j] or found[j].priority in band)]
        if batch:
            yield from slurm.release(batch)


def in_band(jobs: Iterable[SlurmJob], config: SlurmConfig) -> dict[int, int]:
    """Jobs of the ranked partitions that wait with a priority of the band, whoever set it → that priority."""
    partitions = set(config.eligible.partitions)
    return {
        job.id: job.priority
        for job in jobs
        if job.state in WAITING_STATES and job.priority in config.band and partitions & set(job.partition.split(","))
    }


def release_all(
    slurm: Slurm, config: SlurmConfig, done: Released, keep: Callable[[Ownership], None], band_too: bool = False
) -> None:
    """Release every job that waits with a priority of the list; ``done`` starts with the list and holds what was done, also
    where this raises RLTuneError because Slurm does not answer.

    It repeats where one answer lacks a job, or Slurm has refused one: the next answer may include it, or show that it is
    gone. A job that an answer lacks for no known reason is requested by its id. ``keep`` is given each new list.
    ``band_too``: also jobs of the ranked partitions with a priority in the band that are not on the list.
    """
    for _ in range(ANSWERS):
        read = slurm.jobs()
        missing = done.ownership.unaccounted(read)
        found, over = look_up(slurm, missing)
        done.ownership, _ = update_ownership(done.ownership, read, config.band, missing, over)
        assigned = done.ownership.assigned
        done.running = sum(
            job.state not in WAITING_STATES and (job.id in assigned or job.array_id in assigned) for job in read.records
        )
        owned = done.ownership.owned(read.records, config.band)
        owned |= {
            job: state.priority
            for job, state in found.items()
            if state.state in WAITING_STATES and job in assigned and assigned[job].includes(state.priority, config.band)
        }
        if band_too:
            owned |= {job: at for job, at in in_band(read.records, config).items() if job not in done.jobs}
        unflag = [
            Change(job.id, oversubscribe=True)
            for job in read.records
            if job.state in WAITING_STATES and done.ownership.has_whole_nodes(job.id)
        ]
        done.ownership = done.ownership.unseen(owned)
        keep(done.ownership)
        unflagged = slurm.update(unflag) if unflag else []
        outcomes: list[Outcome] = []
        for outcome in release(slurm, owned, config.band, fresh=True):
            outcomes.append(outcome)
            done.jobs |= {outcome.job} if outcome.ok else set()
        _record(done, assigned, owned, unflagged, outcomes)
        keep(done.ownership)
        if not done.refused and not any(given.missed for given in done.ownership.assigned.values()):
            break


def _record(
    done: Released,
    before: Mapping[int, Assignment],
    owned: Mapping[int, int],
    unflagged: list[Outcome],
    released: list[Outcome],
) -> None:
    """Record the outcomes of one pass; ``before``: the assignments until then."""
    outcomes = (*unflagged, *released)
    changed = [Outcome(job, False, CHANGED) for job in owned.keys() - {outcome.job for outcome in released}]
    done.refused = {o.job: o for o in (*outcomes, *changed) if not o.ok and not o.over and not o.started}
    off = {o.job for o in outcomes if o.over} | {o.job for o in released if o.ok} - done.refused.keys()
    assigned = {job: given for job, given in done.ownership.assigned.items() if job not in off}
    for outcome in unflagged:  # for a job that was not to be released, the next pass finds the reason
        if outcome.ok and outcome.job in assigned and outcome.job not in owned:
            assigned[outcome.job] = replace(assigned[outcome.job], exclusive=False, missed=1)
    assigned |= {job: assigned.get(job, Assignment(0)) for job in done.refused}
    assigned |= {outcome.job: before[outcome.job] for outcome in changed if outcome.job in before}
    overridden = {job: missed for job, missed in done.ownership.overridden.items() if job not in done.jobs}
    done.ownership = Ownership(assigned, overridden)
