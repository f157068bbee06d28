"""Run the controller: cycle after cycle until it is stopped, or has a reason to stop by itself."""

import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from logging import ERROR, WARNING
from typing import Any

from rltune.errors import RLTuneError, SlurmUnavailable
from rltune.slurm.controller import SEVERAL, ClockSet, Controller, Cycle, Stop
from rltune.slurm.systemd import notify
from rltune.slurm.watchdog import Watchdog

DONE, FAILED, NOT_RELEASED, GAVE_UP = 0, 1, 3, 4
"""Exit statuses: stopped; cycles failed, or an unexpected error; jobs may still have a priority of the controller's; policy or
list cannot be used, or somebody else writes priorities of the band."""
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SIGNAL_CHECK_S = 0.5
"""Longest wait between cycles without looking for a signal."""
TRIES = 5
"""How often a release is tried where Slurm does not answer."""
BETWEEN_TRIES_S = 5.0
PAUSE_S = 86400.0
"""How long nothing is written after jobs have waited longer than without the controller."""
LONGEST_PAUSE_S = 60.0
"""Longest pause between two tries while Slurm does not answer."""
SHOWN = 20
"""Most lines of a dry run about what would be written; all are in its decisions.jsonl."""


def warnings(facts: Mapping[str, Any]) -> list[str]:
    """What to know about a policy's training before it ranks a live queue, in lines."""
    cell, found = facts.get("cell") or {}, []
    estimate = cell.get("estimate", "requested")
    if estimate != "requested":
        found.append(
            f"note: the policy was trained with run times estimated as {estimate}; here it gets the users' time limits "
            "(`estimate: [requested]` trains with those)"
        )
    if facts.get("learned") is False:
        found.append("note: on validation the policy was not better than its base policy, which would do as well")
    if cell:
        found.append(
            f"the policy was trained on {cell['trace']} for the cluster {cell['cluster']}: how well it ranks on another "
            "cluster is not known"
        )
    return found


class CyclesFailed(Stop):
    """Too many consecutive cycles failed."""


