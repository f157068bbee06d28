"""What a controller leaves on disk: nothing of it may be lost, and where it is taken away the controller knows it by heart."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from fake_slurm import busy, controller, priorities

from rltune.errors import DataError
from rltune.slurm import state_directory as module
from rltune.slurm.controller import Stop
from rltune.slurm.ownership import Assignment, Ownership
from rltune.slurm.service import DONE, GAVE_UP, Service
from rltune.slurm.state_directory import StateDirectory


def taken_away(folder: Path, what: str) -> None:
    """Somebody tidies up."""
    if what == "folder":
        shutil.rmtree(folder)
    elif what == "lock":
        (folder / "lock").unlink()
    elif what == "list":
        (folder / "assigned.json").unlink()
    elif what == "content":
        (folder / "assigned.json").write_text('{"format": 2, "jobs": {}, "overridden": {}}')
    else:
        (folder / "assigned.json").write_text("{half")


@pytest.mark.parametrize("what", ["folder", "lock", "list", "content", "half"])
def test_what_is_taken_away_while_it_runs_makes_it_hand_back(tmp_path: Path, what: str) -> None:
    slurm, said = busy(), []
    (tmp_path / "state").mkdir()
    made = controller(slurm, tmp_path, state=tmp_path / "state")

    def say(line: str) -> None:
        said.append(line)
        if "6 ranked" in line:
            taken_away(tmp_path / "state", what)

    made.say = say
    assert Service(made, between_tries_s=0.0).run() == GAVE_UP
    assert priorities(slurm) == {n: slurm.computed[n] for n in range(10, 16)}
    assert "released 6 jobs" in said[-1] and str(tmp_path / "state") in said[-1]
    assert len([line for line in said if "ranked" in line]) == 1, "no further cycle"
    assert not StateDirectory(tmp_path / "state").assigned(), "and the list is written anew"


@pytest.mark.parametrize("what", ["folder", "list", "half"])
def test_what_is_taken_away_just_before_it_is_told_to_stop(tmp_path: Path, what: str) -> None:
    slurm = busy()
    made = controller(slurm, tmp_path, state=tmp_path / "state", interval_s=600.0)
    made.say = lambda line: None
    service = Service(made, between_tries_s=0.0)
    cycle = made.cycle

    def last() -> object:
        done = cycle()
        taken_away(tmp_path / "state", what)
        service.stop.set()
        return done

    made.cycle = last  # type: ignore[method-assign,assignment]
    assert service.run() == DONE and priorities(slurm) == {n: slurm.computed[n] for n in range(10, 16)}


def test_a_second_controller_on_a_new_lock_is_noticed(tmp_path: Path) -> None:
    slurm = busy()
    first, second = controller(slurm, tmp_path), controller(slurm, tmp_path)
    with first.directory.lock():
        first.cycle()
        (tmp_path / "lock").unlink()
        with second.directory.lock(), pytest.raises(Stop, match="lock: somebody has removed it"):
            first.cycle()


def test_a_list_that_is_not_there_at_a_start_is_an_empty_one(tmp_path: Path) -> None:
    assert StateDirectory(tmp_path / "none").ownership() == Ownership() and not (tmp_path / "none").exists()


def test_the_list_comes_back_as_it_was_written(tmp_path: Path) -> None:
    jobs = {7: Assignment(5, 6, True, 1, True), 12: Assignment(9)}
    StateDirectory(tmp_path).write(Ownership(jobs, {3: 1}))
    assert StateDirectory(tmp_path).ownership() == Ownership(jobs, {3: 1})
    assert (
        "2 jobs have been assigned" in StateDirectory(tmp_path).describe()
        and "priorities of 1 jobs" in StateDirectory(tmp_path).describe()
    )


def test_a_list_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "assigned.json").write_text('{"format": 3, "jobs": {}}')
    with pytest.raises(DataError, match="format 3, expected 2"):
        StateDirectory(tmp_path).ownership()


def test_the_list_is_on_the_disk_before_it_has_its_name_and_its_name_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Content, rename, folder: so that a loss of power leaves the old list or the new one."""
    done: list[str] = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda number: (done.append(os.readlink(f"/proc/self/fd/{number}")), sync(number))[1]
    )
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append("rename"), replace(a, b))[1])
    kept = StateDirectory(tmp_path)
    kept.write(Ownership({7: Assignment(5)}))
    assert done == [str(tmp_path / f".assigned.{os.getpid()}.json"), "rename", str(tmp_path)]
    kept.write(Ownership({7: Assignment(5)}))
    assert len(done) == 3, "what is there is not written again"


def test_a_line_that_was_cut_off_does_not_spoil_the_next(tmp_path: Path) -> None:
    kept = StateDirectory(tmp_path)
    kept.write_journal({"event": "one"})
    with open(kept.journal_path, "a") as file:
        file.write('{"event":"tw')  # no room for the rest
    kept.write_journal({"event": "three"}, {"event": "four"})
    kept.write_journal({"event": "five"})
    lines = kept.journal_path.read_text().splitlines()
    assert [json.loads(lines[k])["event"] for k in (0, 2, 3, 4)] == ["one", "three", "four", "five"] and len(lines) == 5


def test_a_long_journal_is_put_aside_and_the_one_before_it_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "JOURNAL_BYTES", 10)
    kept = StateDirectory(tmp_path)
    for number in range(3):
        kept.write_journal({"event": f"number {number}"})
    assert "number 2" in kept.journal_path.read_text() and "number 1" in (tmp_path / "decisions.1.jsonl").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"decisions.jsonl", "decisions.1.jsonl"}
