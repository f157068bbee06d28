"""Write what a cycle decided to Slurm, and first to disk, so that a crash in between loses nothing.

Lines of decisions.jsonl are objects with ``time_s`` (s since 1970), ``event`` and, except for those of many jobs, ``job``.
Changes are written before Slurm gets them, and afterwards only what failed; of jobs left to Slurm, and in a dry run of
changes too, only what differs from the job's last line.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rltune.config.slurm import Band
from rltune.slurm.client import Client
from rltune.slurm.decide import Decision
from rltune.slurm.observe import View
from rltune.slurm.ownership import Assignment, Ownership
from rltune.slurm.records import Change, Outcome, SlurmJob
from rltune.slurm.release import release
from rltune.slurm.state_directory import StateDirectory

Line = dict[str, Any]
RELEASE_S = 600.0
"""Time for the releases of one cycle; what is left follows in the next."""


@dataclass(frozen=True)
class Plan:
    """What a cycle is about to write, and what it is based on."""

    view: View
    decision: Decision
    changes: list[Change]
    """Changes of ranked jobs."""
    ownership: Ownership
    forgotten: dict[int, str]
    """Jobs that are no longer on the list, each with the reason."""
    band: Band

    @property
    def unranked(self) -> list[SlurmJob]:
        """Waiting jobs that are not ranked."""
        return [job for job in self.view.everyone if job.id in self.view.left]

    @property
    def releases(self) -> dict[int, int]:
        """Unranked jobs that have a priority of the controller's → that priority."""
        return self.ownership.owned(self.unranked, self.band)

    def describe(self) -> tuple[str, ...]:
        """What is to be written, a line a job, in the order of each queue."""
        by_job, lines = {change.job: change for change in self.changes}, []
        for pool, order in self.decision.orders.items():
            for k, job in enumerate(order):
                if job in by_job:
                    change, nodes = by_job[job], self.decision.starts.get(job)
                    line = f"{pool}, {k + 1} of {len(order)}: job {job}"
                    line += "" if change.priority is None else f", priority {change.priority}"
                    line += f", OverSubscribe={_flag(change)}" if _flag(change) else ""
                    line += "" if change.exclude is None else f", {_type(change, self.decision)}"
                    lines.append(line + (f", could start on {', '.join(nodes)}" if nodes else ""))
        return (*lines, *(f"job {job}: released" for job in self.releases))

    def assignments(self) -> dict[int, Assignment]:
        """The list with what the ranked jobs are about to get."""
        ranked, after = {job.id: job for job in self.view.ranked}, dict(self.ownership.assigned)
        listed = {job: (given.priority, given.previous) for job, given in after.items()}
        for job in ranked.values():  # one that somebody has moved inside the band and that may stay there
            if job.id in listed and job.priority not in listed[job.id] and self.ownership.owns(job, self.band):
                after[job.id] = replace(after[job.id], priority=job.priority)
        for change in self.changes:
            job = ranked[change.job]
            owned = self.ownership.owns(job, self.band)
            last = job.priority if owned else 0
            if job.id in listed and last not in listed[job.id]:  # somebody else's
                last = listed[job.id][0] if owned else 0
            given = after.get(job.id, Assignment(0))
            priority = last if change.priority is None else change.priority
            if change.oversubscribe is not None:
                given = replace(given, exclusive=not change.oversubscribe)
            if change.exclude is not None:
                given = given.given(change.exclude)
            after[job.id] = replace(given, priority=priority, previous=last, missed=0, seen=owned, ended_s=0.0)
        return after


