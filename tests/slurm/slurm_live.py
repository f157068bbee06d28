"""Helpers for tests on emulated clusters: a controller, commands, faults, and queries about the queue."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fake_slurm
import pytest
from fake_slurm import BAND
from slurm_workload import state, wait_for

from rltune.slurm.client import Client
from rltune.slurm.controller import Controller
from rltune.slurm.emulate import Emulation


def controller(
    slurm: Emulation, folder: Path, client: Client | None = None, state: Path | None = None, **given: object
) -> Controller:
    """A live controller; what it says is in ``.said``."""
    given = {"eligible": {"partitions": ["all"]}, **given}
    made = fake_slurm.controller(client or slurm.client(), folder, state=state, **given)
    made.clock = time.time
    return made


def meanwhile(made: Controller, method: str, what: Callable[[], object], after: bool = False) -> None:
    """Let something happen just before (or ``after``) the next call of a method of the controller's client."""
    real = getattr(made.slurm, method)

    def called(*arguments: object) -> object:
        setattr(made.slurm, method, real)
        before = None if after else what()
        found = real(*arguments)
        return (found, what() if after else before)[0]

    setattr(made.slurm, method, called)


def kill(slurm: Emulation, *daemons: str, number: int = signal.SIGKILL) -> None:
    """End daemons by a signal: ``slurmctld``, ``slurmd p100-1``, ..."""
    for daemon in daemons:
        slurm._processes.kill(daemon, number)


def rltune(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Begin ``rltune slurm`` in a process of its own, with its output in a pipe."""
    argv = [sys.executable, "-c", "from rltune.cli import main; main()", "slurm", *map(str, arguments)]
    return subprocess.Popen(argv, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **options)


def on(slurm: Emulation, node: str) -> int:
    """The job that runs on a node."""
    return next(job.id for job in slurm.client().jobs().records if job.node_names == (node,))


def first_of_m40(slurm: Emulation, waiting: list[int]) -> int:
    """The job that starts once the M40 is free, once it has started."""
    slurm.run("scancel", str(on(slurm, "m40-1")))
    wait_for(lambda: any(state(slurm, job) == "RUNNING" for job in waiting))
    return next(job for job in waiting if state(slurm, job) == "RUNNING")


@contextmanager
def created(slurm: Emulation, *words: str) -> Iterator[None]:
    """What ``scontrol create`` makes of these words, for a while, at whose end no job is left."""
    slurm.run("scontrol", "create", *words)
    try:
        yield
    finally:
        for user in {job.user for job in slurm.client().jobs().records}:
            slurm.run("scancel", "--quiet", f"--user={user}")
        wait_for(lambda: not slurm.client().jobs().records)
        slurm.run("scontrol", "delete", next(word for word in words if "Name=" in word))


def become(user: str) -> list[str]:
    """The beginning of a command that another user runs; skips where this one may not."""
    if os.geteuid() or shutil.which("setpriv") is None:
        pytest.skip("to run commands as another user takes root, and setpriv")
    there = pwd.getpwnam(user)
    return ["setpriv", f"--reuid={there.pw_uid}", f"--regid={there.pw_gid}", "--clear-groups"]


def stand_in(slurm: Emulation, folder: Path, *names: str, script: str) -> Client:
    """A client for which some of Slurm's commands are a shell script, in which REAL is the command."""
    folder.mkdir()
    for name in names:
        real = shutil.which(name, path=slurm.env["PATH"])
        (folder / name).write_text(f"#!/bin/sh\n{script.replace('REAL', str(real))}\n")
        (folder / name).chmod(0o755)
    return Client(slurm.conf, 10.0, {**slurm.env, "PATH": f"{folder}:{slurm.env['PATH']}"})


def priorities(slurm: Emulation) -> dict[int, int]:
    """Waiting job → its priority."""
    return {job.id: job.priority for job in slurm.client().jobs().records if job.state == "PENDING"}


def all_in_band(slurm: Emulation) -> bool:
    """Whether every waiting job has a priority of the controller's band."""
    return all(priority in BAND for priority in priorities(slurm).values())


def none_in_band(slurm: Emulation) -> bool:
    """Whether no waiting job has a priority of the controller's band."""
    return not any(priority in BAND for priority in priorities(slurm).values())
