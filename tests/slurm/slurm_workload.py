"""Jobs of every kind on an emulated cluster, for tests and for recording what Slurm says of them."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from rltune.slurm.emulate import Emulation, packages


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


def many_kinds(slurm: Emulation) -> dict[str, int]:
    """Submit jobs of many kinds to the cluster of five nodes; the id of each by its name."""
    jobs: dict[str, int] = {}

    def add(name: str, *options: str) -> int:
        jobs[name] = submit(slurm, *options, name=name)
        return jobs[name]

    # nodes that are away: k80-2 drained while a job is on it, m40-1 down
    add("on-draining", "--gres=gpu:k80:1", "--nodelist=k80-2", "--time=30")
    wait_for(lambda: state(slurm, jobs["on-draining"]) == "RUNNING")
    slurm.set_node("k80-2", "DRAIN", "fan | broken")
    slurm.set_node("m40-1", "DOWN", "gone")
    # running: all P100s in use, a job's spread unevenly over two nodes; one K80 node without a free CPU
    add("uneven", "--gpus=5", "--nodes=2", "--nodelist=p100-[1-2]", "--time=1-02:03:04")
    wait_for(lambda: state(slurm, jobs["uneven"]) == "RUNNING")
    add("typed", "--gres=gpu:p100:1", "--cpus-per-task=8", "--mem=1000", "--time=90")
    add("untyped", "--gpus-per-node=1", "--constraint=p100", "--time=UNLIMITED", "--ntasks=2")
    add("one more", "--gres=gpu:p100", "--time=10")
    add("cpu-only", "--ntasks=3", "--time=45", "--mem-per-cpu=10", "--nodelist=p100-2")
    add("requeued", "--gres=gpu:1", "--nodelist=k80-1", "--requeue", "--time=20")
    running = ("typed", "untyped", "one more", "cpu-only", "requeued")
    wait_for(lambda: all(state(slurm, jobs[name]) == "RUNNING" for name in running))
    slurm.run("scontrol", "requeue", str(jobs["requeued"]))
    add("array running", "--array=1-2", "--gres=gpu:k80:1", "--nodelist=k80-1", "--time=10", "--cpus-per-task=8")
    wait_for(lambda: slurm.run("squeue", "-h", "-t", "R", "-o", "%j").count("array running") == 2)
    # waiting
    add("per-node", "--nodes=2", "--gpus-per-node=p100:4", "--ntasks-per-node=2", "--time=5")
    add("per-job", "--gpus=p100:6", "--nodes=2", "--time=5")
    add("per-job-untyped", "--gpus=5", "--time=5")
    add("per-task", "--ntasks=4", "--gpus-per-task=p100:1", "--time=5")
    add("per-socket", "--gpus-per-socket=p100:2", "--sockets-per-node=1", "--nodes=2", "--time=5")
    add("bare", "--gres=gpu", "--time=5", "--nodelist=k80-1")
    add("array", "--array=0-99%3", "--gres=gpu:p100:1", "--time=5", "--constraint=p100|k80")
    add("held", "--hold", "--gres=gpu:p100:1", "--time=5")
    add("dependent", f"--dependency=afterok:{jobs['typed']}", "--gres=gpu:p100:1", "--time=5")
    add("begin", "--begin=now+1day", "--gres=gpu:p100:1", "--time=5")
    add("whole nodes", "--exclusive", "--nodes=1", "--time=5", "--gres=gpu:p100:2")
    add("pipes | and spaces = odd\tname", "--gres=gpu:p100:3", "--time=5", "--comment=a|b JobState=RUNNING")
    add("ünïcödé", "--gres=gpu:p100:3", "--time=5")
    add("oversubscribing", "--oversubscribe", "--gres=gpu:p100:3", "--time=5")
    add("het", "--gres=gpu:p100:2", "--time=5", ":", "--ntasks=2", "--gres=gpu:k80:1")
    add("cancelled", "--hold", "--gres=gpu:p100:1", "--time=5")
    slurm.run("scancel", str(jobs["cancelled"]))
    wait_for(lambda: state(slurm, jobs["requeued"]) == "PENDING")
    time.sleep(2)
    return jobs
