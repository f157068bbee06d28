"""The controller: reads queue and nodes, ranks jobs, writes priorities, and releases every job when it has to stop.

A cycle either ends well or changes nothing that the next one, or `rltune slurm release`, does not find again.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from logging import ERROR, WARNING
from pathlib import Path
from typing import Any

from rltune.agent.policy_file import TrainedPolicy, load_policy
from rltune.config.slurm import SlurmConfig
from rltune.errors import DataError, RLTuneError
from rltune.slurm.apply import Plan, Writer
from rltune.slurm.client import Client
from rltune.slurm.decide import Decision, assign, decide, overdue
from rltune.slurm.eligibility import ABOVE, OVERRIDDEN
from rltune.slurm.observe import View, observe
from rltune.slurm.ownership import Assignment, Ownership, look_up, names, update_ownership
from rltune.slurm.records import Change, Outcome, SlurmJob
from rltune.slurm.release import FullRelease, unlisted
from rltune.slurm.state_directory import StateDirectory
from rltune.slurm.systemd import Say, log

LIVE_METRIC = ("gauge", "1 while a controller writes priorities, 0 in a dry run and once it has ended")
SEVERAL = 3
"""Jobs from which on what happens to them in one cycle is no accident."""
JUMP_S = 300.0
"""Difference between the two clocks' progress over one interval above which the system's clock was set."""


class ClockSet(RLTuneError):
    """The system's clock was set since the last cycle: forward by ``jump_s``."""

    def __init__(self, jump_s: float) -> None:
        super().__init__(f"the clock jumped by {jump_s:+.0f} s; this cycle is skipped")
        self.jump_s = jump_s


class Stop(RLTuneError):
    """The controller has to stop and release every job; the text is the reason."""


