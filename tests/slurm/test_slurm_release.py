"""Releases: all of the controller's jobs and no others, whatever Slurm refuses or others do meanwhile."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import typer
from fake_slurm import BAND, FakeSlurm, assigned, busy, controller, job, priorities, ranked

from rltune.cli import slurm as command
from rltune.errors import SlurmUnavailable
from rltune.slurm.ownership import Assignment, Ownership
from rltune.slurm.release import SAVED_S

REASONS = {"held": "held", "set": "somebody has set its priority"}


EVENTS = {"held": FakeSlurm.hold, "set": partial(FakeSlurm.change, priority=777), "started": FakeSlurm.start}
"""Somebody holds a job or sets its priority, or it starts."""


@pytest.mark.parametrize("when", ["just before", "while exclusions are undone", "between two batches"])
@pytest.mark.parametrize("then", ["held", "set", "started"])
def test_a_job_changes_while_others_are_released(tmp_path, then, when):
    slurm, made = ranked(tmp_path)
    slurm.batch = 9 if "undone" in when else 2
    if when == "just before":
        EVENTS[then](slurm, 14)
    elif when == "while exclusions are undone":
        slurm.change(12, shared="NO")
        made.directory.write(Ownership(assigned(made) | {12: replace(assigned(made)[12], exclusive=True)}))
        slurm.before_update = lambda: EVENTS[then](slurm, 14)
    else:
        slurm.after_release = lambda: None if slurm.released[2:] else EVENTS[then](slurm, 14)
    assert made.release_all("test") == (5, []) and 14 not in slurm.released
    assert slurm.queue[14].held == (then == "held") and (then != "set" or slurm.queue[14].priority == 777)
    made.cycle()
    assert made.view.left.get(14, "") == REASONS.get(then, "")
    assert (14 in assigned(made)) == (then == "started"), "as it may be requeued"


@pytest.mark.parametrize("then", ["held", "set"])
def test_a_job_changes_just_before_its_release_in_a_cycle(tmp_path, then):
    slurm, made = ranked(tmp_path)
    slurm.change(12, 13, dependency="afterok:1")
    slurm.add(job(99))  # so that something is written before jobs are released
    slurm.before_update = lambda: EVENTS[then](slurm, 13)
    done = made.cycle()
    assert slurm.released == [12] and (done.released, done.refused) == (1, 0)
    assert slurm.queue[13].held == (then == "held") and slurm.queue[13].priority in (0, 777)
    slurm.change(13, dependency="")
    assert made.cycle().left[13] == REASONS[then]


def test_a_job_that_cannot_be_read_and_is_held_stays_held(tmp_path):
    slurm, made = ranked(tmp_path, cycles=1)
    slurm.hold(15)
    slurm.hidden, slurm.faults = {15}, ("job 15: time_limit: found 'x'",)
    assert made.release_all("test") == (5, []) and 15 not in slurm.released and slurm.queue[15].held


@pytest.mark.parametrize(
    "word",
    [
        "Invalid job id specified for job 12; slurm_suspend error: Invalid job id specified",
        "Job has already finished for job 12",
        "Job/step already completing or completed",
    ],
)
def test_a_job_that_is_over_is_no_refusal(tmp_path, word):
    slurm, made = ranked(tmp_path, cycles=1)
    slurm.refuses = {12: word}
    assert made.release_all("test") == (5, []) and not assigned(made)


def test_an_answer_that_lacks_jobs_while_all_is_released(tmp_path):
    slurm, made = ranked(tmp_path, cycles=1)
    slurm.hidden = {10, 12}
    slurm.after_release = lambda: slurm.hidden.clear()
    assert made.release_all("test") == (6, []) and slurm.all_released() and not assigned(made)


def test_slurm_falls_silent_between_two_batches(tmp_path):
    """What it has released by then is not taken for somebody else's doing."""
    slurm, made = ranked(tmp_path)
    slurm.batch = 2
    slurm.after_release = lambda: setattr(slurm, "silent", True)
    with pytest.raises(SlurmUnavailable):
        made.release_all("test")
    assert set(assigned(made)) == set(range(10, 16)) and len(slurm.released) == 2
    slurm.silent, slurm.after_release = False, lambda: None
    assert made.release_all("again") == (4, []) and not assigned(made) and not made.directory.ownership().overridden
    assert made.cycle().ranked == 6


