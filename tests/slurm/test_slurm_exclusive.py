"""Whole nodes given by the controller (`exclusive: model`) on real daemons, where jobs may share nodes."""

from __future__ import annotations

from pathlib import Path

from fake_slurm import BAND, assigned
from slurm_live import controller, priorities
from slurm_workload import state, submit, wait_for

from rltune.slurm.emulate import Emulation

SETTINGS = {"OverSubscribe": "YES:4"}
"""The partition lets jobs share nodes."""
ABOVE = BAND.high + 1_000_000


def shared(slurm: Emulation, job: int) -> str:
    """What Slurm says of a job's over-subscription."""
    return slurm.run("squeue", "-h", "-j", str(job), "-o", "%h").strip()


def test_whole_nodes_are_given_and_released(idle: Emulation, tmp_path: Path) -> None:
    """A job of two P100s waits although a node of four is idle: Slurm keeps both nodes for the one above it, until a job of
    two on p100-1 has ended."""
    other = submit(idle, "--gres=gpu:p100:2", "--nodelist=p100-1", "--time=60")
    wait_for(lambda: state(idle, other) == "RUNNING")
    first = submit(idle, "--nodes=2", "--gres=gpu:p100:4", "--time=60")
    idle.run("scontrol", "update", f"jobid={first}", f"priority={ABOVE}")
    job = submit(idle, "--gres=gpu:p100:2", "--time=600")
    computed, made = priorities(idle), controller(idle, tmp_path, exclusive="model", interference_slowdown=2.0)
    assert shared(idle, job) == "OK"
    done = made.cycle()
    assert (done.ranked, done.changed, done.refused) == (1, 1, 0) and first in done.left
    assert shared(idle, job) == "NO" and assigned(made)[job].exclusive and shared(idle, first) == "OK"
    assert made.cycle().changed == 0, "what is written once is not written again"
    assert made.release_all("test") == (1, []) and shared(idle, job) == "YES" and not assigned(made)
    wait_for(lambda: priorities(idle) == computed)
