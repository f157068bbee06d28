"""What a cycle decided, told to Slurm; and noted first, so that whatever happens in between is found again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from rltune.config.slurm import BandConfig
from rltune.slurm.decide import Decision
from rltune.slurm.folder import Folder
from rltune.slurm.giving_back import release, unseen
from rltune.slurm.journal import Journal
from rltune.slurm.observe import View
from rltune.slurm.ownership import is_ours
from rltune.slurm.records import WAITING_STATES, Change, Outcome, Slurm, SlurmJob
from rltune.slurm.touched import Owned, Touch


@dataclass(frozen=True)
class Plan:
    """What a cycle is about to write, and what it goes by."""

    view: View
    jobs: tuple[SlurmJob, ...]
    """All that Slurm told of."""
    decision: Decision
    changes: list[Change]
    """Of jobs that are ranked."""
    owned: Owned
    """Whose priorities are whose."""
    forgotten: dict[int, str]
    """Jobs that are not on that list any more, each with the reason."""
    band: BandConfig

    @property
    def left(self) -> list[SlurmJob]:
        """Waiting jobs that are not ranked."""
        ranked = {job.id for job in self.view.ranked}
        return [job for job in self.jobs if job.state in WAITING_STATES and job.id not in ranked]

    @property
    def leave(self) -> dict[int, int]:
        """Those of them that have a priority of the controller's → that priority."""
        return {job.id: job.priority for job in self.left if is_ours(job, self.owned.touched, self.band)}

    def would(self) -> tuple[str, ...]:
        """What is to be written, a line a job, the first of each queue first."""
        by_job, lines = {change.job: change for change in self.changes}, []
        for pool, order in self.decision.orders.items():
            for k, job in enumerate(order):
                if job in by_job:
                    change, nodes = by_job[job], self.decision.starts.get(job)
                    flag = "" if change.oversubscribe is None else "YES" if change.oversubscribe else "NO"
                    line = f"{pool}, {k + 1} of {len(order)}: job {job}"
                    line += "" if change.priority is None else f", priority {change.priority}"
                    line += f", OverSubscribe={flag}" if flag else ""
                    lines.append(line + (f", could start on {', '.join(nodes)}" if nodes else ""))
        return (*lines, *(f"job {job}: released" for job in self.leave))


@dataclass(frozen=True)
class Written:
    """How many jobs were changed and given back, and of how many Slurm refused the one or the other."""

    changed: int
    released: int
    refused: int


@dataclass(frozen=True)
class Writer:
    """Writes plans. ``note`` is given what to write to disk where Slurm's failing must not be hidden by the disk's."""

    slurm: Slurm
    folder: Folder
    journal: Journal
    note: Callable[[Callable[[], None]], None]

    def write(self, plan: Plan) -> Written:
        """Write the list of touched jobs, then to the journal what is to be done, then to Slurm, then what became of it.

        Raises RLTuneError where Slurm does not answer, OSError where the disk is full: before Slurm was told, as far as
        what is on the disk has to come first.
        """
        leave = plan.leave
        known = unseen(replace(plan.owned, touched=_touches(plan)), leave)
        unflag = [Change(job.id, oversubscribe=True) for job in plan.left if is_alone(plan.owned.touched, job.id)]
        self.folder.write_touched(known.touched, known.theirs)
        self.journal.decided(self.folder, plan.view, plan.decision, plan.changes, leave, plan.forgotten, live=True)
        outcomes = self._update(plan, unflag)
        given_back = self._release(plan, leave)
        unflagged = {o.job for o in outcomes[len(plan.changes) :] if o.ok}
        released = {o.job for o in given_back if o.ok}
        as_it_was = {
            job: plan.owned.touched[job]
            for job in leave.keys() - {o.job for o in given_back}
            if job in plan.owned.touched
        }
        after = {
            job: replace(touch, alone=False) if job in unflagged else touch
            for job, touch in (known.touched | as_it_was).items()
        }
        after = {job: touch for job, touch in after.items() if job not in released or touch.alone}
        self.folder.write_touched(after, known.theirs)
        return Written(
            sum(o.ok for o in outcomes[: len(plan.changes)]),
            len(released),
            sum(not o.ok for o in (*outcomes, *given_back)),
        )

    def _update(self, plan: Plan, unflag: list[Change]) -> list[Outcome]:
        """Change jobs, those to be ranked first."""
        changes = [*plan.changes, *unflag]
        if not changes:
            return []
        try:
            outcomes = self.slurm.update(changes)
        except Exception as error:
            self._unknown(plan, "change", [change.job for change in changes], error)
            raise
        ranked = len(plan.changes)
        self.journal.became(self.folder, plan.view, "change", outcomes[:ranked])
        self.journal.became(self.folder, plan.view, "unflag", outcomes[ranked:], "unflagged")
        return outcomes

    def _release(self, plan: Plan, leave: Mapping[int, int]) -> list[Outcome]:
        """Release jobs, of those that still wait with our priority: a hold of theirs meanwhile must not be undone."""
        outcomes: list[Outcome] = []
        whys = {job: plan.view.left.get(job, "not ranked") for job in leave}

        def tell() -> None:
            self.journal.became(self.folder, plan.view, "release", outcomes, "released", whys)

        try:
            for outcome in release(self.slurm, leave, plan.band, now=False):
                outcomes.append(outcome)
        except Exception as error:
            self.note(tell)
            self._unknown(plan, "release", leave.keys() - {outcome.job for outcome in outcomes}, error)
            raise
        tell()
        return outcomes

    def _unknown(self, plan: Plan, what: str, jobs: Iterable[int], error: Exception) -> None:
        self.note(lambda: self.journal.failed(self.folder, plan.view, what, jobs, error))


def is_alone(touched: Mapping[int, Touch], job: int) -> bool:
    """Whether a job was given whole nodes."""
    return job in touched and touched[job].alone


def _touches(plan: Plan) -> dict[int, Touch]:
    """The list with what the ranked jobs are about to be given."""
    ranked, touched = {job.id: job for job in plan.view.ranked}, plan.owned.touched
    after = dict(touched)
    for change in plan.changes:
        job = ranked[change.job]
        has = is_ours(job, touched, plan.band)
        last = job.priority if has else 0
        alone = is_alone(touched, job.id) if change.oversubscribe is None else not change.oversubscribe
        after[job.id] = Touch(last if change.priority is None else change.priority, last, alone, seen=has)
    return after
