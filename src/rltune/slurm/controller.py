"""The controller: reads queue and nodes, ranks, writes priorities, and gives every job back when it had better not.

A cycle either ends well or changes nothing that the next one, or `rltune slurm release`, does not find again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rltune.agent.policy_file import TrainedPolicy, load_policy
from rltune.config.slurm import SlurmConfig
from rltune.errors import DataError, RLTuneError
from rltune.slurm.decide import Decision, decide
from rltune.slurm.folder import Folder
from rltune.slurm.giving_back import GivenBack, give_back, in_band
from rltune.slurm.journal import Journal
from rltune.slurm.observe import View, observe
from rltune.slurm.ownership import asked_for, doubted, due, is_ours, ours, remembered, theirs
from rltune.slurm.priorities import assign
from rltune.slurm.records import Change, Outcome, Slurm, SlurmJob
from rltune.slurm.scope import ABOVE
from rltune.slurm.touched import Owned, Touch
from rltune.slurm.writing import Plan, Writer, is_alone

LIVE_FIGURE = ("gauge", "1 while a controller writes priorities, 0 in a dry run and once it has ended")
JUMP_S = 300.0
"""Difference of the two clocks' progress over one interval from which the system's clock was set."""


class ClockSet(RLTuneError):
    """The system's clock was set since the cycle before."""


class Stop(RLTuneError):
    """The controller has to stop and hand every job back; its text is why."""


class Lost(Stop, DataError):
    """The list of touched jobs, or the lock, is gone or broken: what the controller knows of the list it hands back."""


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
    """What its user should know of the configuration."""
    would: tuple[str, ...] = ()
    """Of a dry run: what would have been written, the first of each queue first."""
    read_s: float = 0.0
    decide_s: float = 0.0
    write_s: float = 0.0


