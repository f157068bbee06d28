"""The lines of decisions.jsonl: what is to be changed and why, what became of it, and who is left to Slurm.

A line is an object with ``time_s`` (s since 1970), ``event`` and, but for those of many jobs, ``job``. Changes are there
before Slurm is told, and after it only what did not go as it should; of jobs that are left to Slurm, and in a dry run of
changes too, only what differs from the last line of the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rltune.slurm.decide import Decision
from rltune.slurm.folder import Folder
from rltune.slurm.observe import View
from rltune.slurm.records import Change, Outcome

Line = dict[str, Any]


class Journal:
    """What one controller has written so far, as far as it matters to what it writes next."""

    def __init__(self) -> None:
        self._left: dict[int, str] = {}
        self._would: dict[int, Change] = {}
        self._would_release: frozenset[int] = frozenset()

    def decided(
        self,
        folder: Folder,
        view: View,
        decision: Decision,
        changes: Sequence[Change],
        leave: Iterable[int],
        forgotten: Mapping[int, str],
        live: bool,
    ) -> None:
        """Write what a cycle is about to do; of a dry run (not ``live``), what it would."""
        new = [change for change in changes if live or self._would.get(change.job) != change]
        rank = {job: (pool, k) for pool, order in decision.orders.items() for k, job in enumerate(order, 1)}
        lines = [_changed(change, view, decision, *rank.get(change.job, ("", 0)), live) for change in new]
        leave = frozenset() if live else frozenset(leave)  # live: told once it is done
        lines += [
            {**_line(view, "would release", job), "why": view.left.get(job, "not ranked")}
            for job in sorted(leave - self._would_release)
        ]
        lines += [{**_line(view, "forgotten", job), "why": why} for job, why in sorted(forgotten.items())]
        lines += [
            {**_line(view, "left", job), "why": why}
            for job, why in sorted(view.left.items())
            if self._left.get(job) != why
        ]
        folder.write_journal(*lines)
        self._left, self._would_release = dict(view.left), leave
        self._would = {} if live else {change.job: change for change in changes}

    def became(
        self,
        folder: Folder,
        view: View,
        what: str,
        outcomes: Iterable[Outcome],
        told: str = "",
        whys: Mapping[int, str] | None = None,
    ) -> None:
        """Write what became of changes: what was refused, and, as an event ``told`` where it has a name, what was done.

        ``what``: of what kind they were. ``whys``: reasons of what was done, by job.
        """
        lines: list[Line] = []
        for outcome in outcomes:
            if not outcome.ok:
                lines.append({**_line(view, "refused", outcome.job), "what": what, "why": outcome.message})
            elif told:
                why = {"why": whys[outcome.job]} if whys and outcome.job in whys else {}
                lines.append({**_line(view, told, outcome.job), **why})
        folder.write_journal(*lines)

    def failed(self, folder: Folder, view: View, what: str, jobs: Iterable[int], error: Exception) -> None:
        """Write that nobody knows what became of changes."""
        line: Line = {"time_s": round(view.now_s, 3), "event": "unknown", "what": what, "jobs": sorted(jobs)}
        folder.write_journal({**line, "why": str(error)})


def _line(view: View, event: str, job: int) -> Line:
    return {"time_s": round(view.now_s, 3), "event": event, "job": job}


def _changed(change: Change, view: View, decision: Decision, pool: str, rank: int, live: bool) -> Line:
    """A change, with the job's rank in its pool, 1 for the first."""
    line = {
        **_line(view, "change" if live else "would change", change.job),
        "pool": pool,
        "rank": rank,
        "of": len(decision.orders.get(pool, ())),
    }
    score = decision.scores.get(change.job)
    line |= {"score": None if score is None else round(score, 6), "priority": change.priority}
    if change.oversubscribe is not None:
        line["oversubscribe"] = "YES" if change.oversubscribe else "NO"
    if change.job in decision.starts:
        line["could_start_on"] = decision.starts[change.job]
    return line
