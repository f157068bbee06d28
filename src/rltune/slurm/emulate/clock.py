"""Compressed time: Slurm's daemons, clients and jobs use a clock that runs ``speed`` times as fast.

One `faketime` process holds the clock that all the others share (its start, in shared memory). munged and the database
use the true clock.

Slurm's daemons have threads and fork, and libfaketime (0.9.10) has locks. Three things prevent deadlocks:

- The library for programs with threads (``faketime -m``) reads the clock under a mutex. A process that is forked while
  another thread has the mutex, as slurmstepd forks a job's, would find it locked forever. So the library without threads is
  used; threads then write the same values twice.
- Files have their true dates (NO_FAKE_STAT). Otherwise each ``stat`` would take a semaphore that all processes share, and
  a process that stops while it has the semaphore would stop the cluster.
- A starting process takes that semaphore too, and can be killed just then. The semaphore guards the clock's start, which the
  holder has written before anybody reads it: so there are permits for all (:func:`shared_by_all`).
"""

import ctypes
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from rltune.errors import SlurmError
from rltune.slurm.client import SPEED
from rltune.slurm.emulate import packages

FILE = "FAKETIME_TIMESTAMP_FILE"
HOLDER_S = 5.0
"""Longest time that the holder takes to make the clock."""
PERMITS = 1 << 16
"""More than the processes that can have the semaphore, or be killed while they have it."""


def is_clock(name: str) -> bool:
    """Whether an environment variable makes the clock."""
    return name.startswith("FAKETIME") or name in ("LD_PRELOAD", "NO_FAKE_STAT", SPEED)


def without_clock(env: Mapping[str, str]) -> dict[str, str]:
    """An environment on the true clock."""
    return {name: value for name, value in env.items() if not is_clock(name)}


def settable(holder: Mapping[str, str], path: Path) -> dict[str, str]:
    """Environment variables of a clock that can be set while programs use it: its offset is in a file. ``holder``: the
    variables of a clock of speed 1 (:func:`of_holder`).

    As where an administrator sets a machine's clock, what has passed since the start (CLOCK_MONOTONIC) is not moved.
    Python's ``time.sleep`` fails on it (libfaketime 0.9.10): programs in Python stay on the true clock.
    """
    return {
        "LD_PRELOAD": holder["LD_PRELOAD"],
        "FAKETIME_SHARED": holder["FAKETIME_SHARED"],
        FILE: str(path),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }


def files_of(pid: int) -> tuple[str, str]:
    """What a holder leaves in shared memory where it is killed."""
    return f"/dev/shm/faketime_shm_{pid}", f"/dev/shm/sem.faketime_sem_{pid}"


def semaphore(pid: int) -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    """The C library, and the semaphore of a holder's clock. Raises SlurmError where there is none."""
    library = ctypes.CDLL(None, use_errno=True)
    library.sem_open.restype = ctypes.c_void_p
    opened = ctypes.c_void_p(library.sem_open(f"/faketime_sem_{pid}".encode(), 0))
    if opened.value is None:
        raise SlurmError(f"faketime's semaphore {files_of(pid)[1]}: {os.strerror(ctypes.get_errno())}")
    return library, opened


def shared_by_all(pid: int) -> None:
    """Give the semaphore of a holder's clock permits for all. Raises SlurmError where there is none."""
    library, opened = semaphore(pid)
    for _ in range(PERMITS):
        library.sem_post(opened)
    library.sem_close(opened)


def holder_command(speed: float) -> list[str]:
    """Command of the process that holds the clock: it starts now and runs ``speed`` times as fast."""
    return [packages.found("faketime"), "-f", f"+0 x{speed:g}", "sleep", "infinity"]


def of_holder(pid: int, speed: float) -> dict[str, str]:
    """Environment variables of the clock that a holder has made, read from its child; the clock is ready for all."""
    deadline = time.monotonic() + HOLDER_S
    while time.monotonic() < deadline:
        with suppress(psutil.Error):
            for env in [child.environ() for child in psutil.Process(pid).children()]:
                if "FAKETIME_SHARED" in env and "LD_PRELOAD" in env:
                    kept = {name: value for name, value in env.items() if is_clock(name)}
                    shared_by_all(pid)
                    return {**kept, "FAKETIME_DONT_RESET": "1", "NO_FAKE_STAT": "1", SPEED: f"{speed:g}"}
        time.sleep(0.02)
    raise SlurmError("faketime did not start: is /dev/shm there and writable?")
