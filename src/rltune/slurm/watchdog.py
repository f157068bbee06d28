"""Compare realised waits with a simulation of Slurm's own order that starts from the same state of the cluster.

The simulation has the same jobs arrive, and lets each run as long as it did. A job that has not ended is assumed to run up
to its limit. Nodes that were added or removed since are unknown to it: a job that could not start on the initial nodes is
left out on both sides. Waits count up to now on both sides, so that jobs that still wait count too.

Where the controller decides GPU types, a job may wait for a faster one. There the times from submission to completion, up to now,
take the place of waits, and the simulated jobs get any type, as without the controller.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.config.max_wait import size_of
from rltune.config.slurm import EligibleConfig, SlurmConfig, WatchdogConfig
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.snapshot import could_start, resume
from rltune.slurm.eligibility import RANKED, reason_to_leave
from rltune.slurm.observe import View
from rltune.slurm.records import PENDING, WAITING_STATES, SlurmJob
from rltune.slurm.systemd import Say, log
from rltune.traces.raw.slurm_fields import RUNNING

TAILS = ((0.95, "95th percentile", 20), (0.99, "99th percentile", 100), (1.0, "longest", 1))
"""Quantiles of long waits that are compared, in words, and the fewest jobs that have one."""
MOST_RESERVED = 2_000
"""Jobs above which the simulation reserves nodes for the first job alone (EASY in place of conservative backfill): planning
all reservations takes 0.4 s with 1,000 jobs on 40 GPUs, 3 s with 2,000, 25 s with 4,000."""


@dataclass(frozen=True)
class Waits:
    """Mean waits of the same jobs up to now, s, or times to completion."""

    jobs: int
    realised_s: float
    simulated_s: float
    left_out: int = 0
    """Ranked jobs that are not compared, since they could not start on the initial nodes."""
    excused: int = 0
    """Ranked jobs that are not compared, since Slurm could not start them wherever the simulation could."""
    tails: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Long waits by size, in words → (realised, simulated), s."""


