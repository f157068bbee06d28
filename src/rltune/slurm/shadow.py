"""What Slurm's own order would have done since some instant: a simulation beside the live cluster.

It begins with the cluster as it was found, has the same jobs arrive, and lets each run as long as it did. A job that has
not ended is taken to run up to its limit, and nodes that came or went since are not known to it. Waits are counted up to
now on both sides, so that jobs that still wait count too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.config.slurm import ScopeConfig, SlurmConfig
from rltune.simulator.found import could_start, resume
from rltune.simulator.setting import Setting
from rltune.slurm.observe import View, compiled
from rltune.slurm.records import PENDING, RUNNING_STATES, SlurmJob
from rltune.slurm.scope import RANKED, why_left


@dataclass(frozen=True)
class Waits:
    """Mean waits of the same jobs up to now, s."""

    jobs: int
    ours_s: float
    shadow_s: float


@dataclass
class Shadow:
    """Watches a cluster's jobs from ``begin`` on: the ranked ones, which are compared, and those beside them."""

    begin: View
    config: SlurmConfig
    _jobs: dict[int, SlurmJob] = field(default_factory=dict, repr=False)
    """Every job that has waited for nodes, or started, since, as it was when it was seen first."""
    _ranked: set[int] = field(default_factory=set, repr=False)
    _start_s: dict[int, float] = field(default_factory=dict, repr=False)
    _end_s: dict[int, float] = field(default_factory=dict, repr=False)
    """When jobs started and ended, s since 1970; an end is noticed in the cycle after it."""

    def watch(self, jobs: Iterable[SlurmJob], ranked: Iterable[SlurmJob], now_s: float) -> None:
        """Take note of a cycle's queue."""
        there = {job.id: job for job in jobs}
        self._ranked |= {job.id for job in ranked}
        for job in there.values():
            if job.id not in self._jobs and job.id not in self.begin.running and self._counts(job, now_s):
                self._jobs[job.id] = job
                if why_left(_as_it_waited(job), self.config.scope, now_s, ours=True) == RANKED:
                    self._ranked.add(job.id)  # it started between two cycles
        for number in (*self._jobs, *self.begin.running):
            seen = there.get(number)
            if seen is None:
                if number in self._start_s or number in self.begin.running:
                    self._end_s.setdefault(number, now_s)
            elif seen.state in RUNNING_STATES and seen.start_s is not None:
                self._start_s.setdefault(number, seen.start_s)
        # cancelled before they started, or started and ended between two cycles
        self._jobs = {k: job for k, job in self._jobs.items() if k in there or k in self._start_s}

    def _counts(self, job: SlurmJob, now_s: float) -> bool:
        """Whether a job takes part: it asks for GPUs of these partitions, and runs or waits for nodes only."""
        if job.gpus < 1 or not any(p in self.begin.pool_of for p in job.partition.split(",")):
            return False
        if job.state in RUNNING_STATES:
            return job.start_s is not None and job.submit_s >= self.begin.now_s - self.config.interval_s
        anybody = ScopeConfig(partitions=self.config.scope.partitions, arrays="rank", constraints="rank")
        return why_left(job, anybody, now_s, ours=True) == RANKED

    def waits(self, now_s: float) -> Waits:
        """Mean waits of the ranked jobs since the beginning, theirs and the simulation's."""
        begin = self.begin
        jobs = sorted(self._jobs.values(), key=lambda job: (max(job.submit_s, begin.t0_s), job.id))
        rows, kept = compiled([*begin.running_jobs, *jobs], begin, self.config)
        jobs = [job for job in jobs if job.id in kept]
        if not self._ranked & kept or set(begin.running) - kept:
            return Waits(0, 0.0, 0.0)
        first, ids = len(begin.running), [job.id for job in jobs]
        for k, job in enumerate(ids):
            if job in self._end_s:
                rows.row["run_s"][first + k] = max(self._end_s[job] - self._start_s[job], 1.0)
        ends = np.array([self._end_s.get(job, end + begin.t0_s) for job, end in zip(begin.running, begin.found.end_s)])
        ends = np.maximum(ends - begin.t0_s, begin.found.now_s + 1.0)
        found = replace(begin.found, end_s=ends, queued=int((rows.submit_s[first:] <= begin.found.now_s).sum()))
        setting = Setting(self.config.watchdog.policy, self.config.blocking)
        everyone = replace(found, queued=len(ids))
        at_once = Jobs(rows.row.copy(), rows.cut)
        at_once.row["submit_s"][first:] = np.minimum(at_once.row["submit_s"][first:], found.now_s)
        if not could_start(resume(at_once, begin.layout, everyone, setting), begin.layout, everyone).all():
            return Waits(0, 0.0, 0.0)  # nodes have come since: begun anew, it can be said again
        run = resume(rows, begin.layout, found, setting)
        run.advance()
        until, compared = now_s - begin.t0_s, np.isin(ids, list(self._ranked))
        shadow = np.minimum(run.state.start[0, first:], until) - rows.submit_s[first:]
        ours = np.array([min(self._start_s.get(job, now_s) - begin.t0_s, until) for job in ids]) - rows.submit_s[first:]
        means = (float(np.maximum(waits[compared], 0).mean()) for waits in (ours, shadow))
        return Waits(int(compared.sum()), *means)


def _as_it_waited(job: SlurmJob) -> SlurmJob:
    """A running job as it stood in the queue."""
    return replace(job, state=PENDING, reason="Priority", priority=max(job.priority, 1))


@dataclass
class Watchdog:
    """Compares from time to time, and says when it has been worse for too long."""

    config: SlurmConfig
    shadow: Shadow | None = None
    worse: int = 0
    """Comparisons in a row that were worse."""
    last: Waits | None = None
    _next_s: float = 0.0

    def begin_anew(self) -> None:
        """Forget what was seen: after the clock was set, times before and after it cannot be compared."""
        self.shadow, self.worse = None, 0

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
