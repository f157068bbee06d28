"""The controller: reads queue and nodes, ranks, writes priorities, and gives every job back when it had better not.

A cycle either ends well or changes nothing that the next one, or `rltune slurm release`, does not find again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rltune.agent.policy_file import TrainedPolicy, load_policy
from rltune.config.slurm import SlurmConfig
from rltune.errors import DataError, RLTuneError
from rltune.slurm.decide import Decision, decide
from rltune.slurm.folder import Folder
from rltune.slurm.observe import View, observe
from rltune.slurm.priorities import assign
from rltune.slurm.records import WAITING_STATES, Change, Outcome, Parsed, SlurmJob, SlurmNode

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


class Stop(RLTuneError):
    """The controller has to stop and hand every job back; its text is why."""


@dataclass
class Cycle:
    """What one cycle did."""

    ranked: int = 0
    left: int = 0
    running: int = 0
    changed: int = 0
    refused: int = 0
    released: int = 0
    faults: tuple[str, ...] = ()
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
    _policy: TrainedPolicy | None = field(default=None, repr=False)
    _loaded_ns: int = field(default=0, repr=False)
    _flags: dict[int, bool] = field(default_factory=dict, repr=False)
    """Over-subscription written to each job so far: True shared, False whole nodes."""
    _last: tuple[float, float] | None = field(default=None, repr=False)
    _totals: dict[str, float] = field(default_factory=dict, repr=False)
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
        queue, nodes = self.slurm.jobs(), self.slurm.nodes()
        now_s = self.clock()
        done.read_s = time.perf_counter() - began
        self._check_clock(now_s)
        touched = self.folder.touched()
        self.jobs = queue.records
        self.view = view = observe(queue.records, nodes.records, self.config, now_s)
        if view is None:
            raise RLTuneError("no usable node with GPUs in the ranked partitions")
        done.faults = (*queue.faults, *nodes.faults, *view.faults)
        done.ranked, done.left, done.running = len(view.ranked), len(view.left), len(view.running)
        began = time.perf_counter()
        decision = decide(view, policy, self.config) if view.ranked else Decision({}, {}, {}, frozenset())
        changes = self._changes(view, decision)
        done.decide_s = time.perf_counter() - began
        began = time.perf_counter()
        self._write(view, decision, changes, touched, {job.id: job for job in queue.records}, done)
        done.write_s = time.perf_counter() - began
        self._report(done, now_s)
        return done

    def hand_back(self, why: str, band_too: bool = False) -> tuple[int, list[Outcome]]:
        """Give every touched job that still waits back to Slurm: (how many, what Slurm refused).

        ``band_too``: also jobs with a priority in the band that nobody remembers. Raises RLTuneError where Slurm does
        not answer; the list of touched jobs is kept then.
        """
        touched = {} if band_too and not self._readable() else self.folder.touched()
        waiting = {job.id: job for job in self.slurm.jobs().records if job.state in WAITING_STATES}
        band = self.config.band
        mine = [i for i in touched if i in waiting]
        if band_too:
            mine += [i for i, job in waiting.items() if band.low <= job.priority <= band.high and i not in touched]
        refused = [o for o in (self.slurm.release(mine) if mine else []) if not o.ok]
        kept = {o.job: touched.get(o.job, 0) for o in refused if self._still_waits(o.job)}
        self.folder.write_touched(kept)
        self.folder.write_journal({"time_s": self.clock(), "event": "handed back", "why": why, "jobs": mine,
                                   "refused": {str(o.job): o.message for o in refused}})  # fmt: skip
        self.say(f"handed back {len(mine) - len(refused)} jobs to Slurm: {why}")
        return len(mine) - len(refused), refused

    def _readable(self) -> bool:
        try:
            self.folder.touched()
        except DataError:
            return False
        return True

    def _still_waits(self, job: int) -> bool:
        return any(other.id == job and other.state in WAITING_STATES for other in self.slurm.jobs().records)

    def _ready_policy(self) -> TrainedPolicy:
        """The policy, read again where its file has changed. Raises Stop where it cannot be used any more."""
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
        """Raise RLTuneError for a cycle before which the clock was set: waits and limits would be wrong."""
        last, self._last = self._last, (now_s, time.monotonic())
        if last is None or self.clock is not time.time:
            return
        jumped = (now_s - last[0]) - (time.monotonic() - last[1])
        if abs(jumped) > JUMP_S:
            raise RLTuneError(f"the clock jumped by {jumped:+.0f} s; this cycle is left out")

    def _changes(self, view: View, decision: Decision) -> list[Change]:
        current = {job.id: job.priority for job in view.ranked}
        new: dict[int, int] = {}
        for order in decision.orders.values():
            new |= assign(order, current, self.config.band)
        flags = {}
        if self.config.exclusive == "model":
            wanted = {job.id: job.id not in decision.alone for job in view.ranked if job.id in decision.starts}
            flags = {job: share for job, share in wanted.items() if share != self._flags.get(job, True)}
        return [Change(job, new.get(job), flags.get(job)) for job in sorted(new.keys() | flags.keys())]

    def _write(
        self, view: View, decision: Decision, changes: list[Change], touched: dict[int, int],
        everyone: dict[int, SlurmJob], done: Cycle,
    ) -> None:  # fmt: skip
        """Tell Slurm, and keep note of it: the list of touched jobs first."""
        ranked = {job.id for job in view.ranked}
        waiting = {i for i, job in everyone.items() if job.state in WAITING_STATES}
        mine = {job: priority for job, priority in touched.items() if job in waiting}
        leave = sorted(mine.keys() - ranked)
        if not self.live:
            self._journal(view, decision, changes, [], leave)
            done.changed = len(changes)
            return
        mine |= {c.job: c.priority if c.priority is not None else mine.get(c.job, 0) for c in changes}
        if mine != touched:
            self.folder.write_touched(mine)
        outcomes = self.slurm.update(changes) if changes else []
        given_back = self.slurm.release(leave) if leave else []
        self._flags |= {c.job: c.oversubscribe for c, o in zip(changes, outcomes, strict=True)
                        if o.ok and c.oversubscribe is not None}  # fmt: skip
        self._flags = {job: flag for job, flag in self._flags.items() if job in waiting}
        done.changed, done.released = sum(o.ok for o in outcomes), sum(o.ok for o in given_back)
        done.refused = sum(not o.ok for o in (*outcomes, *given_back))
        if any(o.ok for o in given_back):
            self.folder.write_touched({j: p for j, p in mine.items() if j not in {o.job for o in given_back if o.ok}})
        self._journal(view, decision, changes, outcomes, leave)

    def _journal(
        self, view: View, decision: Decision, changes: list[Change], outcomes: list[Outcome], released: list[int]
    ) -> None:
        refused = {o.job: o.message for o in outcomes if not o.ok}
        rank = {job: (pool, k) for pool, order in decision.orders.items() for k, job in enumerate(order)}
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
            self.folder.write_journal(line)
        for job in released:
            self.folder.write_journal({"time_s": round(view.now_s, 3), "event": "released" if self.live else
                                       "would release", "job": job, "why": view.left.get(job, "not ranked")})  # fmt: skip

    def _report(self, done: Cycle, now_s: float) -> None:
        for name, value in (("cycles", 1), ("changes", done.changed), ("refusals", done.refused)):
            self._totals[name] = self._totals.get(name, 0) + value
        self.folder.write_metrics({
            "live": ("gauge", "1 where priorities are written, 0 in a dry run", float(self.live)),
            "last_cycle_time_seconds": ("gauge", "When the last cycle ended well, s since 1970", now_s),
            "ranked_jobs": ("gauge", "Waiting jobs that are ranked", done.ranked),
            "left_jobs": ("gauge", "Waiting jobs that are left to Slurm", done.left),
            "running_jobs": ("gauge", "Running jobs with GPUs", done.running),
            "read_seconds": ("gauge", "Seconds to read queue and nodes", done.read_s),
            "decide_seconds": ("gauge", "Seconds to rank and place", done.decide_s),
            "write_seconds": ("gauge", "Seconds to write", done.write_s),
            "cycles_total": ("counter", "Cycles that ended well", self._totals["cycles"]),
            "changes_total": ("counter", "Jobs changed", self._totals["changes"]),
            "refusals_total": ("counter", "Changes that Slurm refused", self._totals["refusals"]),
        })  # fmt: skip


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
