"""The controller at work: cycle after cycle until it is told to stop, or had better stop by itself."""

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
from rltune.slurm.shadow import Watchdog

DONE, FAILED, NOT_HANDED_BACK, GAVE_UP = 0, 1, 3, 4
"""Exit statuses: told to stop; cycles failed, or an error that was not foreseen; jobs may still have a priority of the
controller's; stopped by the watchdog, or for a policy or a list that cannot be used. Begun anew after the last it would write
every priority again, and stop again: somebody has to look first."""
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
AWAKE_S = 0.5
"""How long a wait between cycles is at most, before it is seen whether a signal has come."""
TRIES = 5
"""Times that handing back is tried where Slurm does not answer."""
BETWEEN_TRIES_S = 5.0
SHOWN = 20
"""Most lines of a dry run that say what would be written; all are in its decisions.jsonl."""


def doubts(facts: Mapping[str, Any]) -> list[str]:
    """What of a policy's training speaks against its use on a live queue: lines for who switches it on."""
    cell, found = facts.get("cell") or {}, []
    estimate = cell.get("estimate", "requested")
    if estimate != "requested":
        found.append(
            f"note: the policy was trained with run times estimated as {estimate}; here it is shown the users' time "
            "limits (`estimate: [requested]` trains with those)"
        )
    if facts.get("learned") is False:
        found.append("note: on validation the policy was not better than what it started from; a rule does as well")
    if cell:
        found.append(
            f"the policy was trained on {cell['trace']} for the cluster {cell['cluster']}: on another cluster it "
            "ranks, but nothing says how well"
        )
    return found


class CyclesFailed(Stop):
    """As many cycles in a row failed as may."""


