"""Release jobs to Slurm: jobs that are not ranked any more, and all of them when the controller ends.

Slurm's release lifts a hold, too: a job is released only while it waits with the priority that the controller gave it.
A release that Slurm accepts may be lost: slurmctld saves its state some seconds later and may be killed before. So the
queue is read again, and once more when the state has been saved.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from rltune.config.slurm import Band, SlurmConfig
from rltune.slurm.client import Client
from rltune.slurm.ownership import Assignment, Ownership, look_up, update_ownership
from rltune.slurm.records import WAITING_STATES, Outcome, Parsed, SlurmJob

CHANGED = "was held, was given another priority or has started just before its release"
STILL = "has its priority of the band again after its release"
UNREAD = "its record cannot be read; it may still have whole nodes or excluded nodes of the controller's"
PASSES = 8
"""Readings of the queue at most."""
SAVED_S = 6.0
"""Time after which slurmctld has saved what it answered: its thread waits 5 s at most (SAVE_MAX_WAIT)."""


def release(slurm: Client, jobs: Mapping[int, int], band: Band, fresh: bool) -> Iterator[Outcome]:
    """Release jobs that waited with these priorities, batch by batch, if they still do: an outcome each.

    Before each batch Slurm reports its jobs again, but for the first where the priorities are ``fresh``. A job that has
    changed has no outcome.
    """
    ids = sorted(jobs)
    while ids:
        batch, ids = ids[: slurm.batch], ids[slurm.batch :]
        if not fresh:
            found = {job: state for job, state in slurm.states(batch).items() if state.state in WAITING_STATES}
            batch = [j for j in batch if j in found and (found[j].priority == jobs[j] or found[j].priority in band)]
        fresh = False
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


def unlisted(jobs: Collection[SlurmJob], ownership: Ownership, config: SlurmConfig) -> frozenset[int]:
    """Of the jobs in_band finds, those whose priority is neither from the list nor known to be somebody else's."""
    known = ownership.owned(jobs, config.band).keys() | ownership.set_by_others(jobs, config.band)
    return frozenset(in_band(jobs, config).keys() - known)