def test_a_job_with_another_priority_loses_only_its_whole_nodes(tmp_path):
    slurm, made = ranked(tmp_path)
    slurm.change(12, priority=777, shared="NO")
    made.directory.write(Ownership(assigned(made) | {12: Assignment(BAND.low, exclusive=True, seen=True)}))
    assert made.release_all("test") == (5, []) and slurm.queue[12].shared == "YES" and slurm.queue[12].priority == 777
    assert made.directory.ownership().overridden == {12: 0}


def release(made: object, band: bool, monkeypatch: pytest.MonkeyPatch) -> int:
    """`rltune slurm release`; its exit status."""
    monkeypatch.setattr(command, "_controller", lambda config, live: made)
    with pytest.raises(typer.Exit) as ended:
        command.release(Path("mine.yaml"), band)
    return ended.value.exit_code


def test_release_without_a_list_reports_the_jobs_in_the_band(tmp_path, monkeypatch):
    assert release(controller(busy(), tmp_path), False, monkeypatch) == 0, "nothing is in the band"
    slurm, _ = ranked(tmp_path, cycles=1)
    slurm.add(job(70, partition="other", priority=BAND.low + 1), job(71, partition="other,gpu", priority=BAND.low + 2))
    slurm.computed[71] = 4000
    slurm.change(12, shared="NO")
    (tmp_path / "assigned.json").unlink()
    for _ in range(2):
        made = controller(slurm, tmp_path)
        assert release(made, False, monkeypatch) == 3
        assert "7 waiting jobs (for example job 10)" in made.said[-1] and "release --band`" in made.said[-1]
    assert not slurm.released
    (tmp_path / "assigned.json").write_text("{half")
    assert release(controller(slurm, tmp_path), True, monkeypatch) == 0 and set(slurm.released) == {*range(10, 16), 71}
    assert slurm.queue[12].shared == "NO", "nobody knows whose it was"
    assert slurm.queue[70].priority == BAND.low + 1 and release(controller(slurm, tmp_path), False, monkeypatch) == 0


def test_release_with_a_list_looks_for_the_band_too(tmp_path, monkeypatch):
    slurm, _ = ranked(tmp_path)
    slurm.add(job(70, priority=BAND.low + 1))
    assert release(controller(slurm, tmp_path), False, monkeypatch) == 3 and set(slurm.released) == {*range(10, 16)}


@pytest.mark.parametrize("undone", ["lost", "lost that of the last cycle", "late"])
def test_a_release_that_comes_undone_is_made_again(tmp_path, undone):
    """slurmctld is killed before it has saved it, or a change that was sent long ago arrives after it."""
    slurm, made = ranked(tmp_path)
    before, times = priorities(slurm)[12], []

    def pause(seconds: float) -> None:
        times.append(seconds)
        if len(times) == 1:
            slurm.change(12, priority=before)

    if undone == "lost that of the last cycle":
        slurm.change(*range(10, 16), dependency="afterok:1")
        assert made.cycle().released == 6
    if undone == "late":
        made.directory.write(Ownership(assigned(made) | {12: replace(assigned(made)[12], previous=before)}))
        slurm.change(12, priority=before + 1)
    made.pause = pause
    released = 1 if "cycle" in undone else 6
    assert made.release_all("test") == (released, []) and slurm.all_released() and not assigned(made)
    assert times == [SAVED_S, SAVED_S], "after each release, until slurmctld has saved it"


def test_jobs_that_slurm_itself_puts_into_the_band_are_released_once(tmp_path):
    """Its own priorities reach into the band, as with priority/basic when it counts down from the least it knows."""
    slurm, made = ranked(tmp_path)
    slurm.computed = {number: BAND.low + 7 for number in slurm.computed}
    assert made.release_all("test") == (6, []) and slurm.released == list(range(10, 16)) and not made.unlisted


def test_jobs_released_with_one_that_is_refused_stay_on_the_list(tmp_path):
    """slurmctld is killed before it has saved their release, and the next one finds them."""
    slurm, made = ranked(tmp_path)
    before = dict(slurm.queue)
    slurm.refuses = {15: "Access denied"}
    assert made.release_all("test")[0] == 5 and set(assigned(made)) == set(range(10, 16))
    slurm.queue, slurm.refuses = before, {}
    assert made.release_all("again") == (6, []) and slurm.all_released() and not assigned(made)