@dataclass
class Service:
    """Runs a controller."""

    controller: Controller
    once: bool = False
    speed: float = 1.0
    """Seconds of Slurm's clock in one of ours (an emulated cluster's may be fast)."""
    stop: threading.Event = field(default_factory=threading.Event)
    between_tries_s: float = BETWEEN_TRIES_S
    said: str = ""
    """Why it was told to stop."""

    def run(self) -> int:
        """Cycle until told to stop; the exit status. In a dry run nothing is written to Slurm, so nothing handed back.

        An error that is not foreseen hands everything back before it is raised; where that fails it is printed, and the
        status says so. After a single cycle live jobs keep their priorities.
        """
        with self.controller.folder.lock(), self._signals():
            self._recover()
            try:
                for line in doubts(self.controller.trained()):
                    self.controller.say(line)
                return self._cycles()
            except Stop as stop:
                self.controller.say(str(stop))
                return self._leave(str(stop), FAILED if isinstance(stop, CyclesFailed) else GAVE_UP)
            except BaseException:
                if self._leave("an error that was not foreseen", FAILED) != NOT_HANDED_BACK:
                    raise
                traceback.print_exc()
                return NOT_HANDED_BACK

    def _cycles(self) -> int:
        """Cycle after cycle until told to stop; the exit status. Raises Stop where it had better stop by itself."""
        controller, failed = self.controller, 0
        watchdog = Watchdog(controller.config, controller.say)
        while True:
            if self.stop.is_set():
                return self._leave(self.said or "told to stop", DONE)
            began = time.monotonic()
            try:
                self._cycle(watchdog)
                failed = 0
            except Stop:
                raise
            except (RLTuneError, OSError, ValueError, RuntimeError) as error:
                failed += 1
                if isinstance(error, ClockSet):
                    watchdog.begin_anew()
                of = "" if self.once else f" ({failed} of {controller.config.failures})"
                trace = "" if isinstance(error, RLTuneError | OSError) else f"\n{traceback.format_exc().rstrip()}"
                controller.say(f"cycle failed{of}: {error}{trace}")
                if failed >= controller.config.failures:
                    raise CyclesFailed(f"{failed} cycles in a row failed, the last one: {error}") from None
            if self.once:
                controller.gone()
                return FAILED if failed else DONE
            self._wait(began + controller.config.interval_s / self.speed)

    def _wait(self, until_s: float) -> None:
        """Wait for a moment of the monotonic clock, or for being told to stop.

        In short waits: a signal that the system gives to another thread does not wake this one, where Python would
        handle it.
        """
        while (left_s := until_s - time.monotonic()) > 0:
            if self.stop.wait(min(left_s, AWAKE_S)):
                return

    def _cycle(self, watchdog: Watchdog) -> None:
        """One cycle, and what the watchdog makes of it: a reason to stop where priorities are written."""
        controller = self.controller
        done = controller.cycle()
        controller.say(told(done, controller.live))
        assert controller.view is not None
        why = watchdog.cycle(controller.view, controller.jobs)
        controller.figures = dict(watchdog.figures())
        if why and controller.live:
            raise Stop(why)
        if why:
            controller.say(why)

    def _recover(self) -> None:
        """Jobs that an earlier controller touched are this one's now; a dry run must not leave them so.

        Raises RLTuneError there, and where jobs nobody has touched are in the band: which are whose could not be told.
        """
        controller = self.controller
        band, (mine, others) = controller.config.band, controller.left_over()
        if mine and not controller.live:
            raise RLTuneError(
                f"{controller.folder.touched_path}: an earlier controller has left {len(mine)} jobs with its "
                "priorities; `rltune slurm release` hands them back, `--live` goes on"
            )
        if others and controller.live:
            raise RLTuneError(
                f"{len(others)} waiting jobs have priorities of {band.low:,} to {band.high:,} that no "
                f"controller of this folder gave them (job {min(others)} for one): choose a `band` that "
                "Slurm's own priorities do not reach, or, where a controller's list was lost, hand them "
                "back with `rltune slurm release --band`"
            )
        if mine:
            controller.say(f"going on with {len(mine)} jobs that an earlier controller has touched")

    def _leave(self, why: str, status: int) -> int:
        """Hand back, again and again where Slurm does not answer; the exit status."""
        if not self.controller.live:
            return status
        self.controller.gone()
        for k in range(TRIES):
            try:
                _, refused = self.controller.hand_back(why)
                if not refused:
                    return status
                error: Exception = RLTuneError("; ".join(f"job {o.job}: {o.message}" for o in refused[:5]))
            except Exception as found:  # one that was not foreseen, too: jobs are left with priorities otherwise
                error = found
            self.controller.say(f"could not hand all jobs back (try {k + 1} of {TRIES}): {error}")
            if k + 1 < TRIES:
                time.sleep(self.between_tries_s)
        self.controller.say(
            "jobs may still have priorities of the controller's: `rltune slurm release` hands them back "
            "once Slurm answers"
        )
        return NOT_HANDED_BACK

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGTERM, SIGINT and SIGHUP let the cycle end and stop then."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(number: int, frame: object) -> None:
            self.said = f"stopped by {signal.Signals(number).name}"
            self.stop.set()

        before: dict[int, Callable | int | None] = {s: signal.signal(s, note) for s in STOPS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def told(done: Cycle, live: bool) -> str:
    """A cycle in one line; of a dry run also what would be written, and why jobs are left to Slurm."""
    verb = "changed" if live else "would change"
    text = f"{done.ranked} ranked, {len(done.left)} left to Slurm, {done.running} running; {verb} {done.changed}"
    text += f", refused {done.refused}" if done.refused else ""
    text += f", {'released' if live else 'release'} {done.released}" if done.released else ""
    text += f"; read {done.read_s:.2f} s, decided {done.decide_s:.2f} s, wrote {done.write_s:.2f} s"
    lines = [*done.faults, *done.notes, *done.would[:SHOWN]]
    if len(done.would) > SHOWN:
        lines.append(f"and {len(done.would) - SHOWN} more, in decisions.jsonl")
    for why in () if live else sorted(set(done.left.values())):
        jobs = [job for job, reason in done.left.items() if reason == why]
        more = f" and {len(jobs) - SHOWN} more" if len(jobs) > SHOWN else ""
        lines.append(f"left to Slurm, {why}: {', '.join(map(str, jobs[:SHOWN]))}{more}")
    return text + "".join(f"\n  {line}" for line in lines)
