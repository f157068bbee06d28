"""Whole nodes given by the controller (`exclusive: model`) on real daemons, where jobs may share nodes."""

from __future__ import annotations

import re
from pathlib import Path

from fake_slurm import BAND, assigned
from slurm_live import controller, priorities
from slurm_workload import state, submit, wait_for

from rltune.slurm.controller import Controller
from rltune.slurm.emulate import Emulation

SETTINGS = {"OverSubscribe": "YES:4"}
"""The partition lets jobs share nodes."""
ABOVE = BAND.high + 1_000_000


def shared(slurm: Emulation, job: int) -> str:
    """What Slurm says of a job's over-subscription."""
    found = re.search(r"OverSubscribe=(\w+)", slurm.run("scontrol", "show", "job", str(job)))
    assert found
    return found[1]


def of_two(slurm: Emulation) -> tuple[int, int]:
    """(A job of two P100s that waits although a node of four is idle; the one above it that it waits for, for which Slurm
    keeps both nodes of P100s until a job of two on p100-1 has ended)."""
    beside = submit(slurm, "--gres=gpu:p100:2", "--nodelist=p100-1", "--time=60")
    wait_for(lambda: state(slurm, beside) == "RUNNING")
    first = submit(slurm, "--nodes=2", "--gres=gpu:p100:4", "--time=60")
    slurm.run("scontrol", "update", f"jobid={first}", f"priority={ABOVE}")
    return submit(slurm, "--gres=gpu:p100:2", "--time=600"), first


def ranking(slurm: Emulation, folder: Path) -> Controller:
    return controller(slurm, folder, exclusive="model", interference_slowdown=2.0)


def test_whole_nodes_are_given_and_taken_back(idle: Emulation, tmp_path: Path) -> None:
    job, first = of_two(idle)
    own, made = priorities(idle), ranking(idle, tmp_path)
    assert shared(idle, job) == "OK"
    done = made.cycle()
    assert (done.ranked, done.changed, done.refused) == (1, 1, 0) and first in done.left
    assert shared(idle, job) == "NO" and assigned(made)[job].exclusive and shared(idle, first) == "OK"
    assert made.cycle().changed == 0, "what is written once is not written again"
    assert made.release_all("test") == (1, []) and shared(idle, job) == "YES" and not assigned(made)
    wait_for(lambda: priorities(idle) == own)


def test_nobody_comes_beside_a_job_with_a_node_of_its_own(idle: Emulation, tmp_path: Path) -> None:
    job, first = of_two(idle)
    ranking(idle, tmp_path).cycle()
    idle.run("scancel", str(first))
    wait_for(lambda: state(idle, job) == "RUNNING")
    exclusive, beside = (submit(idle, "--gres=gpu:p100:1", f"--nodelist={node}") for node in ("p100-2", "p100-1"))
    wait_for(lambda: state(idle, beside) == "RUNNING")
    wait_for(lambda: idle.run("squeue", "-h", "-j", str(exclusive), "-o", "%T %r").strip() == "PENDING Resources")
