"""The controller: reads queue and nodes, ranks, writes priorities, and gives every job back when it had better not.

A cycle either ends well or changes nothing that the next one, or `rltune slurm release`, does not find again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from rltune.agent.policy_file import TrainedPolicy, load_policy
from rltune.config.slurm import SlurmConfig
from rltune.errors import DataError, RLTuneError
from rltune.slurm.decide import Decision, decide
from rltune.slurm.folder import Folder, Touch
from rltune.slurm.observe import View, observe
from rltune.slurm.ownership import ANSWERS, is_ours, ours, remembered
from rltune.slurm.priorities import assign
from rltune.slurm.records import WAITING_STATES, Change, Outcome, Parsed, SlurmJob, SlurmNode

LIVE_FIGURE = ("gauge", "1 while a controller writes priorities, 0 in a dry run and once it has ended")
JUMP_S = 300.0
"""Difference of the two clocks' progress over one interval from which the system's clock was set."""


class Slurm(Protocol):
    """What the controller needs of a client (rltune.slurm.client)."""

    def jobs(self) -> Parsed[SlurmJob]:
        """Every job that waits or runs."""

    def nodes(self) -> Parsed[SlurmNode]:
        """Every node."""

    def update(self, changes: list[Change]) -> list[Outcome]:
        """Change waiting jobs."""

    def release(self, ids: Iterable[int]) -> list[Outcome]:
        """Give jobs back."""

    def shared(self, ids: Iterable[int]) -> dict[int, str]:
        """Over-subscription of jobs."""


class ClockSet(RLTuneError):
    """The system's clock was set since the cycle before."""


