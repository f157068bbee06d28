"""Whose a priority is: requeued, running, unreadable, array and foreign jobs; nothing of ours is left behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_slurm import BAND, FakeSlurm, busy, controller, five_nodes, job

from rltune.errors import RLTuneError
from rltune.slurm.folder import Touch
from rltune.slurm.service import Service


def test_a_requeued_job_is_known_again(tmp_path: Path) -> None:
    """It runs for some cycles, and comes back with the priority it had, first with a begin time, then without."""
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.start(12)
    made.cycle()
    made.cycle()
    slurm.requeue(12)
    made.cycle()
    assert BAND.low <= slurm.queue[12].priority <= BAND.high
    made.hand_back("test")
    assert slurm.queue[12].priority == slurm.computed[12]


def test_a_job_that_runs_while_all_is_handed_back_is_found_by_release_later(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.start(12)
    made.hand_back("test")
    assert set(made.folder.touched()) == {12}
    slurm.requeue(12)
    assert made.hand_back("later")[0] == 1 and slurm.queue[12].priority == slurm.computed[12]


def test_a_task_of_a_ranked_array_takes_the_arrays_priority_over(tmp_path: Path) -> None:
    slurm = busy(0)
    slurm.add(job(50, array_id=50, array_tasks=10))
    made = controller(slurm, tmp_path, scope={"partitions": ["gpu"], "arrays": "rank"})
    made.cycle()
    slurm.add(replace(slurm.queue[50], id=51, array_tasks=1))
    slurm.computed[51] = 4000
    made.hand_back("test")
    assert slurm.queue[51].priority == 4000 and slurm.queue[50].priority == slurm.computed[50]


def test_a_job_whose_record_cannot_be_read_is_not_forgotten(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    hidden = slurm.queue.pop(12)
    slurm.faults = ("job 12: time_limit: found 'x'",)
    made.cycle()
    assert 12 in made.folder.touched()
    slurm.queue[12], slurm.faults = hidden, ()
    made.hand_back("test")
    assert slurm.queue[12].priority == slurm.computed[12]


def test_a_job_is_forgotten_when_two_answers_in_a_row_lack_it(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path, scope={"partitions": ["gpu"], "priority_below": 50_000})
    made.cycle()
    hidden = slurm.queue.pop(12)
    made.cycle()
    slurm.queue[12] = hidden
    assert made.cycle().ranked == 6 and made.folder.touched()[12].missed == 0, "its priority is known for ours"
    for left in ({*range(10, 16)}, {10, 11, 13, 14, 15}):
        slurm.queue.pop(12, None)
        made.cycle()
        assert made.folder.touched().keys() == left


def test_an_answer_that_lacks_jobs_while_all_is_handed_back(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    whole, jobs = dict(slurm.queue), slurm.jobs
    slurm.queue.clear()

    def lacks() -> object:
        read = jobs()
        slurm.queue |= whole
        return read

    slurm.jobs = lacks  # type: ignore[method-assign,assignment]
    assert made.hand_back("test") == (6, [])
    assert slurm.queue[12].priority == slurm.computed[12] and not made.folder.touched()


def test_what_somebody_else_has_set_is_theirs(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.queue[12] = replace(slurm.queue[12], partition="cpu", priority=777)
    made.cycle()
    made.hand_back("test")
    assert slurm.queue[12].priority == 777


def test_a_band_that_slurms_own_priorities_reach_is_refused(tmp_path: Path) -> None:
    slurm = FakeSlurm({10: job(10, priority=1_500_000)}, five_nodes(4, 4, 2, 2, 1))
    with pytest.raises(RLTuneError, match="1,000,000 to 2,000,000 that no controller"):
        Service(controller(slurm, tmp_path), once=True).run()
    high = controller(slurm, tmp_path, scope={"partitions": ["gpu"], "priority_below": 50_000})
    assert high.cycle().ranked == 0 and not slurm.writes, "a high priority of Slurm's own is no doing of ours"


def test_a_priority_that_did_not_arrive_leaves_the_one_before_ours(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    touched = made.folder.touched()
    before = slurm.queue[12].priority
    made.folder.write_touched({**touched, 12: Touch(BAND.low + 7, before)})  # killed before Slurm was told
    made.hand_back("test")
    assert slurm.queue[12].priority == slurm.computed[12]
