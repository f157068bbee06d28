"""What users and operators do to the controller on real daemons: it keeps running, and leaves no job behind."""

import subprocess
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest
import slurm_live
from fake_slurm import BAND, assigned, cycled, serve, write_policy
from slurm_live import all_in_band, become, created, kill, meanwhile, none_in_band, on, priorities
from slurm_workload import state, wait_for

from rltune.slurm.controller import Controller, Stop
from rltune.slurm.emulate import Emulation
from rltune.slurm.release import SAVED_S
from rltune.slurm.service import DONE, Service

SETTINGS = {"PriorityWeightPartition": "10000000"}
"""Slurm's own priorities are above 10,000,000."""
USER = "nobody"
"""A user that every Debian has, without any rights in Slurm."""
BELOW = {"partitions": ["all"], "priority_below": 4_294_967_293}
"""Slurm's own priorities are above the band here, and those that users can lower into it."""


@pytest.fixture(autouse=True)
def without_users_jobs(slurm: Emulation) -> Iterator[None]:
    """Nothing of USER's is left for the next test."""
    yield
    slurm.run("scancel", "--quiet", f"--user={USER}")


controller = partial(slurm_live.controller, eligible=BELOW)
"""A live controller of this cluster; what it says is in ``.said``."""


def as_user(slurm: Emulation, *argv: str, stdin: str = "") -> str:
    """Run one of Slurm's commands as USER; what it says, errors too."""
    given = {"env": slurm.env, "cwd": "/", "input": stdin}
    done = subprocess.run([*become(USER), *argv], text=True, capture_output=True, check=False, **given)
    return done.stdout + done.stderr


def of_user(slurm: Emulation, *options: str, sleep_s: int = 600) -> int:
    """A job of USER; its id."""
    argv = ("sbatch", "--parsable", "--chdir=/", "--output=/dev/null", *options)
    return int(as_user(slurm, *argv, stdin=f"#!/bin/sh\nsleep {sleep_s}\n").strip().split(";")[0])


@pytest.fixture
def users_jobs(slurm: Emulation, waiting: list[int]) -> list[int]:
    """Three more jobs that wait, of USER."""
    return [of_user(slurm, "--gres=gpu:1", "--time=5") for _ in range(3)]


def reported(made: Controller, what: str) -> int:
    """How many messages have these words."""
    return sum(what in line for line in made.said)  # type: ignore[attr-defined]


def test_an_ended_job_that_its_owner_requeues(slurm, waiting, tmp_path):
    """It comes back with the controller's priority when it has long been off the queue; so does one that is held then."""
    made = controller(slurm, tmp_path)
    short = [of_user(slurm, "--gres=gpu:m40:1", sleep_s=1) for _ in range(2)]
    made.cycle()
    slurm.run("scontrol", "update", f"jobid={short[0]},{short[1]}", f"priority={BAND.high}")
    slurm.run("scancel", str(on(slurm, "m40-1")))
    wait_for(lambda: {one.state for one in slurm.client().states(short).values()} == {"COMPLETED"})
    wait_for(lambda: any(job.node_names == ("m40-1",) for job in slurm.client().jobs().records))
    cycled(made, 4)
    as_user(slurm, "scontrol", "requeue", str(short[0]))
    as_user(slurm, "scontrol", "requeuehold", str(short[1]))
    wait_for(lambda: state(slurm, short[0]) == "PENDING")
    assert priorities(slurm)[short[0]] in BAND
    cycled(made, 3)
    assert not made.said and (short[0] in assigned(made) or priorities(slurm)[short[0]] > BAND.high)  # type: ignore[attr-defined]
    assert made.release_all("test")[1] == [] and none_in_band(slurm)


