"""The supervisor's client: start daemons, query their states, end them."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rltune.errors import ClusterDied, SlurmError
from rltune.slurm.emulate import clock, supervisor


class Processes:
    """Daemons under a supervisor of their own, which ends them all when this process ends, however it does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls = 0
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", supervisor.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=clock.without_clock(os.environ),
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The supervisor's process id."""
        return self._supervisor.pid

    def start(self, name: str, argv: Sequence[str | Path], env: Mapping[str, str], log: Path) -> int:
        """Start a daemon in the foreground and return its process id; its output is appended to ``log``."""
        return self._ask("start", name, [str(word) for word in argv], dict(env), str(log))

    def kill(self, name: str, number: int, wait_s: float = 10.0) -> int | None:
        """Send a daemon a signal and wait for its end: its exit status, and :meth:`states` has it no more; None when it
        does not end."""
        return self._ask("kill", name, int(number), wait_s)

    def states(self) -> dict[str, int | None]:
        """Each daemon's exit status, None while it runs."""
        return self._ask("states")

    def remove_at_end(self, *paths: Path | str) -> None:
        """Files and folders to remove once all daemons have ended, also when this process is killed."""
        self._ask("remove_at_end", *map(str, paths))

    def end(self, timeout_s: float = 120.0) -> None:
        """End every daemon and what they started; the files of ten thousand jobs take a while to remove.

        Raises SlurmError where that is not done after ``timeout_s``; the supervisor goes on with it.
        """
        with self._lock:
            try:
                self._supervisor.communicate(timeout=timeout_s)  # closes its input; what it no longer reads is no error
            except subprocess.TimeoutExpired:
                raise SlurmError(
                    f"the emulated cluster's supervisor (process {self.pid}) is still ending daemons and "
                    f"removing their files after {timeout_s:g} s; it goes on by itself"
                ) from None

    def _ask(self, call: str, *arguments: Any) -> Any:
        """What a method of the supervisor returns; the answer to a call that a signal broke off before is passed over."""
        to, back = self._supervisor.stdin, self._supervisor.stdout
        assert to is not None and back is not None
        with self._lock:
            self._calls += 1
            request = {"number": self._calls, "call": call, "arguments": arguments}
            try:
                to.write(json.dumps(request) + "\n")
                to.flush()
                while (reply := json.loads(back.readline()))["number"] != self._calls:
                    pass
            except (OSError, ValueError):  # no line is no JSON
                raise ClusterDied(
                    "the emulated cluster's supervisor has ended: its daemons are gone; start it again"
                ) from None
        if "error" in reply:
            raise SlurmError(f"the emulated cluster: {reply['error']}")
        return reply["is"]