@dataclass
class Controller:
    """One controller of one cluster. ``live``: priorities are written; else only told."""

    config: SlurmConfig
    slurm: Slurm
    folder: Folder
    policy_path: Path
    live: bool = False
    clock: Callable[[], float] = time.time
    """s since 1970, on the clock that Slurm goes by."""
    say: Callable[[str], None] = print
    steady: Callable[[], float] | None = None
    """A clock that nobody sets, beside which it is seen when `clock` is; default: the system's own, beside its own."""
    _policy: TrainedPolicy | None = field(default=None, repr=False)
    _loaded_ns: int = field(default=0, repr=False)
    _last: tuple[float, float] | None = field(default=None, repr=False)
    _totals: dict[str, float] = field(default_factory=dict, repr=False)
    figures: dict[str, tuple[str, str, float]] = field(default_factory=dict, repr=False)
    """Of others, the watchdog's, for Prometheus: name → (kind, what it is, value), with the next cycle's own."""
    _shown: dict[str, tuple[str, str, float]] = field(default_factory=dict, repr=False)
    view: View | None = field(default=None, repr=False)
    """What the last cycle saw."""
    jobs: tuple[SlurmJob, ...] = field(default=(), repr=False)
    """All jobs that it was told of."""
    _journal: Journal = field(default_factory=Journal, repr=False)

    def cycle(self) -> Cycle:
        """One cycle: read, decide, write.

        Raises Stop where the controller must not go on, RLTuneError where this cycle could not be done.
        """
        done, policy = Cycle(), self._ready_policy()
        began = time.perf_counter()
        view, owned, forgotten, done.faults = self._look()
        if view.without_room & ours(self.jobs, owned.touched, self.config.band):
            view, owned, forgotten, done.faults = self._look()
        done.read_s = time.perf_counter() - began
        self.view = view
        done.notes = self._notes(view)
        done.ranked, done.left, done.running = len(view.ranked), view.left, len(view.running)
        began = time.perf_counter()
        decision = decide(view, policy, self.config) if view.ranked else Decision({}, {}, {}, frozenset())
        changes = self._changes(view, decision, owned.touched)
        done.decide_s = time.perf_counter() - began
        began = time.perf_counter()
        self._write(Plan(view, self.jobs, decision, changes, owned, forgotten, self.config.band), done)
        done.write_s = time.perf_counter() - began
        self._report(done, view.now_s)
        return done

    def _look(self) -> tuple[View, Owned, dict[int, str], tuple[str, ...]]:
        """What Slurm says of queue and nodes, whose jobs are whose, which are forgotten and why, what could not be read.

        Queue and nodes are two answers. Of a job that starts or ends between them only one tells, and its room then seems
        to be taken by others; a second look has it in both.
        """
        known, band = self._known(), self.config.band
        queue, nodes = self.slurm.jobs(), self.slurm.nodes()
        now_s = self.clock()
        self._check_clock(now_s)
        doubts = doubted(known, queue)
        _, over = asked_for(self.slurm, due(known, doubts))
        owned, forgotten = remembered(known, queue, band, doubts, over)
        self.jobs = queue.records
        mine, others = ours(queue.records, owned.touched, band), theirs(queue.records, owned, band)
        view = observe(queue.records, nodes.records, self.config, now_s, mine, others)
        if view is None:
            named = ", ".join(self.config.scope.partitions)
            there = ", ".join(sorted({name for node in nodes.records for name in node.partitions})) or "none"
            raise RLTuneError(
                f"no usable node with GPUs in `scope.partitions` ({named}); the cluster's partitions: {there}"
            )
        self._check_strangers([job.id for job in view.ranked if job.priority in band and job.id not in mine])
        return view, owned, forgotten, (*queue.faults, *nodes.faults, *view.faults)

    def _check_strangers(self, jobs: Sequence[int]) -> None:
        """Raise Stop where jobs to be ranked have priorities of the band that this controller did not give them."""
        if self.live and jobs:
            raise Stop(
                f"{len(jobs)} waiting jobs (job {min(jobs)} for one) have priorities of {self.config.band.low:,} to "
                f"{self.config.band.high:,} that this controller did not give them: is a second one at work, or "
                "somebody else in its `band`?"
            )

    def _known(self) -> Owned:
        """The list of touched jobs. Raises Lost where it, or the lock, has been taken away."""
        try:
            self.folder.check_lock()
            return self.folder.owned()
        except DataError as error:
            raise Lost(str(error)) from None

    def _notes(self, view: View) -> tuple[str, ...]:
        """What to set where jobs wait and none is ranked because Slurm itself ranks them above the band."""
        above = [job.priority for job in self.jobs if view.left.get(job.id) == ABOVE]
        if view.ranked or not above:
            return ()
        return (
            f"no job is ranked: {len(above)} that could be have priorities above the band (up to {max(above):,}); "
            "to rank them set `scope.priority_below` above that, or a `band` above what Slurm computes",
        )

    def hand_back(self, why: str, band_too: bool = False) -> tuple[int, list[Outcome]]:
        """Give every job that waits with a priority of ours back to Slurm: (how many, what Slurm refused).

        A job that somebody holds, or has given another priority, is left so; whole nodes are taken back from it all the
        same. Jobs that run stay on the list, for a requeued one comes back with its priority. ``band_too``: also jobs of
        the ranked partitions with a priority in the band that nobody remembers. What this process knows of the list
        counts, whatever has become of the file. Raises RLTuneError where Slurm does not answer; the list is kept then.
        """
        done = GivenBack(self._to_hand_back(band_too))
        line: dict[str, Any] = {"time_s": round(self.clock(), 3), "event": "handed back", "why": why}
        try:
            give_back(self.slurm, self.config, done, self._keep, band_too)
        except Exception as error:
            text = str(error)
            self._note(
                lambda: self.folder.write_journal(
                    {**line, "event": "unknown", "what": "release", "released": sorted(done.released), "why": text}
                )
            )
            raise
        refused = {str(job): outcome.message for job, outcome in done.refused.items()}
        line |= {"jobs": sorted(done.released), "refused": refused, "running": done.running}
        self._note(lambda: self.folder.write_journal(line))
        rest = (
            f"; {done.running} on the list run, and keep their priority should they be requeued" if done.running else ""
        )
        self.say(f"handed back {len(done.released)} jobs to Slurm{rest}: {why}")
        return len(done.released), list(done.refused.values())

    def _to_hand_back(self, band_too: bool) -> Owned:
        """What this process knows of the list; with ``band_too`` nothing where it knows nothing and cannot read it."""
        try:
            return self.folder.kept()
        except DataError:
            if band_too:
                return Owned()
            raise

    def _keep(self, owned: Owned) -> None:
        self.folder.keep(owned)
        self._note(lambda: self.folder.write_touched(owned.touched, owned.theirs))

    def trained(self) -> dict[str, Any]:
        """What the policy's file says of its training. Raises Stop as a cycle does."""
        return self._ready_policy().facts

    def left_over(self) -> tuple[frozenset[int], frozenset[int]]:
        """Of the jobs that wait now: (those with a priority of an earlier controller's; those in the ranked partitions
        whose priority is in the band without anybody's doing)."""
        owned, jobs, band = self.folder.owned(), self.slurm.jobs().records, self.config.band
        mine = ours(jobs, owned.touched, band)
        return mine, frozenset(in_band(jobs, self.config).keys() - mine - theirs(jobs, owned, band))

    def gone(self) -> None:
        """Let the figures say that no controller writes any more; the others stay those of the last cycle."""
        self._note(lambda: self.folder.write_metrics(self._shown | {"live": LIVE_FIGURE + (0.0,)}))

    def _note(self, write: Callable[[], None]) -> None:
        """Write to disk; where that fails, say so and go on: giving jobs back must not depend on a disk."""
        try:
            write()
        except OSError as error:
            self.say(f"{error.filename or self.folder.path}: {error.strerror or error}")

    def _ready_policy(self) -> TrainedPolicy:
        """The policy, read again where its file has changed. Raises Stop where it cannot be used any more."""
        if not self.policy_path.is_file():
            raise Stop(
                f"{self.policy_path}: no such policy; name a trained one under `policy:`, such as "
                "results/cells/<cell>/policy.npz"
            )
        try:
            stat = self.policy_path.stat()
            if self._policy is None or stat.st_mtime_ns != self._loaded_ns:
                self._policy, self._loaded_ns = load_policy(self.policy_path), stat.st_mtime_ns
        except (RLTuneError, OSError) as error:
            raise Stop(f"the policy cannot be used: {error}") from None
        days = (time.time() - stat.st_mtime) / 86400
        if self.config.policy_days is not None and days > self.config.policy_days:
            raise Stop(
                f"{self.policy_path} is {days:.1f} days old, expected {self.config.policy_days:g} at most: "
                "train it again on what has happened since"
            )
        return self._policy

    def _check_clock(self, now_s: float) -> None:
        """Raise ClockSet for a cycle before which the clock was set: waits and limits would be wrong."""
        steady = self.steady or (time.monotonic if self.clock is time.time else None)
        if steady is None:
            return
        last, self._last = self._last, (now_s, steady())
        if last is None:
            return
        jumped = (now_s - last[0]) - (self._last[1] - last[1])
        if abs(jumped) > JUMP_S:
            raise ClockSet(f"the clock jumped by {jumped:+.0f} s; this cycle is left out")

    def _changes(self, view: View, decision: Decision, touched: dict[int, Touch]) -> list[Change]:
        current = {job.id: job.priority if is_ours(job, touched, self.config.band) else 0 for job in view.ranked}
        new: dict[int, int] = {}
        for order in decision.orders.values():
            new |= assign(order, current, self.config.band)
        wanted = [j.id for j in view.ranked if (j.id in decision.alone) != is_alone(touched, j.id)]
        given = [job for job in wanted if not is_alone(touched, job)]
        own = self.slurm.oversubscription(given) if given else {}
        # a job whose user asked for whole nodes, or to share, keeps what was asked for
        flags = {job: job not in decision.alone for job in wanted if job not in given or own.get(job) == "OK"}
        return [Change(job, new.get(job), flags.get(job)) for job in sorted(new.keys() | flags.keys())]

    def _write(self, plan: Plan, done: Cycle) -> None:
        """Tell Slurm; in a dry run, the journal alone."""
        if self.live:
            written = Writer(self.slurm, self.folder, self._journal, self._note).write(plan)
            done.changed, done.released, done.refused = written.changed, written.released, written.refused
            return
        leave = plan.leave
        self._journal.decided(self.folder, plan.view, plan.decision, plan.changes, leave, {}, live=False)
        done.changed, done.released, done.would = len(plan.changes), len(leave), plan.would()

    def _report(self, done: Cycle, now_s: float) -> None:
        for name, value in (("cycles", 1), ("changes", done.changed), ("refusals", done.refused)):
            self._totals[name] = self._totals.get(name, 0) + value
        self._shown = {
            "live": LIVE_FIGURE + (float(self.live),),
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
            **self.figures,
        }
        self.folder.write_metrics(self._shown)