@dataclass
class Cycle:
    """What one cycle did."""

    ranked: int = 0
    left: dict[int, str] = field(default_factory=dict)
    """Waiting jobs that are left to Slurm, each with the reason."""
    running: int = 0
    changed: int = 0
    refused: int = 0
    released: int = 0
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What the user should know about the configuration."""
    planned: tuple[str, ...] = ()
    """In a dry run: what would have been written, in the order of each queue."""
    read_s: float = 0.0
    decide_s: float = 0.0
    write_s: float = 0.0


@dataclass(repr=False)
class Controller:
    """One controller of one cluster. ``live``: priorities are written, not only printed."""

    config: SlurmConfig
    slurm: Client
    directory: StateDirectory
    policy_path: Path
    live: bool = False
    clock: Callable[[], float] = time.time
    """s since 1970, on Slurm's clock."""
    say: Say = log
    pause: Callable[[float], None] = time.sleep
    """Waits, s, while a release takes effect."""
    steady: Callable[[], float] | None = None
    """A clock that nobody sets, for noticing when `clock` is set; default: the system's own, with the system's clock."""
    metrics: dict[str, tuple[str, str, float]] = field(default_factory=dict)
    """Metrics of others (the watchdog), name → (kind, description, value), written with the next cycle's own."""
    view: View = field(init=False)
    """What the last cycle saw."""
    unlisted: frozenset[int] = frozenset()
    """Waiting jobs with priorities of the band that were not on the list in the last release."""
    jobs: tuple[SlurmJob, ...] = ()
    """All jobs that Slurm reported to it."""
    _policy: TrainedPolicy | None = None
    _loaded_ns: int = 0
    _unread: str = ""
    """Why the policy's file cannot be read any more."""
    _requeue_s: float | None = None
    _reported: frozenset[int] = frozenset()
    """Jobs in the band that somebody else put there, as last reported."""
    _raised: int = 0
    """Consecutive cycles in which somebody had raised the priorities of several jobs of the list."""
    _is_sure: bool = False
    """Whether the outcomes of all changes of the last cycle are known."""
    _last: tuple[float, float] | None = None
    _totals: Counter[str] = field(default_factory=Counter)
    _shown: dict[str, tuple[str, str, float]] = field(default_factory=dict)
    _writer: Writer = field(init=False)

    def __post_init__(self) -> None:
        self._writer = Writer(self.slurm, self.directory, self._note)

    def cycle(self) -> Cycle:
        """One cycle: read, decide, write.

        Raises Stop where the controller must not go on, RLTuneError where this cycle failed.
        """
        done, policy = Cycle(), self.ready_policy()
        started = time.perf_counter()
        view, ownership, forgotten, done.faults = self._read()
        if view.without_nodes & ownership.owned(self.jobs, self.config.band).keys():
            view, ownership, forgotten, done.faults = self._read()
        done.read_s = time.perf_counter() - started
        self.view = view
        if self.live:
            self._check_others(view, ownership)
        self._is_sure = False
        done.notes = self._notes(view)
        done.ranked, done.left, done.running = len(view.ranked), view.left, len(view.running)
        started = time.perf_counter()
        decision = decide(view, policy, self.config) if view.ranked else Decision({}, {}, {}, frozenset())
        changes = self._changes(view, decision, ownership)
        done.decide_s = time.perf_counter() - started
        started = time.perf_counter()
        self._write(Plan(view, decision, changes, ownership, forgotten, self.config.band), done)
        done.write_s = time.perf_counter() - started
        self._report(done, view.now_s)
        return done

    def _read(self) -> tuple[View, Ownership, dict[int, str], tuple[str, ...]]:
        """(Queue and nodes, the list after them, jobs removed from it and why, what could not be read).

        Queue and nodes are two answers. A job that starts or ends between them is in one only, and its nodes then seem to be
        used by others; a second reading has it in both.
        """
        known, band = self._ownership(), self.config.band
        queue, nodes = self.slurm.jobs(), self.slurm.nodes()
        now_s = self.clock()
        self._check_clock(now_s)
        missing = known.unaccounted(queue)
        _, over = look_up(self.slurm, known.nearly_forgotten(missing))
        if self._requeue_s is None:
            self._requeue_s = self.slurm.requeue_s()
        ownership, forgotten = update_ownership(known, queue, band, missing, over, now_s, self._requeue_s)
        self.jobs = queue.records
        view = observe(queue.records, nodes.records, self.config, now_s, ownership)
        return view, ownership, forgotten, (*queue.faults, *nodes.faults, *view.faults)

    def _check_others(self, view: View, ownership: Ownership) -> None:
        """Report jobs that somebody else put into the band: eligible ones are ranked like any other, the rest is left.

        Their owners can do that, by lowering a priority, so it is no reason to stop. Raising one takes an operator: raises
        Stop where several priorities of the list are raised within the band in two consecutive cycles, as a second
        controller does.
        """
        band, others = self.config.band, unlisted(self.jobs, ownership, self.config)
        if new := others - self._reported:
            self.say(
                f"{len(new)} waiting jobs (for example job {min(new)}) have priorities of the band that this controller did "
                f"not give them; {len(new - view.left.keys())} are ranked like any other, the rest is left to Slurm",
                WARNING,
            )
        self._reported = others
        raised = ownership.raised(self.jobs, band) if self._is_sure else []
        self._raised = self._raised + 1 if len(raised) >= SEVERAL else 0
        if self._raised:
            what = (
                f"somebody has raised the priorities of {len(raised)} ranked jobs (for example job {min(raised)}) within the "
                "band since the last cycle: is a second controller running?"
            )
            if self._raised > 1:
                raise Stop(what)
            self.say(what, WARNING)
        lost = [job for job, why in view.left.items() if why == OVERRIDDEN and job in ownership.assigned]
        if len(lost) >= SEVERAL:
            self.say(
                f"somebody has given {len(lost)} ranked jobs (for example job {min(lost)}) priorities outside the band since "
                "the last cycle; they are left to Slurm. Is another controller with another band running?",
                WARNING,
            )

    def _ownership(self) -> Ownership:
        """The list of assigned jobs. Raises Stop where it, or the lock, has been removed."""
        try:
            self.directory.check_lock()
            return self.directory.ownership()
        except DataError as error:
            raise Stop(str(error)) from None

    def _notes(self, view: View) -> tuple[str, ...]:
        """What to configure where jobs wait and none is ranked because Slurm itself ranks them above the band."""
        above = [job.priority for job in self.jobs if view.left.get(job.id) == ABOVE]
        if view.ranked or not above:
            return ()
        return (
            f"no job is ranked: {len(above)} eligible jobs have priorities above the band (up to {max(above):,}); "
            "to rank them set `eligible.priority_below` above that, or a `band` above what Slurm computes",
        )

    def release_all(self, why: str, band_too: bool = False) -> tuple[int, list[Outcome]]:
        """Release every job that waits with an assigned priority: (number released, what was not).

        A job that somebody holds, or has given another priority, stays so; whole nodes are taken from it nevertheless.
        Running jobs stay on the list, since a requeued one keeps its priority. ``band_too``: also jobs of the ranked
        partitions with a priority in the band that are not on the list. What this process knows of the list counts,
        whatever became of the file; with ``band_too`` nothing where it knows nothing and cannot read it. Raises RLTuneError
        where Slurm does not answer; the list is kept then.
        """
        try:
            known = self.directory.known()
        except DataError:
            if not band_too:
                raise
            known = Ownership()
        done = FullRelease(self.slurm, self.config, known, self._keep, self.clock(), self.pause)
        line: dict[str, Any] = {"time_s": round(self.clock(), 3), "event": "released all", "why": why}
        try:
            done.run(band_too)
        except Exception as error:
            line |= {"event": "unknown", "what": "release", "released": sorted(done.jobs), "why": str(error)}
            self._note(self.directory.write_journal, line)
            raise
        self.unlisted = done.unlisted
        refused = {str(job): outcome.message for job, outcome in done.refused.items()}
        line |= {"jobs": sorted(done.jobs), "refused": refused, "running": done.running}
        line |= {"ended": len(done.ownership.assigned) - len(done.ownership.present)}
        self._note(self.directory.write_journal, line)
        rest = f"; {done.running} jobs on the list run, and keep their priority and GPU type if they are requeued"
        self.say(f"released {len(done.jobs)} jobs to Slurm{rest if done.running else ''}: {why}")
        if self.unlisted - self._reported:
            self.say(
                f"{len(self.unlisted)} waiting jobs (for example job {min(self.unlisted)}) have priorities of the band "
                f"({self.config.band.low:,} to {self.config.band.high:,}) that are not on the list; if they are the "
                "controller's, `rltune slurm release --band` releases them",
                WARNING,
            )
        return len(done.jobs), list(done.refused.values())

    def _keep(self, ownership: Ownership) -> None:
        self.directory.keep(ownership)
        self._note(self.directory.write, ownership)

    def jobs_at_start(self) -> tuple[frozenset[int], dict[int, str]]:
        """Waiting jobs: (those with a priority or a GPU type of an earlier controller's; those in the ranked partitions whose
        priority is in the band and from no controller → their users)."""
        ownership, jobs, band = self.directory.ownership(), self.slurm.jobs().records, self.config.band
        others = unlisted(jobs, ownership, self.config)
        return ownership.affected(jobs, band), {job.id: job.user for job in jobs if job.id in others}

    def has_jobs(self) -> bool:
        """Whether jobs waited with priorities or GPU types of the list when the last cycle read the queue."""
        return bool(self.directory.known().affected(self.jobs, self.config.band))

    def mark_stopped(self) -> None:
        """Let the metrics show that no controller writes any more; the others stay those of the last cycle."""
        self._note(self.directory.write_metrics, self._shown | {"live": (*LIVE_METRIC, 0.0)})

    def _note(self, write: Callable[..., None], *arguments: Any) -> None:
        """Write to disk; on failure report it and go on: releasing jobs must not depend on a disk."""
        try:
            write(*arguments)
        except OSError as error:
            self.say(f"{error.filename or self.directory.path}: {error.strerror or error}", ERROR)

    def ready_policy(self) -> TrainedPolicy:
        """The policy, read again where its file has changed; the one before where that cannot be read (it may be half copied).

        Raises Stop where there is none, or it is too old.
        """
        try:
            changed_ns = self.policy_path.stat().st_mtime_ns
            if self._policy is None or changed_ns != self._loaded_ns:
                self._policy, self._loaded_ns, self._unread = load_policy(self.policy_path), changed_ns, ""
        except (RLTuneError, OSError) as error:
            if self._policy is None:
                raise Stop(
                    f"{error}; name a trained policy under `policy:`, such as results/cells/<cell>/policy.npz"
                ) from None
            if str(error) != self._unread:
                self.say(f"going on with the policy loaded before: {error}", WARNING)
            self._unread = str(error)
        until, most = self._policy.facts.get("jobs_until"), self.config.max_policy_age_days
        if most is not None and until is not None:
            days = (self.clock() - datetime.fromisoformat(until).timestamp()) / 86400
            if days > most:
                raise Stop(
                    f"{self.policy_path} was trained on jobs until {until}, {days:.1f} days ago, expected at most {most:g}: "
                    "train it again on recent jobs"
                )
        return self._policy

    def _check_clock(self, now_s: float) -> None:
        """Raise ClockSet in the first cycle after the clock was set: waits and limits would be wrong."""
        steady = self.steady or (time.monotonic if self.clock is time.time else None)
        if steady is None:
            return
        last, self._last = self._last, (now_s, steady())
        jumped = 0.0 if last is None else (now_s - last[0]) - (self._last[1] - last[1])
        if abs(jumped) > JUMP_S:
            raise ClockSet(jumped)

    def _changes(self, view: View, decision: Decision, ownership: Ownership) -> list[Change]:
        """What differs between the jobs' present state and the decision; overdue jobs go first."""
        restricted = ownership.restricted(view.ranked)
        current = ownership.owned(view.ranked, self.config.band)
        late = overdue(view, self.config)
        rank = {number: k for k, number in enumerate(late, -len(late))}
        new: dict[int, int] = {}
        for order in decision.orders.values():
            new |= assign(sorted(order, key=lambda number: rank.get(number, 0)), current, self.config.band)
        flags, nodes = {}, {}
        for job in view.ranked:
            exclusive, given = job.id in decision.exclusive, ownership.assigned.get(job.id, Assignment(0))
            # a job whose user requested whole nodes, or sharing, keeps that
            if exclusive != given.exclusive and (given.exclusive or job.shared == "OK"):
                flags[job.id] = not exclusive
            kind = None if given.unfit else decision.types.get(job.id)
            excluded = view.exclusions[kind] if kind else ""
            if names(excluded) != (job.excluded if job.id in restricted else frozenset()):
                nodes[job.id] = excluded
        changed = sorted(new.keys() | flags.keys() | nodes.keys())
        return [Change(job, new.get(job), flags.get(job), nodes.get(job)) for job in changed]

    def _write(self, plan: Plan, done: Cycle) -> None:
        """Write to Slurm; in a dry run, to the journal alone."""
        if self.live:
            done.changed, done.released, done.refused, self._is_sure = self._writer.write(plan)
        else:
            self._writer.write_plan(plan, live=False)
            done.changed, done.released, done.planned = len(plan.changes), len(plan.releases), plan.describe()

    def _report(self, done: Cycle, now_s: float) -> None:
        self._totals.update(cycles=1, changes=done.changed, refusals=done.refused)
        self._shown = {
            "live": (*LIVE_METRIC, float(self.live)),
            "last_cycle_time_seconds": ("gauge", "When the last cycle ended well, s since 1970", now_s),
            "ranked_jobs": ("gauge", "Waiting jobs that are ranked", done.ranked),
            "left_jobs": ("gauge", "Waiting jobs that are left to Slurm", len(done.left)),
            "running_jobs": ("gauge", "Running jobs with GPUs", done.running),
            "read_seconds": ("gauge", "Seconds to read queue and nodes", done.read_s),
            "decide_seconds": ("gauge", "Seconds to rank and place", done.decide_s),
            "write_seconds": ("gauge", "Seconds to write", done.write_s),
            "cycles_total": ("counter", "Cycles that ended well", self._totals["cycles"]),
            "changes_total": ("counter", "Jobs changed", self._totals["changes"]),
            "refusals_total": ("counter", "Changes that Slurm refused", self._totals["refusals"]),
            **self.metrics,
        }
        self.directory.write_metrics(self._shown)
