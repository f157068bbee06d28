"""Others at work beside the controller, on real daemons: priorities they set, holds, jobs that a listing lacks."""

from __future__ import annotations

from pathlib import Path

from fake_slurm import BAND, assigned
from slurm_live import controller, nobody_is_ours, priorities, stand_in
from slurm_workload import submit, wait_for

from rltune.slurm.emulate import Emulation
from rltune.slurm.records import JobState


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
        assert done.left == {
            higher: "somebody has set its priority",
            lower: "somebody has set its priority",
            held: "held",
        }
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


def test_answers_without_a_single_job(slurm: Emulation, waiting: list[int], tmp_path: Path) -> None:
    """squeue ends well and says nothing, cycle after cycle; scontrol knows the jobs."""
    mute = tmp_path / "mute"
    script = f'[ -e {mute} ] || exec REAL "$@"; case "$*" in *--json*) echo \'{{"jobs": []}}\';; esac'
    client = stand_in(slurm, tmp_path / "bin", "squeue", script=script)
    made = controller(slurm, tmp_path, client)
    made.cycle()
    mute.touch()
    for _ in range(4):
        assert made.cycle().ranked == 0
    assert set(assigned(made)) == set(waiting)
    mute.unlink()
    assert made.cycle().ranked == 12 and made.release_all("test") == (12, []) and nobody_is_ours(slurm)
    made.cycle()
    slurm.run("scancel", f"--user={slurm.user}")
    wait_for(lambda: not slurm.client().jobs().records)
    for _ in range(2):
        made.cycle()
    assert not assigned(made), "all are over, and Slurm says so"
