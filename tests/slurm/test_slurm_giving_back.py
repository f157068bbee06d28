"""Handing back: nothing but what is the controller's, nothing of it forgotten, whatever Slurm's answers lack or refuse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from fake_slurm import BAND, busy, controller, job, priorities

from rltune.cli import slurm as command
from rltune.errors import SlurmUnavailable
from rltune.slurm import release as releasing
from rltune.slurm.ownership import Assignment, Ownership
from rltune.slurm.records import JobState, Outcome


def test_it_says_how_many_running_jobs_stay_on_the_list(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.start(12)
    slurm.start(13)
    assert made.release_all("test") == (4, []) and "released 4 jobs to Slurm; 2 jobs on the list run" in made.said[-1]
    slurm.requeue(12)
    made.release_all("later")
    assert "released 1 jobs to Slurm; 1 jobs on the list run" in made.said[-1] and set(made.directory.assigned()) == {
        13
    }
    del slurm.queue[13]
    made.release_all("at last")
    assert made.said[-1] == "released 0 jobs to Slurm: at last" and not made.directory.assigned()


@pytest.mark.parametrize("then", ["held", "set", "started"])
def test_what_happens_to_a_job_while_others_are_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """Between two batches."""
    monkeypatch.setattr(releasing, "BATCH", 2)
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    made.cycle()
    release = slurm.release

    def and_then(ids: Iterable[int]) -> list[Outcome]:
        done = release(ids)
        if then == "held":
            slurm.queue[14] = replace(slurm.queue[14], priority=0, held=True, reason="JobHeldUser")
        elif then == "set":
            slurm.queue[14] = replace(slurm.queue[14], priority=777)
        else:
            slurm.start(14)
        return done

    slurm.release = and_then  # type: ignore[method-assign]
    assert made.release_all("test") == (5, []) and 14 not in slurm.released
    assert slurm.queue[14].held == (then == "held") and (then != "set" or slurm.queue[14].priority == 777)
    slurm.release = release  # type: ignore[method-assign]
    made.cycle()
    assert made.view is not None
    assert made.view.left.get(14, "") == {"held": "held", "set": "somebody has set its priority", "started": ""}[then]
    assert (14 in made.directory.assigned()) == (then == "started"), "as it may be requeued"


@pytest.mark.parametrize("then", ["held", "set"])
def test_what_happens_to_a_job_just_before_it_is_released_in_a_cycle_stays(tmp_path: Path, then: str) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    made.cycle()
    for number in (12, 13):
        slurm.queue[number] = replace(slurm.queue[number], dependency="afterok:1")
    slurm.add(job(99))  # so that something is written before jobs are released

    def somebody_else() -> None:
        slurm.queue[13] = replace(slurm.queue[13], priority=0 if then == "held" else 777, held=then == "held")

    slurm.before_update = somebody_else
    done = made.cycle()
    assert slurm.released == [12] and (done.released, done.refused) == (1, 0)
    assert slurm.queue[13].held == (then == "held") and slurm.queue[13].priority in (0, 777)
    slurm.queue[13] = replace(slurm.queue[13], dependency="")
    assert made.cycle().left[13] == ("held" if then == "held" else "somebody has set its priority")


def test_the_queue_is_read_no_oftener_than_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    for _ in range(2):
        made.cycle()
    assert slurm.looked == ["jobs"] * 2, "once a cycle"
    monkeypatch.setattr(releasing, "BATCH", 2)
    slurm.looked.clear()
    made.release_all("test")
    assert slurm.looked == ["jobs", "states", "states"], "and of the second and third batch just its jobs"


def test_an_unreadable_record_does_not_keep_ended_jobs_on_the_list(tmp_path: Path) -> None:
    """Job 15 cannot be read as long as it lives; the others end, one by one, and Slurm forgets them."""
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.hidden, slurm.faults = {15}, ("job 15: time_limit: found 'x'",)
    del slurm.queue[10]
    for _ in range(3):
        made.cycle()
    assert set(made.directory.assigned()) == {11, 12, 13, 14, 15}
    slurm.queue[11] = replace(slurm.queue[11], state="COMPLETED")
    slurm.hidden.add(11)
    made.cycle()
    made.cycle()
    assert set(made.directory.assigned()) == {12, 13, 14, 15}
    del slurm.queue[12]
    assert made.release_all("test") == (3, []), "13, 14 and the one that cannot be read"
    assert priorities(slurm)[15] == slurm.computed[15] and not made.directory.assigned()


def test_a_job_that_cannot_be_read_and_is_held_stays_held(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.queue[15] = replace(slurm.queue[15], priority=0, held=True)
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
def test_a_job_that_is_over_is_no_refusal(tmp_path: Path, word: str) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    release = slurm.release
    slurm.release = lambda ids: [  # type: ignore[method-assign]
        Outcome(number, False, word) if number == 12 else release([number])[0] for number in ids
    ]
    assert made.release_all("test") == (5, []) and not made.directory.assigned()


@pytest.mark.parametrize("again", ["cycles", "hand back"])
def test_answers_that_lack_every_job_lose_none(tmp_path: Path, again: str) -> None:
    """As one without a line, with exit status 0; asked for by their ids, the jobs are there."""
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.hidden = {number for number in slurm.queue if number >= 10}
    if again == "cycles":
        for _ in range(5):
            made.cycle()
        assert set(made.directory.assigned()) == set(range(10, 16))
        slurm.hidden = set()
    assert made.release_all("test") == (6, []) and not made.directory.assigned()
    assert priorities(slurm) == {n: slurm.computed[n] for n in range(10, 16)}


@pytest.mark.parametrize("known", [False, True])
def test_jobs_that_are_all_over_are_forgotten(tmp_path: Path, known: bool) -> None:
    """Slurm says so: it does not know them, or knows that they have ended."""
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    for number in range(10, 16):
        slurm.queue[number] = replace(slurm.queue[number], state="COMPLETED")
        slurm.hidden.add(number)
        if not known:
            del slurm.queue[number]
    made.cycle()
    assert len(made.directory.assigned()) == 6
    made.cycle()
    assert not made.directory.assigned()


def test_an_empty_answer_about_the_jobs_themselves_says_nothing(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    slurm.hidden = set(range(10, 16))
    nothing: dict[int, JobState] = {}
    slurm.states = lambda ids: nothing  # type: ignore[method-assign]
    for _ in range(4):
        made.cycle()
    made.release_all("test")
    assert set(made.directory.assigned()) == set(range(10, 16)), "not unknown by Slurm's word, and so kept"


def test_the_band_is_searched_in_the_ranked_partitions_alone(tmp_path: Path) -> None:
    slurm = busy()
    slurm.add(job(70, partition="other", priority=BAND.low + 1), job(71, partition="other,gpu", priority=BAND.low + 2))
    made = controller(slurm, tmp_path)
    assert made.release_all("test", band_too=True)[0] == 1
    assert slurm.released == [71] and slurm.queue[70].priority == BAND.low + 1


def test_slurm_falls_silent_between_two_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has given back by then is not taken for somebody else's doing."""
    monkeypatch.setattr(releasing, "BATCH", 2)
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    made.cycle()
    release = slurm.release

    def once(ids: Iterable[int]) -> list[Outcome]:
        done = release(ids)
        slurm.silent = True
        return done

    slurm.release = once  # type: ignore[method-assign]
    with pytest.raises(SlurmUnavailable):
        made.release_all("test")
    assert set(made.directory.assigned()) == set(range(10, 16)) and len(slurm.released) == 2
    slurm.silent, slurm.release = False, release  # type: ignore[method-assign]
    assert (
        made.release_all("again") == (4, [])
        and not made.directory.assigned()
        and not made.directory.ownership().overridden
    )
    assert made.cycle().ranked == 6


