"""Others at work beside the controller, on real daemons: priorities they set, holds, jobs that a listing lacks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fake_slurm import BAND, assigned
from slurm_live import controller, meanwhile, nobody_is_ours, priorities, stand_in
from slurm_workload import submit, wait_for

from rltune.slurm.emulate import Emulation
from rltune.slurm.records import JobState

SET = "somebody has set its priority"


def test_jobs_asked_for_by_id(slurm: Emulation, waiting: list[int]) -> None:
    """Waiting, cancelled, an array, and some that there have never been."""
    slurm.run("scancel", str(waiting[0]))
    array, client = submit(slurm, "--gres=gpu:1", "--array=1-5"), slurm.client()
    own = priorities(slurm)
    slurm.run("scontrol", "update", f"jobid={array}_2", "priority=777")
    task = next(job.id for job in client.jobs().records if job.array_id == array != job.id)
    assert client.states([*waiting[:2], array, task, 999_998, 999_999]) == {
        waiting[0]: JobState("CANCELLED", own[waiting[1]]),
        waiting[1]: JobState("PENDING", own[waiting[1]]),
        array: JobState("PENDING", own[array]),
        task: JobState("PENDING", 777),
    }
    assert client.states([999_999]) == {}
    assert client.unknown([*waiting[:2], array, 999_998, 999_999]) == {999_998, 999_999}


def test_a_priority_that_an_administrator_sets_stays(slurm: Emulation, waiting: list[int], tmp_path: Path) -> None:
    made, higher, lower, held = controller(slurm, tmp_path), *waiting[:3]
    own = priorities(slurm)
    made.cycle()
    made.cycle()
    slurm.run("scontrol", "update", f"jobid={higher}", "priority=5000000")
    slurm.run("scontrol", "update", f"jobid={lower}", "priority=777")
    slurm.run("scontrol", "hold", str(held))
    for _ in range(3):
        done = made.cycle()
        assert done.left == {higher: SET, lower: SET, held: "held"}
    slurm.run("scontrol", "release", str(held))
    assert made.cycle().ranked == 10 and priorities(slurm)[held] in BAND, "its user's hold is over"
    assert made.release_all("test") == (10, [])
    wait_for(lambda: priorities(slurm) == {**own, higher: 5_000_000, lower: 777})
    assert controller(slurm, tmp_path).cycle().ranked == 10, "after a new start, too"
    slurm.run("scontrol", "hold", str(lower))
    again = controller(slurm, tmp_path)
    again.cycle()
    slurm.run("scontrol", "release", str(lower))
    assert again.cycle().ranked == 11, "given to the controller again by a hold of one cycle"
    again.release_all("test")
    assert {job: p for job, p in priorities(slurm).items() if p > BAND.low} == {higher: 5_000_000}


@pytest.mark.parametrize(("left", "cycles"), [(8, 1), (0, 4)])
def test_answers_that_lack_jobs_and_look_whole_lose_none(
    slurm: Emulation, waiting: list[int], tmp_path: Path, left: int, cycles: int
) -> None:
    """squeue ends well without the jobs after the third that waits, or without any, cycle after cycle; scontrol knows them.

    Once it tells of all again, and while they are released, their priorities are known for the controller's own.
    """
    cut = tmp_path / "cut"
    fewer = f"import json, sys; print(json.dumps({{'jobs': json.load(sys.stdin)['jobs'][:{left}]}}))"
    script = f'[ -e {cut} ] || exec REAL "$@"; case "$*" in *--json*) REAL "$@" | {sys.executable} -c "{fewer}";; esac'
    client = stand_in(slurm, tmp_path / "bin", "squeue", script=script)
    made = controller(slurm, tmp_path, client, eligible={"partitions": ["all"], "priority_below": 100_000})
    made.cycle()
    cut.touch()
    for _ in range(cycles):
        assert made.cycle().ranked < max(left, 1)
    assert set(assigned(made)) == set(waiting)
    cut.unlink()
    assert made.cycle().ranked == 12
    cut.touch()
    meanwhile(made, "jobs", cut.unlink, after=True)
    assert made.release_all("test") == (12, []) and nobody_is_ours(slurm)
    made.cycle()
    slurm.run("scancel", f"--user={slurm.user}")
    wait_for(lambda: not slurm.client().jobs().records)
    for _ in range(2):
        made.cycle()
    assert not made.directory.ownership().present, "all are over, and Slurm says so"
