"""Run the controller: cycle after cycle until it is stopped, or has a reason to stop by itself."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rltune.errors import RLTuneError
from rltune.slurm.controller import ClockSet, Controller, Cycle, Stop
from rltune.slurm.watchdog import Watchdog

DONE, FAILED, NOT_RELEASED, GAVE_UP = 0, 1, 3, 4
"""Exit statuses: stopped; cycles failed, or an unexpected error; jobs may still have a priority of the controller's; stopped
by the watchdog, or because policy or list cannot be used. Restarted after the last it would write every priority again and
stop again: somebody has to look first."""
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
AWAKE_S = 0.5
"""Longest wait between cycles without looking for a signal."""
TRIES = 5
"""How often a release is tried where Slurm does not answer."""
BETWEEN_TRIES_S = 5.0
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

    def run(self) -> int:
        """Cycle until stopped; the exit status. A dry run writes nothing to Slurm, and releases nothing.

        An unexpected error releases everything before it is raised; where that fails it is printed, and the status tells.
        After a single cycle live jobs keep their priorities.
        """
        with self.controller.directory.lock(), self._signals():
            self._recover()
            try:
                for line in warnings(self.controller.policy_facts()):
                    self.controller.say(line)
                return self._cycles()
            except Stop as stop:
                self.controller.say(str(stop))
                return self._leave(str(stop), FAILED if isinstance(stop, CyclesFailed) else GAVE_UP)
            except BaseException:
                if self._leave("an unexpected error", FAILED) != NOT_RELEASED:
                    raise
                traceback.print_exc()
                return NOT_RELEASED

    def _cycles(self) -> int:
        """Cycle after cycle until stopped; the exit status. Raises Stop where it has a reason to stop by itself."""
        controller, failed = self.controller, 0
        watchdog = Watchdog(controller.config, controller.say)
        while not self.stop.is_set():
            started = time.monotonic()
            try:
                self._cycle(watchdog)
                failed = 0
            except Stop:
                raise
            except (RLTuneError, OSError, ValueError, RuntimeError) as error:
                failed += 1
                if isinstance(error, ClockSet):
                    watchdog.restart()
                of = "" if self.once else f" ({failed} of {controller.config.max_failures})"
                trace = "" if isinstance(error, RLTuneError | OSError) else f"\n{traceback.format_exc().rstrip()}"
                controller.say(f"cycle failed{of}: {error}{trace}")
                if failed >= controller.config.max_failures:
                    raise CyclesFailed(f"{failed} cycles in a row failed, the last one: {error}") from None
            if self.once:
                controller.mark_stopped()
                return FAILED if failed else DONE
            self._wait(started + controller.config.interval_s / self.speed)
        return self._leave(self.reason or "stopped", DONE)

    def _wait(self, until_s: float) -> None:
        """Wait for a time of the monotonic clock, or for a stop.

        In short waits: a signal that the system gives to another thread does not wake this one, where Python would
        handle it.
        """
        while (left_s := until_s - time.monotonic()) > 0:
            if self.stop.wait(min(left_s, AWAKE_S)):
                return

    def _cycle(self, watchdog: Watchdog) -> None:
        """One cycle, and the watchdog's verdict: a reason to stop where priorities are written."""
        controller = self.controller
        done = controller.cycle()
        controller.say(describe(done, controller.live))
        assert controller.view is not None
        why = watchdog.cycle(controller.view, controller.jobs)
        controller.metrics = dict(watchdog.metrics())
        if why and controller.live:
            raise Stop(why)
        if why:
            controller.say(why)

    def _recover(self) -> None:
        """Take over the jobs of an earlier controller; a dry run must not leave them so.

        Raises RLTuneError there, and where jobs from no controller are in the band: they could not be distinguished.
        """
        controller = self.controller
        band, (owned, others) = controller.config.band, controller.from_before()
        if owned and not controller.live:
            raise RLTuneError(
                f"{controller.directory.assigned_path}: an earlier controller has left {len(owned)} jobs with its "
                "priorities; `rltune slurm release` releases them, `--live` goes on"
            )
        if others and controller.live:
            raise RLTuneError(
                f"{len(others)} waiting jobs have priorities of {band.low:,} to {band.high:,} that no controller of this "
                f"directory gave them (for example job {min(others)}): choose a `band` that Slurm's own priorities do not "
                "reach or, where a controller's list was lost, release them with `rltune slurm release --band`"
            )
        if owned:
            controller.say(f"going on with {len(owned)} jobs of an earlier controller")

    def _leave(self, why: str, status: int) -> int:
        """Release every job, again and again where Slurm does not answer; the exit status."""
        if not self.controller.live:
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
            self.controller.say(f"could not release all jobs (try {k + 1} of {TRIES}): {error}")
            if k + 1 < TRIES:
                time.sleep(self.between_tries_s)
        self.controller.say(
            "jobs may still have priorities of the controller's: `rltune slurm release` releases them once Slurm answers"
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

        before: dict[int, Callable | int | None] = {s: signal.signal(s, note) for s in STOPS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def describe(done: Cycle, live: bool) -> str:
    """A cycle in one line; in a dry run also what would be written, and why jobs are left to Slurm."""
    text = f"{done.ranked} ranked, {len(done.left)} left to Slurm, {done.running} running; "
    text += f"{'changed' if live else 'would change'} {done.changed}"
    text += f", refused {done.refused}" if done.refused else ""
    text += f", {'released' if live else 'release'} {done.released}" if done.released else ""
    text += f"; read {done.read_s:.2f} s, decided {done.decide_s:.2f} s, wrote {done.write_s:.2f} s"
    lines = [*done.faults, *done.notes, *done.planned[:SHOWN]]
    if len(done.planned) > SHOWN:
        lines.append(f"and {len(done.planned) - SHOWN} more, in decisions.jsonl")
    for why in () if live else sorted(set(done.left.values())):
        jobs = [job for job, reason in done.left.items() if reason == why]
        more = f" and {len(jobs) - SHOWN} more" if len(jobs) > SHOWN else ""
        lines.append(f"left to Slurm, {why}: {', '.join(map(str, jobs[:SHOWN]))}{more}")
    return text + "".join(f"\n  {line}" for line in lines)