def test_users_who_lower_their_jobs_into_the_band(slurm, users_jobs, tmp_path):
    """Slurm lets them lower what an operator has set. Before a start and while it runs: their jobs are ranked like any other,
    and they may not raise a priority."""
    made, later = controller(slurm, tmp_path), of_user(slurm, "--gres=gpu:1", "--time=5")
    for job in (*users_jobs, later):
        slurm.run("scontrol", "update", f"jobid={job}", "priority=20000000")
    for job in users_jobs[:2]:
        as_user(slurm, "scontrol", "update", f"jobid={job}", f"priority={BAND.high}")
    assert "denied" in as_user(slurm, "scontrol", "update", f"jobid={users_jobs[1]}", f"priority={BAND.high + 1}")
    assert {job for job, priority in priorities(slurm).items() if priority in BAND} == set(users_jobs[:2])
    assert serve(made, once=True) == DONE and reported(made, "2 waiting jobs") == 1
    as_user(slurm, "scontrol", "update", f"jobid={later}", f"priority={BAND.high}")
    as_user(slurm, "scontrol", "update", f"jobid={users_jobs[2]}", f"priority={BAND.low}")
    for _ in range(3):
        assert made.cycle().ranked == 16
    assert {later, *users_jobs} <= assigned(made).keys() and all_in_band(slurm)
    assert len(set(priorities(slurm).values())) == 16, "in the order of the ranking"
    assert made.release_all("test")[1] == [] and none_in_band(slurm)


def test_a_ranked_job_moves_to_an_unranked_partition(slurm, users_jobs, tmp_path):
    """It is released by the next cycle, also where it was ended and is put back there."""
    made = controller(slurm, tmp_path)
    with created(slurm, "PartitionName=other", "Nodes=ALL", "State=UP"):
        made.cycle()
        as_user(slurm, "scontrol", "update", f"jobid={users_jobs[0]}", "partition=other")
        assert priorities(slurm)[users_jobs[0]] in BAND, "the window until the next cycle"
        done = made.cycle()
        assert done.released == 1 and priorities(slurm)[users_jobs[0]] not in BAND
        cycled(made, 2)
        assert users_jobs[0] not in assigned(made) and not made.said  # type: ignore[attr-defined]
        assert made.release_all("test")[1] == [] and none_in_band(slurm)


def test_slurmctld_is_away_for_a_while(slurm, waiting, tmp_path):
    """As for an upgrade: it is waited for, with one message, and everything goes on; far longer than `max_failures` cycles."""
    client = slurm.client()
    client.timeout_s = 2.0
    time.sleep(SAVED_S)
    made = controller(slurm, tmp_path, client, max_failures=2, interval_s=0.5)
    back = threading.Timer(12.0, slurm.start_controller)

    def then(line: str, service: Service) -> None:
        if line.startswith("cycle") and reported(made, "cycle ") == 1:
            kill(slurm, "slurmctld")
            back.start()
        if "answers again" in line:
            service.stop.set()

    assert serve(made, then, between_tries_s=0.1) == DONE
    back.join()
    assert reported(made, "does not answer") == 1 and not reported(made, "failed")
    assert none_in_band(slurm) and priorities(slurm).keys() == set(waiting) and not assigned(made)


def test_slurmctld_is_killed_just_after_a_release(slurm, waiting, tmp_path):
    """It had not saved its state, and comes back with the jobs in the band: the release finds that out."""
    made = controller(slurm, tmp_path)
    made.cycle()
    time.sleep(SAVED_S)

    def killed() -> None:
        time.sleep(0.2)
        kill(slurm, "slurmctld")
        slurm.start_controller()

    meanwhile(made, "release", killed, after=True)
    assert made.release_all("test") == (12, []) and none_in_band(slurm) and not assigned(made)


def test_two_controllers_with_the_same_band(slurm, waiting, tmp_path):
    """Both began at once, with lists and agents of their own."""
    one, other = controller(slurm, tmp_path / "one"), controller(slurm, tmp_path / "other")
    write_policy(tmp_path / "other" / "policy.npz", seed=2)
    with pytest.raises(Stop, match="is a second controller running"):
        for _ in range(4):
            one.cycle()
            other.cycle()
    for made in (one, other):
        assert made.release_all("test")[1] == []
    assert none_in_band(slurm)


def test_two_controllers_with_different_bands(slurm, waiting, tmp_path):
    one = controller(slurm, tmp_path / "one")
    other = controller(slurm, tmp_path / "other", band=[3_000_000, 4_000_000])
    cycled(one, 2)
    other.cycle()
    one.cycle()
    assert reported(one, "Is another controller with another band running?") == 1
    assert other.release_all("test")[1] == [] and one.release_all("test")[1] == [] and none_in_band(slurm)
