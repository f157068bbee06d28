"""A small cluster of two GPU types, one busy for a while, and a job that may wait for it."""

from functools import partial
from pathlib import Path
from typing import Any

from fake_slurm import FakeSlurm, controller, job, node, running

from rltune.slurm.controller import Controller
from rltune.slurm.records import SlurmJob

SPEEDS = {"P100": 4.0, "K80": 1.0}
LIMIT_S = 3600.0
"""Of job 10: on a K80; on a P100 it takes a quarter of that."""
SOON_S, LATE_S = 1000.0, 10_000.0
"""After which the P100s are free: the K80 is the better choice only after 2,700 s."""
K80S, P100S = frozenset({"k80-1", "k80-9"}), frozenset({"p100-1"})


def until(rest_s: float, **given: Any) -> SlurmJob:
    """A job that has run for 500 s on all P100s, and ends after ``rest_s``."""
    return running(1, "p100-1", gpus=4, time_limit_s=500 + rest_s, asked_type="p100", gpu_type="p100", **given)


def cluster(rest_s: float = SOON_S, **given: Any) -> FakeSlurm:
    """Four P100s in use for a while, two free K80s, a node of K80s that is down, one elsewhere; job 10 waits."""
    machines = [
        node("p100-1", used=4, features=("p100", "fast")),
        node("k80-1", "k80", 2, features=("k80",)),
        node("k80-9", "k80", 2, features=("k80",), state=frozenset({"DOWN"})),
        node("k80-x", "k80", 2, partitions=("other",)),
    ]
    return FakeSlurm({1: until(rest_s), 10: job(10, time_limit_s=LIMIT_S, **given)}, machines)


made = partial(controller, speeds=SPEEDS)
"""A live controller that decides GPU types."""


def restricted(folder: Path) -> tuple[FakeSlurm, Controller]:
    """Job 10 is to wait for a P100: the K80s are excluded."""
    slurm = cluster()
    control = made(slurm, folder)
    control.cycle()
    assert slurm.queue[10].excluded == K80S
    return slurm, control
