"""Whose a priority is: requeued, running, unreadable, array and foreign jobs; nothing of the controller's is left behind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from fake_slurm import BAND, FakeSlurm, busy, controller, five_nodes, job, priorities

from rltune.errors import RLTuneError, SlurmUnavailable
from rltune.slurm.controller import Stop
from rltune.slurm.ownership import Assignment, Ownership
from rltune.slurm.records import Outcome
from rltune.slurm.service import GAVE_UP, Service, describe


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
    made.release_all("test")
    assert slurm.queue[12].priority == slurm.computed[12]


def test_a_job_that_runs_while_all_is_handed_back_is_found_by_release_later(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.start(12)
    made.release_all("test")
    assert set(made.directory.assigned()) == {12}
    slurm.requeue(12)
    assert made.release_all("later")[0] == 1 and slurm.queue[12].priority == slurm.computed[12]


def test_a_task_of_a_ranked_array_takes_the_arrays_priority_over(tmp_path: Path) -> None:
    slurm = busy(0)
    slurm.add(job(50, array_id=50, array_tasks=10))
    made = controller(slurm, tmp_path, eligible={"partitions": ["gpu"], "also": ["arrays"]})
    made.cycle()
    slurm.add(replace(slurm.queue[50], id=51, array_tasks=1))
    slurm.computed[51] = 4000
    made.release_all("test")
    assert slurm.queue[51].priority == 4000 and slurm.queue[50].priority == slurm.computed[50]


def test_a_job_whose_record_cannot_be_read_is_not_forgotten(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    hidden = slurm.queue.pop(12)
    slurm.faults = ("job 12: time_limit: found 'x'",)
    made.cycle()
    assert 12 in made.directory.assigned()
    slurm.queue[12], slurm.faults = hidden, ()
    made.release_all("test")
    assert slurm.queue[12].priority == slurm.computed[12]


def test_a_job_is_forgotten_when_two_answers_in_a_row_lack_it(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path, eligible={"partitions": ["gpu"], "priority_below": 50_000})
    made.cycle()
    hidden = slurm.queue.pop(12)
    made.cycle()
    slurm.queue[12] = hidden
    assert made.cycle().ranked == 6 and made.directory.assigned()[12].missed == 0, (
        "its priority is known for the controller's"
    )
    for left in ({*range(10, 16)}, {10, 11, 13, 14, 15}):
        slurm.queue.pop(12, None)
        made.cycle()
        assert made.directory.assigned().keys() == left


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
    assert made.release_all("test") == (6, [])
    assert slurm.queue[12].priority == slurm.computed[12] and not made.directory.assigned()


@pytest.mark.parametrize(
    ("priority", "below"), [(777, None), (777, 4_000_000_000), (5_000_000, None), (3_000_000, 4_000_000)]
)
def test_what_somebody_else_has_set_on_a_ranked_job_stays(tmp_path: Path, priority: int, below: int | None) -> None:
    """In eligible, lower or higher than the band; after a restart, too, and as long as the job is there."""
    slurm, eligible = busy(), {"partitions": ["gpu"], "priority_below": below}
    made = controller(slurm, tmp_path, eligible=eligible)
    made.cycle()
    made.cycle()
    slurm.queue[12] = replace(slurm.queue[12], priority=priority)
    for _ in range(3):
        done = made.cycle()
        assert done.left == {12: "somebody has set its priority"} and done.ranked == 5
    assert 12 not in made.directory.assigned() and made.directory.ownership().overridden == {12: 0}
    assert made.release_all("test")[0] == 5 and slurm.queue[12].priority == priority
    again = controller(slurm, tmp_path, eligible=eligible)
    again.cycle()
    slurm.start(12)
    again.cycle()
    slurm.requeue(12)
    assert again.cycle().left == {12: "somebody has set its priority"} and slurm.queue[12].priority == priority
    assert {change.job for change in slurm.writes[6:]} == {10, 11, 13, 14, 15}
    del slurm.queue[12]
    again.cycle()
    assert again.directory.ownership().overridden == {12: 1}
    again.cycle()
    assert not again.directory.ownership().overridden


def test_what_is_set_just_before_handing_back_stays(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    made.cycle()
    slurm.queue[12] = replace(slurm.queue[12], priority=777)
    assert made.release_all("test") == (5, []) and slurm.queue[12].priority == 777
    assert made.directory.ownership().overridden == {12: 0} and not made.directory.assigned()
    assert made.cycle().left == {12: "somebody has set its priority"}


@pytest.mark.parametrize("set_first", [False, True])
def test_a_job_that_was_held_and_released_by_its_user_is_ranked_again(tmp_path: Path, set_first: bool) -> None:
    """One with a priority that somebody had set, too."""
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    made.cycle()
    if set_first:
        slurm.queue[12] = replace(slurm.queue[12], priority=777)
        made.cycle()
        made.cycle()
    slurm.queue[12] = replace(slurm.queue[12], priority=0, held=True, reason="JobHeldUser")
    assert made.cycle().left == {12: "held"}
    slurm.queue[12] = replace(slurm.queue[12], priority=slurm.computed[12], held=False, reason="Priority")
    assert made.cycle().ranked == 6 and slurm.queue[12].priority in BAND
    assert made.release_all("test")[0] == 6


def test_a_job_that_never_had_the_controllers_priority_is_nobody_elses(tmp_path: Path) -> None:
    """The list was written, and Slurm's controller ended before it had saved what it was told."""
    slurm = busy()
    made, own = controller(slurm, tmp_path), dict(slurm.queue)
    made.cycle()
    slurm.queue = own
    assert made.cycle().ranked == 6 and all(p in BAND for p in priorities(slurm).values())