def release(made: object, band: bool, monkeypatch: pytest.MonkeyPatch) -> int:
    """`rltune slurm release`; its exit status."""
    monkeypatch.setattr(command, "_controller", lambda config, live: made)
    with pytest.raises(typer.Exit) as ended:
        command.release(Path("mine.yaml"), band)
    return ended.value.exit_code


def test_release_without_a_list_says_what_is_in_the_band(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm = busy()
    controller(slurm, tmp_path).cycle()
    slurm.add(job(70, partition="other", priority=BAND.low + 1))
    (tmp_path / "assigned.json").unlink()
    for _ in range(2):
        assert release(controller(slurm, tmp_path), False, monkeypatch) == 3
        said = capsys.readouterr().out
        assert "no such list, and 6 waiting jobs" in said and "`rltune slurm release --band`" in said
    assert not slurm.released
    assert release(controller(slurm, tmp_path), True, monkeypatch) == 0 and set(slurm.released) == set(range(10, 16))
    assert release(controller(slurm, tmp_path), False, monkeypatch) == 0


def test_release_without_a_list_where_nothing_is_in_the_band(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert release(controller(busy(), tmp_path), False, monkeypatch) == 0


def test_whole_nodes_of_a_job_with_another_priority_are_taken_back_and_it_stays_theirs(tmp_path: Path) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path)
    made.cycle()
    made.cycle()
    slurm.queue[12] = replace(slurm.queue[12], priority=777, shared="NO")
    made.directory.write(Ownership(made.directory.assigned() | {12: Assignment(BAND.low, exclusive=True, seen=True)}))
    assert made.release_all("test") == (5, []) and slurm.queue[12].shared == "YES" and slurm.queue[12].priority == 777
    assert made.directory.ownership().overridden == {12: 0}
