"""Submit jobs to an emulated cluster, and wait for their states."""

import time
from collections.abc import Callable

import pytest

from rltune.config import load_cluster, project_root
from rltune.slurm.emulate import Emulation, packages

DEPLOYMENT = load_cluster("deployment", project_root())
"""The five nodes of paper §5.6."""


def need(accounting: bool = False, speed: float = 1.0, settable: bool = False) -> None:
    """Skip the test where packages are absent."""
    if lacking := packages.missing(accounting, speed, settable):
        pytest.skip(f"not installed; as root: {packages.install_command(lacking)}")


def submit(slurm: Emulation, *options: str, name: str = "job", sleep_s: int = 600) -> int:
    """Submit a job that sleeps; its id."""
    argv = ("sbatch", "--parsable", "--chdir=/", "--output=/dev/null", f"--job-name={name}", *options)
    return int(slurm.run(*argv, stdin=f"#!/bin/sh\nsleep {sleep_s}\n").strip().split(";")[0])


def wait_for(what: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Wait until something is so. Raises AssertionError when it does not become so."""
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.1)


def state(slurm: Emulation, job: int) -> str:
    """A job's state in squeue's word."""
    return slurm.run("squeue", "-h", "-j", str(job), "-o", "%T").strip()


def wait_behind(slurm: Emulation) -> list[int]:
    """Twelve jobs that wait, behind five that take every GPU of the cluster of five nodes."""
    full = [submit(slurm, f"--gres=gpu:{gpus}") for gpus in (4, 4, 2, 2, 1)]
    wait_for(lambda: all(state(slurm, job) == "RUNNING" for job in full))
    sizes = ["--gres=gpu:1", "--gres=gpu:p100:2", "--gres=gpu:p100:4", "--gres=gpu:k80:1"]
    return [submit(slurm, sizes[k % 4], f"--time={10 + k}") for k in range(12)]
