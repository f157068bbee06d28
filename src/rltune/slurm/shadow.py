"""What Slurm's own order would have done since some instant: a simulation beside the live cluster.

It begins with the cluster as it was found, has the same jobs arrive, and lets each run as long as it did. A job that has
not ended is taken to run up to its limit, and nodes that came or went since are not known to it: a job that could not
start on those of the beginning is left out on both sides. Waits are counted up to now on both sides, so that jobs that
still wait count too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.config.slurm import ScopeConfig, SlurmConfig
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.found import could_start, resume
from rltune.slurm.observe import View, compiled
from rltune.slurm.records import PENDING, RUNNING_STATES, SlurmJob
from rltune.slurm.scope import RANKED, why_left

MOST_RESERVED = 2_000
"""Jobs beyond which nodes are reserved for the first one alone: to plan all reservations takes 0.4 s with 1,000 jobs on 40
GPUs, 3 s with 2,000, 25 s with 4,000."""


@dataclass(frozen=True)
class Waits:
    """Mean waits of the same jobs up to now, s."""

    jobs: int
    ours_s: float
    shadow_s: float
    left_out: int = 0
    """Ranked jobs that are not among them, since they could not start on what was found at the beginning."""

    @property
    def says_little(self) -> bool:
        """Whether more than half of the ranked jobs are left out."""
        return self.left_out > self.jobs


@dataclass
class Shadow:
    """Watches a cluster's jobs from ``begin`` on: the ranked ones, which are compared, and those beside them."""

    begin: View
    config: SlurmConfig
    _jobs: dict[int, SlurmJob] = field(default_factory=dict, repr=False)
    """Every job that has waited for nodes, or started, since, as it was when it was seen first."""
    _ranked: set[int] = field(default_factory=set, repr=False)
    _elsewhere: set[int] = field(default_factory=set, repr=False)
    """Ranked jobs that wait on partitions without a usable node at the beginning."""
    _start_s: dict[int, float] = field(default_factory=dict, repr=False)
    _end_s: dict[int, float] = field(default_factory=dict, repr=False)
    """When jobs started and ended, s since 1970; an end is noticed in the cycle after it."""
    _running: frozenset[int] = field(init=False, repr=False)
    _anybody: ScopeConfig = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._running = frozenset(self.begin.running)
        self._anybody = ScopeConfig(partitions=self.config.scope.partitions, arrays="rank", constraints="rank")

    def watch(self, jobs: Iterable[SlurmJob], ranked: Iterable[SlurmJob], now_s: float) -> None:
        """Take note of a cycle's queue."""
        there = {job.id: job for job in jobs}
        ranked_now = {job.id for job in ranked}
        self._ranked |= ranked_now
        for job in there.values():
            if job.id not in self._jobs and job.id not in self._running and self._counts(job, now_s):
                self._jobs[job.id] = job
                if why_left(_as_it_waited(job), self.config.scope, now_s, ours=True) == RANKED:
                    self._ranked.add(job.id)  # it started between two cycles
        self._elsewhere = ranked_now - self._jobs.keys() - self._running
        for number in (*self._jobs, *self._running):
            seen = there.get(number)
            if seen is None:
                if number in self._start_s or number in self._running:
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
        return why_left(job, self._anybody, now_s, ours=True) == RANKED

    def waits(self, now_s: float) -> Waits:
        """Mean waits of the ranked jobs since the beginning, theirs and the simulation's."""
        begin = self.begin
        jobs = sorted(self._jobs.values(), key=lambda job: (max(job.submit_s, begin.t0_s), job.id))
        rows, kept = compiled([*begin.running_jobs, *jobs], begin, self.config)
        ranked = len(self._ranked & self._jobs.keys()) + len(self._elsewhere)
        if self._running - kept:  # the running ones are a view's own, all of which its cluster holds
            return Waits(0, 0.0, 0.0, ranked)
        first, ids = len(self._running), [job.id for job in jobs if job.id in kept]
        fits = self._could_start(rows)
        rows = rows.take(np.concatenate([np.arange(first), first + np.flatnonzero(fits)]))
        ids = [job for job, fit in zip(ids, fits, strict=True) if fit]
        compared = np.isin(ids, list(self._ranked))
        if not compared.any():
            return Waits(0, 0.0, 0.0, ranked)
        for k, job in enumerate(ids):
            if job in self._end_s:
                rows.row["run_s"][first + k] = max(self._end_s[job] - self._start_s[job], 1.0)
        ends = np.array([self._end_s.get(job, end + begin.t0_s) for job, end in zip(begin.running, begin.found.end_s)])
        ends = np.maximum(ends - begin.t0_s, begin.found.now_s + 1.0)
        found = replace(begin.found, end_s=ends, queued=int((rows.submit_s[first:] <= begin.found.now_s).sum()))
        rules = self.config.watchdog
        backfill = "easy" if rules.backfill == "conservative" and len(rows.row) > MOST_RESERVED else rules.backfill
        run = resume(rows, begin.layout, found, SchedulerConfig(rules.policy, backfill))
        run.advance()
        until = now_s - begin.t0_s
        shadow = np.minimum(run.state.start[0, first:], until) - rows.submit_s[first:]
        ours = np.array([min(self._start_s.get(job, now_s) - begin.t0_s, until) for job in ids]) - rows.submit_s[first:]
        means = (float(np.maximum(waits[compared], 0).mean()) for waits in (ours, shadow))
        return Waits(int(compared.sum()), *means, left_out=ranked - int(compared.sum()))

    def _could_start(self, rows: Jobs) -> np.ndarray:
        """Which of the jobs behind the running ones [Q] bool could start on what was found at the beginning."""
        begin, first = self.begin, len(self._running)
        everyone = replace(begin.found, queued=len(rows.row) - first)
        at_once = Jobs(rows.row.copy(), rows.cut)
        at_once.row["submit_s"][first:] = np.minimum(at_once.row["submit_s"][first:], begin.found.now_s)
        return could_start(resume(at_once, begin.layout, everyone, SchedulerConfig("fifo")), begin.layout, everyone)


