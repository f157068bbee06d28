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

CLOCK = ("LD_PRELOAD", "FAKETIME", "FAKETIME_SHARED", "FAKETIME_DONT_RESET", "FAKETIME_FMT", SPEED)
"""Environment variables that make the clock."""


def without_clock(env: Mapping[str, str]) -> dict[str, str]:
    """An environment on the true clock."""
    return {name: value for name, value in env.items() if name not in CLOCK}


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