def test_jobs_given_back_when_they_left_the_scope_are_ranked_when_they_come_again(tmp_path: Path) -> None:
    """Also where nobody was told that Slurm did give one back."""
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    made.cycle()
    release = slurm.release

    def dies_after(ids: Iterable[int]) -> list[Outcome]:
        release(ids)
        raise SlurmUnavailable("scontrol: no answer within 30 s")

    slurm.queue[12] = replace(slurm.queue[12], dependency="afterok:1")
    slurm.release = dies_after  # type: ignore[method-assign]
    with pytest.raises(SlurmUnavailable):
        made.cycle()
    assert slurm.queue[12].priority == slurm.computed[12]
    slurm.release = release  # type: ignore[method-assign]
    assert made.cycle().left == {12: "depends on other jobs"}
    slurm.queue[12] = replace(slurm.queue[12], dependency="")
    assert made.cycle().ranked == 6 and not made.directory.ownership().overridden


def test_a_task_of_an_array_whose_priority_somebody_has_set(tmp_path: Path) -> None:
    slurm = busy(0)
    slurm.add(job(50, array_id=50, array_tasks=10))
    made = controller(slurm, tmp_path, eligible={"partitions": ["gpu"], "also": ["arrays"]})
    made.cycle()
    slurm.add(replace(slurm.queue[50], id=51, array_tasks=1))
    made.cycle()
    slurm.queue[51] = replace(slurm.queue[51], priority=777)
    assert made.cycle().left == {51: "somebody has set its priority"}
    slurm.queue[50] = replace(slurm.queue[50], priority=888)
    for number in (52, 53):
        slurm.add(replace(slurm.queue[50], id=number, array_tasks=1))
        assert {50, 51, 52} <= made.cycle().left.keys()
    made.release_all("test")
    assert priorities(slurm) == {50: 888, 51: 777, 52: 888, 53: 888}


def test_a_change_that_arrives_late_is_the_controllers(tmp_path: Path) -> None:
    """Two cycles on end nobody hears of what became of a change, and then the first one arrives."""
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    first = slurm.queue[12].priority
    assigned = made.directory.assigned()
    # neither of them is what arrives
    made.directory.write(Ownership({**assigned, 12: Assignment(BAND.low + 9, BAND.low + 7)}))
    slurm.queue[12] = replace(slurm.queue[12], priority=first)
    assert made.release_all("test") == (6, []) and slurm.queue[12].priority == slurm.computed[12]