def _as_it_waited(job: SlurmJob) -> SlurmJob:
    """A running job as it stood in the queue."""
    return replace(job, state=PENDING, reason="Priority", priority=max(job.priority, 1))


@dataclass
class Watchdog:
    """Compares from time to time, and says when it has been worse for too long."""

    config: SlurmConfig
    say: Callable[[str], None] = print
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
        without = f"{waits.left_out} left out that could not start on the nodes it began with" if waits.left_out else ""
        if waits.says_little:
            self.say(f"the watchdog begins anew: {waits.jobs} ranked jobs to compare, {without}")
            self.shadow = Shadow(view, self.config)
            self.shadow.watch(jobs, view.ranked, view.now_s)
            return ""
        if without:
            self.say(f"the watchdog compares {waits.jobs} jobs, {without}")
        if waits.jobs < rules.jobs:
            return ""
        is_worse = waits.ours_s > (1 + rules.worse_by) * waits.shadow_s + 1.0
        self.worse = self.worse + 1 if is_worse else 0
        if self.worse < rules.times:
            return ""
        return (
            f"{waits.jobs} jobs have waited {waits.ours_s:.0f} s in the mean, in a simulation of Slurm's own order "
            f"{waits.shadow_s:.0f} s, and it was worse {self.worse} times in a row"
            + (f"; {without}" if without else "")
        )

    def figures(self) -> Mapping[str, tuple[str, str, float]]:
        """Of the last comparison, for Prometheus: name → (kind, what it is, value); none before the first."""
        if self.last is None:
            return {}
        about = "Ranked jobs left out of it, which could not start on the nodes it began with"
        return {
            "watchdog_compared_jobs": ("gauge", "Ranked jobs of the watchdog's last comparison", self.last.jobs),
            "watchdog_left_out_jobs": ("gauge", about, self.last.left_out),
            "watchdog_wait_seconds": ("gauge", "Mean wait of the jobs compared", self.last.ours_s),
            "watchdog_slurm_wait_seconds": (
                "gauge",
                "The same in the simulation of Slurm's own order",
                self.last.shadow_s,
            ),
            "watchdog_worse": ("gauge", "Comparisons in a row that were worse", self.worse),
        }
