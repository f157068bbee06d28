"""Jobs given back to Slurm: those that are not to be ranked any more, and all of them where the controller ends.

Slurm's release lifts a hold, too: a job is released only while it waits with the priority that the controller gave it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from rltune.config.slurm import BandConfig, SlurmConfig
from rltune.slurm.client import BATCH
from rltune.slurm.ownership import ANSWERS, asked_for, doubted, is_ours, remembered
from rltune.slurm.records import WAITING_STATES, Change, Outcome, Parsed, Slurm, SlurmJob
from rltune.slurm.touched import Owned, Touch

CHANGED = "was held, was given another priority or has started just before it was to be released"


@dataclass
class GivenBack:
    """What has been given back so far."""

    owned: Owned
    """What is still on the list."""
    released: set[int] = field(default_factory=set)
    refused: dict[int, Outcome] = field(default_factory=dict)
    running: int = 0
    """Jobs of the list that run: with the priority they were given, should they be requeued."""


def release(slurm: Slurm, jobs: Mapping[int, int], band: BandConfig, now: bool) -> Iterator[Outcome]:
    """Release jobs that waited with these priorities, batch by batch, those of them that still do: an outcome each.

    Before each batch Slurm is asked about its jobs; not before the first where the priorities are of just ``now``. A job
    that has changed meanwhile has no outcome.
    """
    ids = sorted(jobs)
    for k in range(0, len(ids), BATCH):
        batch = ids[k : k + BATCH]
        if k or not now:
            found = slurm.states(batch)
            batch = [
                job
                for job in batch
                if job in found
                and found[job].state in WAITING_STATES
                and (found[job].priority == jobs[job] or found[job].priority in band)
            ]
        if batch:
            yield from slurm.release(batch)


def in_band(jobs: Iterable[SlurmJob], config: SlurmConfig) -> dict[int, int]:
    """Jobs of the ranked partitions that wait with a priority of the band, whoever gave it → that priority."""
    partitions = set(config.scope.partitions)
    return {
        job.id: job.priority
        for job in jobs
        if job.state in WAITING_STATES and job.priority in config.band and partitions & set(job.partition.split(","))
    }


def unseen(owned: Owned, jobs: Iterable[int]) -> Owned:
    """The list from just before jobs are released: what priority they have after it is Slurm's doing, not somebody's."""
    changed = {job: replace(owned.touched[job], seen=False) for job in jobs if job in owned.touched}
    return replace(owned, touched={**owned.touched, **changed})


def give_back(
    slurm: Slurm, config: SlurmConfig, done: GivenBack, keep: Callable[[Owned], None], band_too: bool = False
) -> None:
    """Give every job that waits with a priority of the list back to Slurm; ``done`` begins with the list, and holds what was
    done, also where this raises RLTuneError because Slurm does not answer.

    It looks twice where one answer lacks a job, or Slurm has refused one: the next answer may have it, or have it gone. A
    job that an answer lacks for no known reason is asked for by its id. ``keep``: told of each list that becomes true.
    ``band_too``: also jobs of the ranked partitions with a priority in the band that nobody remembers.
    """
    for _ in range(ANSWERS):
        read = slurm.jobs()
        doubts = doubted(done.owned, read)
        found, over = asked_for(slurm, doubts)
        done.owned, _ = remembered(done.owned, read, config.band, doubts, over)
        done.running = _running(done.owned, read)
        touched = done.owned.touched
        mine = {job.id: job.priority for job in read.records if is_ours(job, touched, config.band)}
        mine |= {
            job: standing.priority
            for job, standing in found.items()
            if standing.state in WAITING_STATES and job in touched and touched[job].gave(standing.priority, config.band)
        }
        if band_too:
            mine |= {job: at for job, at in in_band(read.records, config).items() if job not in done.released}
        shared = [
            Change(job.id, oversubscribe=True)
            for job in read.records
            if job.state in WAITING_STATES and job.id in touched and touched[job.id].alone
        ]
        done.owned = unseen(done.owned, mine)
        keep(done.owned)
        unshared = slurm.update(shared) if shared else []
        given_back: list[Outcome] = []
        for outcome in release(slurm, mine, config.band, now=True):
            given_back.append(outcome)
            done.released |= {outcome.job} if outcome.ok else set()
        _count(done, touched, mine, unshared, given_back)
        keep(done.owned)
        if not done.refused and not any(touch.missed for touch in done.owned.touched.values()):
            break


def _running(owned: Owned, read: Parsed[SlurmJob]) -> int:
    return sum(
        job.state not in WAITING_STATES and bool({job.id, job.array_id} & owned.touched.keys()) for job in read.records
    )


def _count(
    done: GivenBack,
    before: Mapping[int, Touch],
    mine: Mapping[int, int],
    unshared: list[Outcome],
    given_back: list[Outcome],
) -> None:
    """Note what became of one look's jobs; ``before``: what was known of them."""
    told = (*unshared, *given_back)
    changed = [Outcome(job, False, CHANGED) for job in mine.keys() - {outcome.job for outcome in given_back}]
    done.refused = {o.job: o for o in (*told, *changed) if not o.ok and not o.over and not o.started}
    off = {o.job for o in told if o.over} | {o.job for o in given_back if o.ok} - done.refused.keys()
    touched = {job: touch for job, touch in done.owned.touched.items() if job not in off}
    for outcome in unshared:  # of a job that was not to be released the next look tells why
        if outcome.ok and outcome.job in touched and outcome.job not in mine:
            touched[outcome.job] = replace(touched[outcome.job], alone=False, missed=1)
    touched |= {job: touched.get(job, Touch(0)) for job in done.refused}
    touched |= {outcome.job: before[outcome.job] for outcome in changed if outcome.job in before}
    others = {job: missed for job, missed in done.owned.theirs.items() if job not in done.released}
    done.owned = Owned(touched, others)
