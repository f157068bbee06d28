"""What Slurm's own order would have done since some instant: a simulation beside the live cluster.

It begins with the cluster as it was found, has the same jobs arrive, and lets each run as long as it did. A job that has
not ended is taken to run up to its limit, and nodes that came or went since are not known to it. Waits are counted up to
now on both sides, so that jobs that still wait count too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from rltune.config.slurm import SlurmConfig
from rltune.simulator.found import resume
from rltune.simulator.setting import Setting
from rltune.slurm.observe import View, compiled
from rltune.slurm.records import RUNNING_STATES, SlurmJob


@dataclass(frozen=True)
class Waits:
    """Mean waits of the same jobs up to now, s."""

    jobs: int
    ours_s: float
    shadow_s: float


@dataclass
class Shadow:
    """Watches the ranked jobs from ``begin`` on."""

    begin: View
    config: SlurmConfig
    _jobs: dict[int, SlurmJob] = field(default_factory=dict, repr=False)
    """Every job that was ranked since, as it was when it was seen first."""
    _start_s: dict[int, float] = field(default_factory=dict, repr=False)
    _end_s: dict[int, float] = field(default_factory=dict, repr=False)
    """When jobs started and ended, s since 1970; an end is noticed in the cycle after it."""

    def watch(self, jobs: Iterable[SlurmJob], ranked: Iterable[SlurmJob], now_s: float) -> None:
        """Take note of a cycle's queue."""
        there = {job.id: job for job in jobs}
        for job in ranked:
            self._jobs.setdefault(job.id, job)
        for job in (*self._jobs, *self.begin.running):
            seen = there.get(job)
            if seen is None:
                if job in self._start_s or job in self.begin.running:
                    self._end_s.setdefault(job, now_s)
                elif job in self._jobs:  # started and ended between two cycles, or was cancelled
                    del self._jobs[job]
            elif seen.state in RUNNING_STATES and seen.start_s is not None:
                self._start_s.setdefault(job, seen.start_s)

    def waits(self, now_s: float) -> Waits:
        """Mean waits of the jobs ranked since the beginning, theirs and the simulation's."""
        jobs = sorted(self._jobs.values(), key=lambda job: (job.submit_s, job.id))
        begin = self.begin
        known = set(begin.running)
        rows, kept = compiled([*self._running(), *jobs], begin, self.config)
        jobs = [job for job in jobs if job.id in kept]
        if not jobs or known - kept:
            return Waits(0, 0.0, 0.0)
        first, ids = len(begin.running), [job.id for job in jobs]
        for k, job in enumerate(ids):
            if job in self._end_s:
                rows.row["run_s"][first + k] = max(self._end_s[job] - self._start_s[job], 1.0)
        ends = np.array([self._end_s.get(job, end + begin.t0_s) for job, end in zip(begin.running, begin.found.end_s)])
        ends = np.maximum(ends - begin.t0_s, begin.found.now_s + 1.0)
        submit_s = rows.submit_s[first:]
        queued = int((submit_s <= begin.found.now_s).sum())
        found = replace(begin.found, end_s=ends, queued=queued)
        setting = Setting(self.config.watchdog.policy, self.config.blocking)
        run = resume(rows, begin.layout, found, setting)
        run.advance()
        until = now_s - begin.t0_s
        shadow = np.minimum(run.state.start[0, first:], until) - submit_s
        ours = np.array([min(self._start_s.get(job, now_s) - begin.t0_s, until) for job in ids]) - submit_s
        return Waits(len(ids), float(np.maximum(ours, 0).mean()), float(np.maximum(shadow, 0).mean()))

    def _running(self) -> list[SlurmJob]:
        return list(self.begin.running_jobs)


@dataclass
class Watchdog:
    """Compares from time to time, and says when it has been worse for too long."""

    config: SlurmConfig
    shadow: Shadow | None = None
    worse: int = 0
    """Comparisons in a row that were worse."""
    last: Waits | None = None
    _next_s: float = 0.0

    def cycle(self, view: View, jobs: Iterable[SlurmJob]) -> str:
        """Take note of a cycle; why to hand back, "" where there is no reason."""
        rules = self.config.watchdog
        if not rules.enabled:
            return ""
        if self.shadow is None or view.now_s - self.shadow.begin.now_s > rules.begin_anew_s:
            self.shadow, self._next_s = Shadow(view, self.config), view.now_s + rules.every_s
        self.shadow.watch(jobs, view.ranked, view.now_s)
        if view.now_s < self._next_s:
            return ""
        self._next_s = view.now_s + rules.every_s
        self.last = waits = self.shadow.waits(view.now_s)
        if waits.jobs < rules.jobs:
            return ""
        is_worse = waits.ours_s > (1 + rules.worse_by) * waits.shadow_s + 1.0
        self.worse = self.worse + 1 if is_worse else 0
        if self.worse < rules.times:
            return ""
        return (f"{waits.jobs} jobs have waited {waits.ours_s:.0f} s in the mean, in a simulation of Slurm's own order "
                f"{waits.shadow_s:.0f} s, and it was worse {self.worse} times in a row")  # fmt: skip