class Stop(RLTuneError):
    """The controller has to stop and hand every job back; its text is why."""


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

    def cycle(self) -> Cycle:
        """One cycle: read, decide, write.

        Raises Stop where the controller must not go on, RLTuneError where this cycle could not be done.
        """
        done, policy = Cycle(), self._ready_policy()
        began = time.perf_counter()
        view, touched, done.faults = self._look()
        if view.without_room & ours(self.jobs, touched):
            view, touched, done.faults = self._look()
        done.read_s = time.perf_counter() - began
        self.view = view
        done.ranked, done.left, done.running = len(view.ranked), view.left, len(view.running)
        began = time.perf_counter()
        decision = decide(view, policy, self.config) if view.ranked else Decision({}, {}, {}, frozenset())
        changes = self._changes(view, decision, touched)
        done.decide_s = time.perf_counter() - began
        began = time.perf_counter()
        self._write(view, decision, changes, touched, done)
        done.write_s = time.perf_counter() - began
        self._report(done, view.now_s)
        return done

    def _look(self) -> tuple[View, dict[int, Touch], tuple[str, ...]]:
        """What Slurm says of queue and nodes, which jobs are ours, and what of it could not be read.

        Queue and nodes are two answers. Of a job that starts or ends between them only one tells, and its room then seems
        to be taken by others; a second look has it in both.
        """
        queue, nodes = self.slurm.jobs(), self.slurm.nodes()
        now_s = self.clock()
        self._check_clock(now_s)
        touched = remembered(self.folder.touched(), queue)
        self.jobs = queue.records
        view = observe(queue.records, nodes.records, self.config, now_s, ours(queue.records, touched))
        if view is None:
            named = ", ".join(self.config.scope.partitions)
            there = ", ".join(sorted({name for node in nodes.records for name in node.partitions})) or "none"
            raise RLTuneError(f"no usable node with GPUs in `scope.partitions` ({named}); the cluster's partitions: {there}")
        return view, touched, (*queue.faults, *nodes.faults, *view.faults)

    def hand_back(self, why: str, band_too: bool = False) -> tuple[int, list[Outcome]]:
        """Give every job that waits with a priority of ours back to Slurm: (how many, what Slurm refused).

        It looks twice where one answer lacks a job, or Slurm has refused one: the next answer may have it, or have it
        gone.

        A job that somebody holds, or has given another priority, is left so; whole nodes are taken back from it all the
        same. Jobs that run stay on the list, for a requeued one comes back with its priority. ``band_too``: also jobs
        with a priority in the band that nobody remembers. Raises RLTuneError where Slurm does not answer; the list of
        touched jobs is kept then.
        """
        touched = {} if band_too and not self._readable() else self.folder.touched()
        released: set[int] = set()
        refused: dict[int, Outcome] = {}
        for _ in range(ANSWERS):
            read = self.slurm.jobs()
            waiting = [job for job in read.records if job.state in WAITING_STATES]
            mine = {job.id for job in waiting if is_ours(job, touched)}
            if read.faults:  # one of these may be a record that could not be read
                mine |= touched.keys() - {job.id for job in read.records}
            if band_too:
                mine |= {job.id for job in waiting if self._in_band(job.priority)} - released
            shared = [Change(job.id, oversubscribe=True) for job in waiting if _is_alone(touched, job.id)]
            unshared = self.slurm.update(shared) if shared else []
            given_back = self.slurm.release(sorted(mine)) if mine else []
            refused = {o.job: o for o in (*unshared, *given_back) if not o.ok}
            released |= {o.job for o in given_back if o.ok}
            done = {o.job for o in (*unshared, *given_back)} - refused.keys()
            touched = {job: touch for job, touch in remembered(touched, read).items() if job not in done}
            touched |= {job: touched.get(job, Touch(0)) for job in refused}
            self._note(partial(self.folder.write_touched, dict(touched)))
            if not refused and not any(touch.missed for touch in touched.values()):
                break
        line = {"time_s": round(self.clock(), 3), "event": "handed back", "why": why, "jobs": sorted(released),
                "refused": {str(job): o.message for job, o in refused.items()}}  # fmt: skip
        self._note(lambda: self.folder.write_journal(line))
        self.say(f"handed back {len(released)} jobs to Slurm: {why}")
        return len(released), list(refused.values())

    def trained(self) -> dict[str, Any]:
        """What the policy's file says of its training. Raises Stop as a cycle does."""
        return self._ready_policy().facts

    def left_over(self) -> tuple[frozenset[int], frozenset[int]]:
        """Of the jobs that wait now: (those with a priority of an earlier controller's; those in the ranked partitions
        whose priority is in the band without anybody's doing)."""
        touched, jobs = self.folder.touched(), self.slurm.jobs().records
        mine = ours(jobs, touched)
        partitions = set(self.config.scope.partitions)
        others = {job.id for job in jobs if job.state in WAITING_STATES and self._in_band(job.priority)
                  and partitions & set(job.partition.split(","))}  # fmt: skip
        return mine, frozenset(others - mine)

    def gone(self) -> None:
        """Let the figures say that no controller writes any more; the others stay those of the last cycle."""
        self._note(lambda: self.folder.write_metrics(self._shown | {"live": LIVE_FIGURE + (0.0,)}))

    def _note(self, write: Callable[[], None]) -> None:
        """Write to disk; where that fails, say so and go on: giving jobs back must not depend on a disk."""
        try:
            write()
        except OSError as error:
            self.say(f"{error.filename or self.folder.path}: {error.strerror or error}")

    def _in_band(self, priority: int) -> bool:
        return self.config.band.low <= priority <= self.config.band.high

    def _readable(self) -> bool:
        try:
            self.folder.touched()
        except DataError:
            return False
        return True

    def _ready_policy(self) -> TrainedPolicy:
        """The policy, read again where its file has changed. Raises Stop where it cannot be used any more."""
        if not self.policy_path.is_file():
            raise Stop(f"{self.policy_path}: no such policy; name a trained one under `policy:`, such as "
                       "results/cells/<cell>/policy.npz")  # fmt: skip
        try:
            stat = self.policy_path.stat()
            if self._policy is None or stat.st_mtime_ns != self._loaded_ns:
                self._policy, self._loaded_ns = load_policy(self.policy_path), stat.st_mtime_ns
        except (RLTuneError, OSError) as error:
            raise Stop(f"the policy cannot be used: {error}") from None
        days = (time.time() - stat.st_mtime) / 86400
        if self.config.policy_days is not None and days > self.config.policy_days:
            raise Stop(f"{self.policy_path} is {days:.1f} days old, expected {self.config.policy_days:g} at most: "
                       "train it again on what has happened since")  # fmt: skip
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
        current = {job.id: job.priority if is_ours(job, touched) else 0 for job in view.ranked}
        new: dict[int, int] = {}
        for order in decision.orders.values():
            new |= assign(order, current, self.config.band)
        wanted = [j.id for j in view.ranked if (j.id in decision.alone) != _is_alone(touched, j.id)]
        given = [job for job in wanted if not _is_alone(touched, job)]
        own = self.slurm.shared(given) if given else {}
        # a job whose user asked for whole nodes, or to share, keeps what was asked for
        flags = {job: job not in decision.alone for job in wanted if job not in given or own.get(job) == "OK"}
        return [Change(job, new.get(job), flags.get(job)) for job in sorted(new.keys() | flags.keys())]

    def _write(
        self, view: View, decision: Decision, changes: list[Change], touched: dict[int, Touch], done: Cycle
    ) -> None:
        """Tell Slurm, and keep note of it: the list of touched jobs first."""
        ranked, mine = {job.id: job for job in view.ranked}, dict(touched)
        left = [job for job in self.jobs if job.state in WAITING_STATES and job.id not in ranked]
        leave = [job.id for job in left if is_ours(job, touched)]
        unflag = [Change(job.id, oversubscribe=True) for job in left if _is_alone(touched, job.id)]
        if not self.live:
            self._journal(view, decision, changes, [], leave)
            done.changed, done.released = len(changes), len(leave)
            done.would = _would(decision, changes, leave)
            return
        for change in changes:
            job = ranked[change.job]
            last = job.priority if is_ours(job, touched) else 0
            alone = _is_alone(touched, job.id) if change.oversubscribe is None else not change.oversubscribe
            mine[job.id] = Touch(last if change.priority is None else change.priority, last, alone)
        if mine != self.folder.touched():
            self.folder.write_touched(mine)
        outcomes = self.slurm.update([*changes, *unflag]) if changes or unflag else []
        given_back = self._release(leave, mine)
        done.changed, done.released = sum(o.ok for o in outcomes[: len(changes)]), sum(o.ok for o in given_back)
        done.refused = sum(not o.ok for o in (*outcomes, *given_back))
        unflagged = {o.job for o in outcomes[len(changes) :] if o.ok}
        released = {o.job for o in given_back if o.ok}
        after = {job: replace(touch, alone=False) if job in unflagged else touch for job, touch in mine.items()}
        after = {job: touch for job, touch in after.items() if job not in released or touch.alone}
        if after != mine:
            self.folder.write_touched(after)
        self._journal(view, decision, changes, outcomes, leave)

    def _release(self, leave: list[int], touched: dict[int, Touch]) -> list[Outcome]:
        """Release jobs, of those that still wait with our priority: a hold of theirs meanwhile must not be undone."""
        if not leave:
            return []
        still = ours(self.slurm.jobs().records, touched)
        return self.slurm.release([job for job in leave if job in still])

    def _journal(
        self, view: View, decision: Decision, changes: list[Change], outcomes: list[Outcome], released: list[int]
    ) -> None:
        refused = {o.job: o.message for o in outcomes if not o.ok}
        rank = {job: (pool, k) for pool, order in decision.orders.items() for k, job in enumerate(order)}
        lines: list[dict[str, Any]] = []
        for change in changes:
            pool, place = rank.get(change.job, ("", -1))
            line: dict[str, Any] = {
                "time_s": round(view.now_s, 3), "event": "change" if self.live else "would change", "job": change.job,
                "pool": pool, "rank": place + 1, "of": len(decision.orders.get(pool, ())),
                "score": _rounded(decision.scores.get(change.job)), "priority": change.priority,
            }  # fmt: skip
            if change.oversubscribe is not None:
                line["oversubscribe"] = "YES" if change.oversubscribe else "NO"
            if change.job in decision.starts:
                line["could_start_on"] = decision.starts[change.job]
            if change.job in refused:
                line["refused"] = refused[change.job]
            lines.append(line)
        lines += [{"time_s": round(view.now_s, 3), "event": "released" if self.live else "would release", "job": job,
                   "why": view.left.get(job, "not ranked")} for job in released]  # fmt: skip
        self.folder.write_journal(*lines)

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
        }  # fmt: skip
        self.folder.write_metrics(self._shown)


def _would(decision: Decision, changes: list[Change], leave: list[int]) -> tuple[str, ...]:
    """What would be written, a line a job."""
    by_job, lines = {change.job: change for change in changes}, []
    for pool, order in decision.orders.items():
        for k, job in enumerate(order):
            if job in by_job:
                change, nodes = by_job[job], decision.starts.get(job)
                line = f"{pool}, {k + 1} of {len(order)}: job {job}"
                line += "" if change.priority is None else f", priority {change.priority}"
                line += "" if change.oversubscribe is None else f", OverSubscribe={'YES' if change.oversubscribe else 'NO'}"
                lines.append(line + (f", could start on {', '.join(nodes)}" if nodes else ""))
    return (*lines, *(f"job {job}: released" for job in leave))


def _is_alone(touched: dict[int, Touch], job: int) -> bool:
    return job in touched and touched[job].alone


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