@dataclass
class Writer:
    """Writes plans to the disk and to Slurm, and remembers what it has written of the jobs that wait.

    ``note`` calls what writes to the disk where an error of the disk must not hide one of Slurm.
    """

    slurm: Client
    directory: StateDirectory
    note: Callable[..., None]
    _left: dict[int, str] = field(default_factory=dict)
    _changes: dict[int, Change] = field(default_factory=dict)
    _releases: dict[int, str] = field(default_factory=dict)

    def write(self, plan: Plan) -> tuple[int, int, int, bool]:
        """Write the list of assigned jobs, then the plan to the journal, then to Slurm, then the outcomes; how many jobs
        were changed, how many released, how many of either Slurm refused, and whether it answered all.

        Raises RLTuneError where Slurm does not answer, OSError where the disk is full: before Slurm gets anything, where
        the disk has to come first.
        """
        releases, old = plan.releases, plan.ownership.assigned
        new = replace(plan.ownership, assigned=plan.assignments()).before_release(releases)
        undo = [change for job in plan.unranked if (change := plan.ownership.undo(job))]
        self.directory.write(new)
        self.write_plan(plan, live=True)
        outcomes = self._update(plan, undo)
        released_now = self._release(plan, releases)
        undone = {o.job for o in outcomes[len(plan.changes) :] if o.ok}
        released = {o.job for o in released_now if o.ok}
        untried = releases.keys() - {o.job for o in released_now}
        after = {
            job: given.without_node_settings() if job in undone else given
            for job, given in {**new.assigned, **{job: old[job] for job in untried if job in old}}.items()
        }
        self.directory.write(Ownership(after, new.overridden))  # released ones are dropped once two answers agree
        changed = sum(o.ok for o in outcomes[: len(plan.changes)])
        every = (*outcomes, *released_now)
        refused = sum(not outcome.ok and not outcome.unknown for outcome in every)
        return changed, len(released), refused, not any(outcome.unknown for outcome in every)

    def write_plan(self, plan: Plan, live: bool) -> None:
        """Write to the journal what a cycle is about to do; in a dry run (not ``live``), what it would do."""
        view, decision = plan.view, plan.decision
        rank = {job: (pool, k) for pool, order in decision.orders.items() for k, job in enumerate(order, 1)}
        changes = [change for change in plan.changes if live or self._changes.get(change.job) != change]
        lines = [_changed(change, view, decision, *rank.get(change.job, ("", 0)), live) for change in changes]
        releases = {} if live else {job: plan.view.left[job] for job in plan.releases}
        for event, reasons, before in (
            ("would release", releases, self._releases),
            ("forgotten", plan.forgotten if live else {}, {}),
            ("left", view.left, self._left),
        ):
            new = {job: why for job, why in sorted(reasons.items()) if before.get(job) != why}
            lines += [{**_line(view, event, job), "why": why} for job, why in new.items()]
        self.directory.write_journal(*lines)
        self._left, self._releases = dict(view.left), releases
        self._changes = {} if live else {change.job: change for change in plan.changes}

    def _update(self, plan: Plan, undo: Sequence[Change]) -> list[Outcome]:
        """Change jobs, the ranked ones first."""
        changes = [*plan.changes, *undo]
        if not changes:
            return []
        try:
            outcomes = self.slurm.update(changes)
        except Exception as error:
            self.note(self._write_unknown, plan, "change", [change.job for change in changes], error)
            raise
        self._write_outcomes(plan, "change", outcomes[: len(plan.changes)])
        self._write_outcomes(plan, "undo", outcomes[len(plan.changes) :], "undone")
        return outcomes

    def _release(self, plan: Plan, releases: Mapping[int, int]) -> list[Outcome]:
        """Release jobs that still wait with the assigned priority: a hold set meanwhile must not be undone."""
        outcomes: list[Outcome] = []
        until_s = time.monotonic() + RELEASE_S
        try:
            for outcome in release(self.slurm, releases, plan.band, fresh=False):
                outcomes.append(outcome)
                if time.monotonic() > until_s:
                    break
        except Exception as error:
            self.note(self._write_outcomes, plan, "release", outcomes, "released")
            rest = releases.keys() - {outcome.job for outcome in outcomes}
            self.note(self._write_unknown, plan, "release", rest, error)
            raise
        self._write_outcomes(plan, "release", outcomes, "released")
        return outcomes

    def _write_outcomes(self, plan: Plan, what: str, outcomes: Iterable[Outcome], event: str = "") -> None:
        """Write to the journal which changes were refused and, where ``event`` names it, which were made."""
        lines: list[Line] = []
        for outcome in outcomes:
            if not outcome.ok:
                word = "unknown" if outcome.unknown else "refused"
                lines.append({**_line(plan.view, word, outcome.job), "what": what, "why": outcome.message})
            elif event:
                why = {"why": plan.view.left[outcome.job]} if event == "released" else {}
                lines.append({**_line(plan.view, event, outcome.job), **why})
        self.directory.write_journal(*lines)

    def _write_unknown(self, plan: Plan, what: str, jobs: Iterable[int], error: Exception) -> None:
        """Write to the journal that the outcome of changes is unknown."""
        line: Line = {"time_s": round(plan.view.now_s, 3), "event": "unknown", "what": what, "jobs": sorted(jobs)}
        self.directory.write_journal({**line, "why": str(error)})


def _type(change: Change, decision: Decision) -> str:
    """The GPU type that a change of excluded nodes gives a job."""
    return f"GPU type {decision.types[change.job]}" if change.exclude else "any GPU type"


def _flag(change: Change) -> str:
    return "" if change.oversubscribe is None else "YES" if change.oversubscribe else "NO"


def _line(view: View, event: str, job: int) -> Line:
    return {"time_s": round(view.now_s, 3), "event": event, "job": job}


def _changed(change: Change, view: View, decision: Decision, pool: str, rank: int, live: bool) -> Line:
    """A change, with the job's rank in its pool, 1 for the first."""
    score = decision.scores.get(change.job)
    line = _line(view, "change" if live else "would change", change.job)
    line |= {"pool": pool, "rank": rank, "of": len(decision.orders.get(pool, ()))}
    line |= {"score": None if score is None else round(score, 6), "priority": change.priority}
    line |= {"oversubscribe": _flag(change)} if _flag(change) else {}
    line |= {} if change.exclude is None else {"gives": _type(change, decision), "excludes": change.exclude}
    return line | ({"could_start_on": decision.starts[change.job]} if change.job in decision.starts else {})