@dataclass
class Service:
    """Runs a controller."""

    controller: Controller
    once: bool = False
    speed: float = 1.0
    """Seconds of Slurm's clock in one of this process's (an emulated cluster's may be fast)."""
    stop: threading.Event = field(default_factory=threading.Event)
    between_tries_s: float = BETWEEN_TRIES_S
    reason: str = ""
    """Why it was stopped."""
    _paused_until_s: float | None = None
    """When it goes on after the watchdog has stopped it, by Slurm's clock."""

    def run(self) -> int:
        """Cycle until stopped; the exit status. A dry run writes nothing to Slurm, and releases nothing.

        An unexpected error releases everything before it is raised; where that fails it is printed, and the status is another.
        After a single cycle live jobs keep their priorities.
        """
        with self.controller.directory.lock(), self._signals():
            notify("READY=1")
            self._recover()
            try:
                for line in warnings(self.controller.ready_policy().facts):
                    self.controller.say(line)
                return self._cycles()
            except Stop as stop:
                self.controller.say(str(stop), ERROR)
                return self._leave(str(stop), FAILED if isinstance(stop, CyclesFailed) else GAVE_UP)
            except BaseException:
                if self._leave("an unexpected error", FAILED) != NOT_RELEASED:
                    raise
                traceback.print_exc()
                return NOT_RELEASED

    def _cycles(self) -> int:
        """Cycle after cycle until stopped; the exit status. Raises Stop where it has a reason to stop by itself."""
        controller, failed, tries = self.controller, 0, 0
        watchdog = Watchdog(controller.config, controller.say)
        while not self.stop.is_set():
            started = time.monotonic()
            notify("WATCHDOG=1")
            try:
                self._cycle(watchdog)
                if tries:
                    controller.say("Slurm answers again")
                failed = tries = 0
            except Stop:
                raise
            except (RLTuneError, OSError, ValueError, RuntimeError) as error:
                if isinstance(error, SlurmUnavailable) and not self.once:
                    tries = self._wait_for_slurm(error, tries)
                    continue
                failed += 1
                if isinstance(error, ClockSet):
                    watchdog.restart()
                    if self._paused_until_s is not None:
                        self._paused_until_s += error.jump_s
                of = "" if self.once else f" ({failed} of {controller.config.max_failures})"
                trace = "" if isinstance(error, RLTuneError | OSError) else f"\n{traceback.format_exc().rstrip()}"
                controller.say(f"cycle failed{of}: {error}{trace}", ERROR if self.once else WARNING)
                if failed >= controller.config.max_failures and not self.once:
                    raise CyclesFailed(f"{failed} cycles in a row failed, the last one: {error}") from None
            if self.once:
                controller.mark_stopped()
                return FAILED if failed else DONE
            ended = time.monotonic()  # a Slurm that is slow gets as long a rest
            self._wait(max(started + controller.config.interval_s / self.speed, 2 * ended - started))
        return self._leave(self.reason or "stopped", DONE)

    def _wait_for_slurm(self, error: Exception, tries: int) -> int:
        """Wait before Slurm is asked again, the longer the more ``tries`` there were; the number of tries then."""
        if not tries:
            self.controller.say(f"waiting for Slurm, which does not answer: {error}", WARNING)
        self._wait(time.monotonic() + min(self.between_tries_s * 2**tries, LONGEST_PAUSE_S))
        return min(tries + 1, 10)

    def _wait(self, until_s: float) -> None:
        """Wait for a time of the monotonic clock, or for a stop.

        In short waits: a signal that the system gives to another thread does not wake this one, where Python would
        handle it.
        """
        while (left_s := until_s - time.monotonic()) > 0:
            notify("WATCHDOG=1")
            if self.stop.wait(min(left_s, SIGNAL_CHECK_S)):
                return

    def _cycle(self, watchdog: Watchdog) -> None:
        """One cycle, and the watchdog's verdict: a reason to pause where priorities are written."""
        controller = self.controller
        try:
            done = controller.cycle()
        finally:
            if self._paused_until_s is not None and controller.has_jobs():  # requeued ones, or what was refused before
                controller.release_all("the watchdog's pause")
        controller.say(describe(done, controller.live))
        why = watchdog.cycle(controller.view)
        controller.metrics = dict(watchdog.metrics())
        if why and controller.live:
            self._pause(why)
        elif why and self._paused_until_s is None:
            controller.say(why, WARNING)
        # by a time that the cycle has checked
        if self._paused_until_s is not None and controller.view.now_s >= self._paused_until_s:
            controller.live, self._paused_until_s = True, None
            watchdog.restart()
            controller.say("the pause is over: priorities are written again")

    def _pause(self, why: str) -> None:
        """Release every job, and write nothing for a day; what Slurm does not take now, the cycles of the pause try again."""
        controller = self.controller
        self._leave(why, DONE)
        controller.live, self._paused_until_s = False, controller.clock() + PAUSE_S
        controller.say(f"paused for {PAUSE_S / 3600:g} h, or until it is started again: nothing is written", WARNING)

    def _recover(self) -> None:
        """Take over the jobs of an earlier controller, once Slurm answers; a dry run must not leave them so.

        Raises RLTuneError there, and where several jobs of several users are in the band that no controller of this directory
        put there: another one may be at work.
        """
        controller, band, tries = self.controller, self.controller.config.band, 0
        while True:
            try:
                owned, others = controller.jobs_at_start()
                break
            except SlurmUnavailable as error:
                if self.once or not controller.live:
                    raise
                tries = self._wait_for_slurm(error, tries)
                if self.stop.is_set():
                    return
        users = set(others.values())  # one alone can have lowered the priorities of all theirs
        second = len(others) >= SEVERAL and len(users) > 1
        if owned and not controller.live:
            raise RLTuneError(
                f"{controller.directory.assigned_path}: an earlier controller has left {len(owned)} jobs with its "
                "priorities; `rltune slurm release` releases them, `--live` goes on"
            )
        if second and controller.live:
            raise RLTuneError(
                f"{len(others)} waiting jobs have priorities of {band.low:,} to {band.high:,} that no controller of this "
                f"directory gave them (for example job {min(others)}): choose a `band` that Slurm's own priorities do not "
                "reach or, where a controller's list was lost, release them with `rltune slurm release --band`"
            )
        if owned:
            controller.say(f"going on with {len(owned)} jobs of an earlier controller")

    def _leave(self, why: str, status: int) -> int:
        """Release every job, again and again where Slurm does not answer; the exit status."""
        if not self.controller.live and self._paused_until_s is None:
            return status
        self.controller.mark_stopped()
        for k in range(TRIES):
            try:
                _, refused = self.controller.release_all(why)
                if not refused:
                    return status
                error: Exception = RLTuneError("; ".join(f"job {o.job}: {o.message}" for o in refused[:5]))
            except Exception as found:  # unexpected ones too: otherwise jobs keep their priorities
                error = found
            self.controller.say(f"could not release all jobs (try {k + 1} of {TRIES}): {error}", WARNING)
            if k + 1 < TRIES:
                time.sleep(self.between_tries_s)
        self.controller.say(
            "jobs may still have priorities or nodes of the controller's: `rltune slurm release` releases them once Slurm answers "
            "for them",
            ERROR,
        )
        return NOT_RELEASED

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Let SIGTERM, SIGINT and SIGHUP stop after the present cycle."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(number: int, frame: object) -> None:
            self.reason = f"stopped by {signal.Signals(number).name}"
            self.stop.set()

        before: dict[int, Callable[..., Any] | int | None] = {s: signal.signal(s, note) for s in STOPS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def describe(done: Cycle, live: bool) -> str:
    """A cycle in one line of ``key=value``; in a dry run also what would be written, and why jobs are left to Slurm."""
    change, release = ("changed", "released") if live else ("would_change", "would_release")
    text = f"cycle ranked={done.ranked} left={len(done.left)} running={done.running} {change}={done.changed} "
    text += f"refused={done.refused} {release}={done.released} "
    text += f"read_s={done.read_s:.2f} decide_s={done.decide_s:.2f} write_s={done.write_s:.2f}"
    lines = [*_first(done.faults), *done.notes, *_first(done.planned, ", in decisions.jsonl")]
    for why in () if live else sorted(set(done.left.values())):
        jobs = [job for job, reason in done.left.items() if reason == why]
        more = f" and {len(jobs) - SHOWN} more" if len(jobs) > SHOWN else ""
        lines.append(f"left to Slurm, {why}: {', '.join(map(str, jobs[:SHOWN]))}{more}")
    return text + "".join(f"\n  {line}" for line in lines)


def _first(lines: Sequence[str], where: str = "") -> list[str]:
    """The first lines, and how many more there are."""
    return [*lines[:SHOWN], *([f"and {len(lines) - SHOWN} more{where}"] if len(lines) > SHOWN else [])]
