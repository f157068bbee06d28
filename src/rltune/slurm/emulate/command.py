"""Run one command, or a shell, inside an emulated cluster, which ends with it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

from rltune.slurm.emulate.emulation import Emulation
from rltune.slurm.emulate.supervisor import adopt_orphans, end_all

GRACE_S = 10.0
"""How long a command may take to end once this process was asked to end."""
NOT_FOUND = 127
"""A shell's exit status for a command that is not there."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_inside(slurm: Emulation, argv: Sequence[str]) -> int:
    """Start the cluster, run a command in it (none: a shell), end the cluster; the command's exit status.

    A signal to this process goes to the command, which has ten seconds to end; then the cluster ends too. Processes
    that the command leaves behind are ended. For a process of its own: it takes over signals and orphans.
    """
    inside = _Inside(slurm)
    adopt_orphans()
    before = {number: signal.signal(number, inside.on_signal) for number in SIGNALS}
    try:
        with slurm:
            return inside.run(list(argv))
    finally:
        inside.phase = "end"
        end_all()
        for number, handler in before.items():
            signal.signal(number, handler)


class _Inside:
    """The command, and what to do about signals while the cluster starts, while it runs, and while it ends."""

    def __init__(self, slurm: Emulation) -> None:
        self.slurm = slurm
        self.phase = "start"
        self.process: subprocess.Popen[bytes] | None = None
        self.kill_at: float | None = None

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.phase == "start":
            self.phase = "end"
            raise SystemExit(128 + number)
        if self.phase == "run" and self.process is not None:
            # a terminal's Ctrl-C has reached the command already, which may handle it
            if number != signal.SIGINT or not sys.stdin.isatty():
                self.process.send_signal(number)
                self.kill_at = self.kill_at or time.monotonic() + GRACE_S

    def run(self, argv: list[str]) -> int:
        shell = not argv
        argv = argv or [os.environ.get("SHELL") or "/bin/sh"]
        if shutil.which(argv[0], path=self.slurm.env["PATH"]) is None:
            self.phase = "end"
            self.slurm.say(f"{argv[0]}: no such command")
            return NOT_FOUND
        if shell:
            self.slurm.say(f"a shell in it: sbatch, squeue, ...; exit ends the cluster (SLURM_CONF={self.slurm.conf})")
        wrapper = ["setpriv", "--pdeathsig", "TERM", "--"] if shutil.which("setpriv") else []
        self.process = subprocess.Popen([*wrapper, *argv], env=self.slurm.env)
        self.phase = "run"
        seen: set[str] = set()
        while True:
            try:
                status = self.process.wait(0.5)
                break
            except subprocess.TimeoutExpired:
                self._watch(seen)
                if self.kill_at is not None and time.monotonic() > self.kill_at:
                    self.process.kill()
        self.phase = "end"
        end_all(keep=self.slurm.supervisor)
        return status if status >= 0 else 128 - status

    def _watch(self, seen: set[str]) -> None:
        """Say once of each daemon that it has ended."""
        for name, status in self.slurm.ended().items():
            if name not in seen:
                seen.add(name)
                self.slurm.say(f"{name} has ended with status {status}; its log: {self.slurm.log_of(name)}")