@dataclass(repr=False)
class Shadow:
    """Follows a cluster's jobs since ``begin``: the ranked ones, which are compared, and the others."""

    begin: View
    config: SlurmConfig
    _jobs: dict[int, SlurmJob] = field(default_factory=dict)
    """Every job that has waited for nodes, or started, since, as it was when it was seen first."""
    _ranked: set[int] = field(default_factory=set)
    _elsewhere: set[int] = field(default_factory=set)
    """Ranked jobs that wait on partitions without a usable node at the beginning."""
    _excused: set[int] = field(default_factory=set)
    """Jobs that the simulation could start although Slurm could not: those that may not use every node of their pool, that
    wait for licences, or were ranked and then held, limited or given another priority."""
    _start_s: dict[int, float] = field(default_factory=dict)
    _end_s: dict[int, float] = field(default_factory=dict)
    """When jobs started and ended, s since 1970; an end is noticed in the cycle after it."""
    _node: dict[int, str] = field(default_factory=dict)
    """A node on which a job has run."""
    _running: frozenset[int] = field(init=False)
    _everybody: EligibleConfig = field(init=False)
    _rules: WatchdogConfig = field(init=False)

    def __post_init__(self) -> None:
        assert self.config.watchdog is not None
        self._rules = self.config.watchdog
        self._running = frozenset(job.id for job in self.begin.running)
        self._everybody = EligibleConfig(partitions=self.config.eligible.partitions, also=["arrays", "constraints"])

    def watch(
        self, jobs: Iterable[SlurmJob], ranked: Iterable[SlurmJob], now_s: float, confined: Collection[int] = ()
    ) -> None:
        """Record a cycle's queue. ``confined``: jobs that may not use every node of their pool."""
        there = {job.id: job for job in jobs}
        ranked_now = {job.id for job in ranked}
        self._ranked |= ranked_now
        for job in there.values():
            if job.id not in self._jobs and job.id not in self._running and self._counts(job, now_s):
                self._jobs[job.id] = job
                as_it_waited = replace(job, state=PENDING, reason="Priority", priority=max(job.priority, 1))
                if reason_to_leave(as_it_waited, self.config.eligible, now_s, owned=True) == RANKED:
                    self._ranked.add(job.id)  # it started between two cycles
        waiting = {job.id for job in there.values() if job.state in WAITING_STATES}
        self._excused |= (waiting & self._ranked) - ranked_now
        self._excused |= {job for job in waiting if there[job].reason == "Licenses"} | there.keys() & confined
        self._elsewhere = ranked_now - self._jobs.keys() - self._running
        for number in (*self._jobs, *self._running):
            seen = there.get(number)
            if seen is None:
                if number in self._start_s or number in self._running:
                    self._end_s.setdefault(number, now_s)
                continue
            self._end_s.pop(number, None)  # only the last answer lacked it
            if seen.state in RUNNING and seen.start_s is not None:
                self._start_s.setdefault(number, seen.start_s)
                self._node.setdefault(number, next(iter(seen.node_names), ""))
        # cancelled before they started, or started and ended between two cycles
        self._jobs = {k: job for k, job in self._jobs.items() if k in there or k in self._start_s}

    def _counts(self, job: SlurmJob, now_s: float) -> bool:
        """Whether a job takes part: it requests GPUs of these partitions, and runs or waits for nodes only."""
        if job.gpus < 1 or not any(p in self.begin.cluster.pool_of for p in job.partition.split(",")):
            return False
        if job.state in RUNNING:
            return job.start_s is not None and job.submit_s >= self.begin.now_s - self.config.interval_s
        return reason_to_leave(job, self._everybody, now_s, owned=True) == RANKED

    def waits(self, now_s: float) -> Waits:
        """Mean waits of the ranked jobs since the beginning, realised and simulated."""
        begin = self.begin
        jobs = sorted(self._jobs.values(), key=lambda job: (max(job.submit_s, begin.t0_s), job.id))
        rows, kept = begin.cluster.compiled([*begin.running, *jobs], begin.t0_s)
        ranked = len((self._ranked - self._excused) & self._jobs.keys()) + len(self._elsewhere)
        excused = len(self._ranked & self._excused & self._jobs.keys())
        first, ids = len(self._running), [job.id for job in jobs if job.id in kept]
        fits = self._could_start(rows)
        rows = rows.take(np.concatenate([np.arange(first), first + np.flatnonzero(fits)]))
        ids = [job for job, fit in zip(ids, fits, strict=True) if fit]
        compared = np.isin(ids, list(self._ranked - self._excused))
        if not compared.any():
            return Waits(0, 0.0, 0.0, ranked, excused)
        for k, job in enumerate(ids):
            if job in self._end_s:
                run_s = (self._end_s[job] - self._start_s[job]) / self._slow(rows, first + k, job)
                rows.row["run_s"][first + k] = max(run_s, 1.0)
        ends = [self._end_s.get(job.id, end + begin.t0_s) for job, end in zip(begin.running, begin.snapshot.end_s)]
        ends = np.maximum(np.array(ends) - begin.t0_s, begin.snapshot.now_s + 1.0)
        snapshot = begin.snapshot._replace(
            end_s=ends, queued=int((rows.submit_s[first:] <= begin.snapshot.now_s).sum())
        )
        backfill = "easy" if len(rows.row) > MOST_RESERVED else "conservative"
        run = resume(rows, begin.layout, snapshot, SchedulerConfig(self._rules.policy, backfill, types="any"))
        run.advance()
        until = now_s - begin.t0_s
        known, state = (self._end_s, run.state.end) if self.to_completion else (self._start_s, run.state.start)
        realised = np.array([min(known.get(job, now_s) - begin.t0_s, until) for job in ids])
        simulated = np.minimum(state[0, first:], until)
        waits = [np.maximum((at - rows.submit_s[first:])[compared], 0) for at in (realised, simulated)]
        n, tails = int(compared.sum()), self._tails(rows.gpus[first:][compared], *waits)
        return Waits(n, float(waits[0].mean()), float(waits[1].mean()), ranked - n, excused, tails)

    @property
    def to_completion(self) -> bool:
        """Whether times to completion are compared."""
        return self.begin.cluster.speeds is not None

    def _slow(self, rows: Jobs, row: int, job: int) -> float:
        """How many times as long a job ran on its GPU type as it would on its fastest."""
        at = self.begin.cluster.index.get(self._node.get(job, ""))
        return 1.0 if at is None else float(rows.cut["slow"][row, self.begin.layout.nodes.row["type"][at]])

    def _tails(self, gpus: np.ndarray, *waits: np.ndarray) -> dict[str, tuple[float, float]]:
        """The largest wait and, of as many jobs as it takes, the 95th and 99th percentile, of each size of jobs."""
        sizes, found = np.array([size_of(self.config.max_wait_h, int(n)) for n in gpus]), {}
        for size in np.unique(sizes):
            of_size = [wait[sizes == size] for wait in waits]
            for share, name, least in TAILS:
                if len(of_size[0]) >= max(self._rules.min_jobs, least):
                    a, b = (float(np.quantile(wait, share)) for wait in of_size)
                    found[f"{name} of jobs of up to {size} GPUs"] = a, b
        return found

    def _could_start(self, rows: Jobs) -> np.ndarray:
        """Which of the jobs after the running ones [Q] bool could start on the initial nodes."""
        begin, first = self.begin, len(self._running)
        everyone = begin.snapshot._replace(queued=len(rows.row) - first)
        at_once = Jobs(rows.row.copy(), rows.cut)
        at_once.row["submit_s"][first:] = np.minimum(at_once.row["submit_s"][first:], begin.snapshot.now_s)
        return could_start(at_once, begin.layout, everyone)


