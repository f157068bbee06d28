"""Compressed time: Slurm's daemons, clients and jobs live on a clock that runs ``speed`` times as fast.

One `faketime` process holds the clock that all the others share (its start, in shared memory). munged and the database
stay on the true clock.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from rltune.errors import SlurmError
from rltune.slurm.emulate import packages
from rltune.slurm.pace import SPEED

FILE = "FAKETIME_TIMESTAMP_FILE"
CLOCK = ("LD_PRELOAD", "FAKETIME", "FAKETIME_SHARED", "FAKETIME_DONT_RESET", "FAKETIME_FMT", "FAKETIME_NO_CACHE",
         "FAKETIME_DONT_FAKE_MONOTONIC", FILE, SPEED)  # fmt: skip
"""Environment variables that make the clock."""


def without_clock(env: Mapping[str, str]) -> dict[str, str]:
    """An environment on the true clock."""
    return {name: value for name, value in env.items() if name not in CLOCK}


def settable(path: Path) -> dict[str, str]:
    """Environment variables of a clock that can be set while programs live on it: its offset stands in a file.

    As where an administrator sets a machine's clock, what has passed since the start (CLOCK_MONOTONIC) is not moved.
    Python's ``time.sleep`` fails on it (libfaketime 0.9.10): programs in Python stay on the true clock.
    """
    library = packages.faketime_library()
    if library is None:
        raise SlurmError(f"libfaketime: not found; install it: {packages.install_command([packages.CLOCK])}")
    return {"LD_PRELOAD": str(library), FILE: str(path), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def holder_command(speed: float) -> list[str]:
    """Command of the process that holds the clock: it starts now and runs ``speed`` times as fast."""
    return [packages.found("faketime"), "-m", "-f", f"+0 x{speed:g}", "sleep", "infinity"]


def of_holder(pid: int, speed: float, timeout_s: float = 5.0) -> dict[str, str]:
    """Environment variables of the clock that a holder has made, read from its child."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        for child in _children(pid):
            try:
                raw = Path(f"/proc/{child}/environ").read_bytes().decode(errors="surrogateescape")
            except OSError:
                continue
            env = dict(item.split("=", 1) for item in raw.split("\0") if "=" in item)
            if "FAKETIME_SHARED" in env and "LD_PRELOAD" in env:
                kept = {name: env[name] for name in CLOCK if name in env}
                return {**kept, "FAKETIME_DONT_RESET": "1", SPEED: f"{speed:g}"}
        time.sleep(0.02)
    raise SlurmError("faketime did not start: is /dev/shm there and writable?")


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