def test_a_band_that_has_been_changed_leaves_no_job_behind(tmp_path: Path) -> None:
    slurm = busy()
    controller(slurm, tmp_path).cycle()
    made = controller(slurm, tmp_path, band={"low": 3_000_000, "high": 4_000_000})
    assert made.release_all("test")[0] == 6 and max(priorities(slurm).values()) < BAND.low


def test_where_slurm_ranks_every_job_above_the_band_that_is_told(tmp_path: Path) -> None:
    basic = 4_294_901_759
    slurm = busy(2)
    slurm.queue |= {10: replace(slurm.queue[10], priority=basic), 11: replace(slurm.queue[11], priority=basic - 1)}
    done = controller(slurm, tmp_path).cycle()
    assert done.ranked == 0 and not slurm.writes and set(done.left.values()) == {"its priority is above the band"}
    assert "2 eligible jobs have priorities above the band (up to 4,294,901,759)" in done.notes[0]
    assert "`eligible.priority_below`" in describe(done, live=True)
    made = controller(slurm, tmp_path, eligible={"partitions": ["gpu"], "priority_below": basic + 1})
    done = made.cycle()
    assert (done.ranked, done.notes) == (2, ()) and all(p in BAND for p in priorities(slurm).values())


def test_one_job_above_the_band_comes_first_without_a_word(tmp_path: Path) -> None:
    slurm = busy()
    slurm.add(job(99, priority=5_000_000))
    done = controller(slurm, tmp_path).cycle()
    assert done.left == {99: "its priority is above the band"} and done.ranked == 6 and done.notes == ()
    assert slurm.queue[99].priority == 5_000_000


def test_a_band_that_slurms_own_priorities_reach_is_refused(tmp_path: Path) -> None:
    slurm = FakeSlurm({10: job(10, priority=1_500_000)}, five_nodes(4, 4, 2, 2, 1))
    with pytest.raises(RLTuneError, match="1,000,000 to 2,000,000 that no controller"):
        Service(controller(slurm, tmp_path), once=True).run()
    high = controller(slurm, tmp_path, eligible={"partitions": ["gpu"], "priority_below": 50_000})
    assert high.cycle().ranked == 0 and not slurm.writes, "a high priority of Slurm's own is not the controller's"


def test_somebody_else_in_the_band_ends_it(tmp_path: Path) -> None:
    """A second controller with a list of its own, say, that began when nothing waited."""
    slurm = busy()
    first, second = controller(slurm, tmp_path / "a"), controller(slurm, tmp_path / "b")
    first.cycle()
    given = dict(slurm.queue)
    with pytest.raises(Stop, match="6 waiting jobs .for example job 10.* is a second one running"):
        second.cycle()
    assert slurm.queue == given and controller(slurm, tmp_path / "c", live=False).cycle().ranked == 6
    slurm.add(job(40, priority=BAND.low + 3))
    made = controller(slurm, tmp_path / "a", interval_s=60.0)
    with pytest.raises(RLTuneError, match="1 waiting jobs"):
        Service(made).run()
    slurm.queue[40] = replace(slurm.queue[40], priority=77)

    def say(line: str) -> None:
        made.said.append(line)
        slurm.add(job(41, priority=BAND.low + 3))  # from the end of the first cycle on

    made.say, made.config = say, made.config.model_copy(update={"interval_s": 0.01})
    assert Service(made).run() == GAVE_UP and slurm.queue[41].priority == BAND.low + 3
    assert {n: slurm.queue[n].priority for n in range(10, 16)} == {n: slurm.computed[n] for n in range(10, 16)}


def test_a_priority_that_did_not_arrive_leaves_the_one_before_ours(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    assigned = made.directory.assigned()
    before = slurm.queue[12].priority
    made.directory.write(Ownership({**assigned, 12: Assignment(BAND.low + 7, before)}))  # killed before Slurm was told
    made.release_all("test")
    assert slurm.queue[12].priority == slurm.computed[12]