@dataclass
class FullRelease:
    """Releases every job that waits with a priority of the list, and has the results, also after an error."""

    slurm: Client
    config: SlurmConfig
    ownership: Ownership
    """What is still on the list."""
    keep: Callable[[Ownership], None]
    """Called with each new list."""
    now_s: float
    pause: Callable[[float], None] = time.sleep
    jobs: set[int] = field(default_factory=set)
    """Released jobs."""
    refused: dict[int, Outcome] = field(default_factory=dict)
    running: int = 0
    """Jobs of the list that run: they keep the assigned priority if they are requeued."""
    unread: Mapping[int, bool] = field(default_factory=dict)
    """Jobs with node settings on the list that the last answer lacked → whether they wait."""
    unlisted: frozenset[int] = frozenset()
    """Waiting jobs of the ranked partitions whose priority of the band is not from the list."""

    def run(self, band_too: bool = False) -> None:
        """Repeat until two answers, the second after slurmctld has saved its state, show no job of the list with a
        priority of the controller's.

        A job that an answer lacks for no known reason is requested by its id. If the list has whole or excluded nodes of it,
        these may be its user's by now: it stays on the list and counts as refused. Other released jobs stay there until the
        end. ``band_too``: also jobs of the ranked partitions with a priority in the band that are not on the list.
        Raises RLTuneError where Slurm does not answer.
        """
        requeue_s, is_saved = self.slurm.requeue_s(), False
        sent: dict[int, tuple[int, ...]] = {}
        """Priorities that a job had, or may still get by a change that is late."""
        for _ in range(PASSES):
            read, refused = self.slurm.jobs(), self.refused.keys()
            owned = self._look(read, requeue_s)
            if band_too:
                owned |= in_band(read.records, self.config)
            self.unlisted = unlisted(read.records, self.ownership, self.config) - self.jobs - owned.keys()
            # another priority than before a release that Slurm has made is its own, even in the band
            owned = {job: at for job, at in owned.items() if job not in self.jobs or at in sent[job]}
            for job, at in owned.items():
                given = self.ownership.assigned.get(job, Assignment(at))
                sent.setdefault(job, (at, given.priority, given.previous))
            undo = [change for job in read.records if (change := self.ownership.undo(job))]
            assigned = self.ownership.assigned
            self.ownership = self.ownership.before_release(owned)
            self.keep(self.ownership)
            undone = self.slurm.update(undo) if undo else []
            outcomes: list[Outcome] = []
            for outcome in release(self.slurm, owned, self.config.band, fresh=not undo):
                outcomes.append(outcome)
                self.jobs |= {outcome.job} if outcome.ok else set()
            self._record(assigned, owned, undone, outcomes)
            self.keep(self.ownership)
            is_over = is_saved or not self.jobs and not any(given.missed for given in self.ownership.present.values())
            if is_over and not owned and not undo:
                over = self.jobs - self.unread.keys()
                rest = {job: given for job, given in self.ownership.assigned.items() if job not in over}
                self.ownership = replace(self.ownership, assigned=rest)
                self.refused = self._unread()
                return self.keep(self.ownership)
            if self.refused and self.refused.keys() == refused:
                return None
            is_saved = not owned and not undo
            if is_saved:
                self.pause(SAVED_S)
        self.refused |= self._unread() | {job: Outcome(job, False, STILL) for job in owned}
        return None

    def _unread(self) -> dict[int, Outcome]:
        return {job: Outcome(job, False, UNREAD) for job, waits in self.unread.items() if waits}

    def _look(self, read: Parsed[SlurmJob], requeue_s: float) -> dict[int, int]:
        """Bring the list up to date with an answer; jobs that wait with a priority of the list → that priority."""
        missing, band = self.ownership.unaccounted(read), self.config.band
        found, over = look_up(self.slurm, missing)
        self.ownership, _ = update_ownership(self.ownership, read, band, missing, over, self.now_s, requeue_s)
        assigned = self.ownership.assigned
        self.running = sum(
            job.state not in WAITING_STATES and (job.id in assigned or job.array_id in assigned) for job in read.records
        )
        waiting = {job: state for job, state in found.items() if state.state in WAITING_STATES and job in assigned}
        there = found.keys() & assigned.keys() - over
        self.unread = {job: job in waiting for job in there if assigned[job].exclusive or assigned[job].excluded}
        return self.ownership.owned(read.records, band) | {
            job: state.priority for job, state in waiting.items() if assigned[job].includes(state.priority, band)
        }

    def _record(
        self, before: Mapping[int, Assignment], owned: Mapping[int, int], undone: list[Outcome], released: list[Outcome]
    ) -> None:
        """Record the outcomes of one pass; ``before``: the assignments until then."""
        outcomes = (*undone, *released)
        changed = [Outcome(job, False, CHANGED) for job in owned.keys() - {outcome.job for outcome in released}]
        self.refused = {o.job: o for o in (*outcomes, *changed) if not o.ok and not o.over and not o.started}
        over = {o.job for o in outcomes if o.over}
        assigned = {job: given for job, given in self.ownership.assigned.items() if job not in over}
        for outcome in undone:  # for a job that was not to be released, the next pass finds the reason
            if outcome.ok and outcome.job in assigned:
                missed = 0 if outcome.job in owned else 1
                assigned[outcome.job] = replace(assigned[outcome.job].without_node_settings(), missed=missed)
        assigned |= {job: assigned.get(job, Assignment(0)) for job in self.refused}
        assigned |= {outcome.job: before[outcome.job] for outcome in changed if outcome.job in before}
        overridden = {job: missed for job, missed in self.ownership.overridden.items() if job not in self.jobs}
        self.ownership = Ownership(assigned, overridden)