@dataclass
class Watchdog:
    """Compares at intervals, and reports when waits have been longer for too long."""

    config: SlurmConfig
    say: Say = log
    shadow: Shadow | None = None
    longer: int = 0
    """Consecutive comparisons in which jobs waited longer than simulated."""
    last: Waits | None = None
    _next_s: float = 0.0

    def restart(self) -> None:
        """Forget what was seen: after the clock was set, times before and after it cannot be compared."""
        self.shadow, self.longer = None, 0

    def cycle(self, view: View) -> str:
        """Record a cycle; the reason to release every job, "" where there is none."""
        rules = self.config.watchdog
        if rules is None:
            return ""
        if self.shadow is None or view.now_s - self.shadow.begin.now_s > rules.restart_s:
            self.shadow, self._next_s = Shadow(view, self.config), view.now_s + rules.every_s
        self.shadow.watch(view.everyone, view.ranked, view.now_s, view.confined)
        if view.now_s < self._next_s:
            return ""
        self._next_s = view.now_s + rules.every_s
        self.last = waits = self.shadow.waits(view.now_s)
        without = f"{waits.left_out} left out that could not start on the initial nodes" if waits.left_out else ""
        if waits.left_out > waits.jobs:  # more than half of the ranked ones
            self.say(f"the watchdog restarts: {waits.jobs} ranked jobs to compare, {without}")
            self.shadow = Shadow(view, self.config)
            self.shadow.watch(view.everyone, view.ranked, view.now_s, view.confined)
            return ""
        if without:
            self.say(f"the watchdog compares {waits.jobs} jobs, {without}")
        if waits.jobs < rules.min_jobs:
            if waits.excused:
                self.say(
                    f"the watchdog has {waits.jobs} jobs to compare, expected {rules.min_jobs} or more; it cannot simulate {waits.excused}"
                )
            return ""
        checked = [("mean", waits.realised_s, waits.simulated_s, rules.tolerance)]
        checked += [(name, *both, rules.tail_tolerance) for name, both in waits.tails.items()]
        worse = [
            f"{name} {realised_s:.0f} s ({simulated_s:.0f} s)"
            for name, realised_s, simulated_s, tolerance in checked
            if realised_s > (1 + tolerance) * simulated_s + self.config.interval_s
        ]
        self.longer = self.longer + 1 if worse else 0
        if self.longer < rules.patience:
            return ""
        return (
            f"{waits.jobs} jobs have {'taken' if self.shadow.to_completion else 'waited'} longer than in a simulation of Slurm's "
            f"own order (in brackets) in {self.longer} comparisons in a row: {', '.join(worse)}"
            + (f"; {without}" if without else "")
        )

    def metrics(self) -> Mapping[str, tuple[str, str, float]]:
        """Metrics of the last comparison, for Prometheus: name → (kind, description, value); none before the first."""
        if self.last is None:
            return {}
        left_out = "Ranked jobs left out of it, which could not start on the initial nodes"
        return {
            "watchdog_compared_jobs": ("gauge", "Ranked jobs of the watchdog's last comparison", self.last.jobs),
            "watchdog_left_out_jobs": ("gauge", left_out, self.last.left_out),
            "watchdog_wait_seconds": ("gauge", "Mean wait of the jobs compared", self.last.realised_s),
            "watchdog_slurm_wait_seconds": ("gauge", "The same, simulated in Slurm's own order", self.last.simulated_s),
            "watchdog_longer": ("gauge", "Consecutive comparisons with longer waits", self.longer),
        }
