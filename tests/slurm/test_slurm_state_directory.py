"""What a controller leaves on disk: nothing of it may be lost, and where it is taken away the controller knows it by heart."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from fake_slurm import assigned, busy, controller

from rltune.errors import DataError
from rltune.slurm.controller import Stop
from rltune.slurm.ownership import Assignment, Ownership
from rltune.slurm.service import DONE, GAVE_UP, Service
from rltune.slurm.state_directory import StateDirectory

TAKEN = {
    "folder": lambda folder: shutil.rmtree(folder),
    "lock": lambda folder: (folder / "lock").unlink(),
    "list": lambda folder: (folder / "assigned.json").unlink(),
    "content": lambda folder: (folder / "assigned.json").write_text('{"format": 2, "jobs": {}, "overridden": {}}'),
    "half": lambda folder: (folder / "assigned.json").write_text("{half"),
}
"""Somebody tidies up."""


@pytest.mark.parametrize("stopped_first", [False, True])
@pytest.mark.parametrize("what", TAKEN)
def test_what_is_taken_away_while_it_runs_makes_it_release_all(tmp_path: Path, what: str, stopped_first: bool) -> None:
    """From what it knows by heart; a stop that comes first is an ordinary end."""
    slurm, state = busy(), tmp_path / "state"

    def say(line: str) -> None:
        if "ranked=6" in line:
            TAKEN[what](state)
            if stopped_first:
                service.stop.set()

    made = controller(slurm, tmp_path, state=state, say=say)
    service = Service(made, between_tries_s=0.0)
    assert service.run() == (DONE if stopped_first else GAVE_UP) and slurm.has_all_back()
    assert "released 6 jobs" in made.said[-1] and (stopped_first or str(state) in made.said[-1])
    assert len([line for line in made.said if "ranked" in line]) == 1, "no further cycle"
    assert not assigned(made), "and the list is written anew"


def test_a_second_controller_on_a_new_lock_is_noticed(tmp_path: Path) -> None:
    slurm = busy()
    first, second = controller(slurm, tmp_path), controller(slurm, tmp_path)
    with first.directory.lock():
        first.cycle()
        (tmp_path / "lock").unlink()
        with second.directory.lock(), pytest.raises(Stop, match="lock: somebody has removed it"):
            first.cycle()


def test_the_list_comes_back_as_it_was_written(tmp_path: Path) -> None:
    assert StateDirectory(tmp_path / "none").ownership() == Ownership() and not (tmp_path / "none").exists()
    written = Ownership({7: Assignment(5, 6, True, 1, True), 8: Assignment(4, ended_s=1e9), 12: Assignment(9)}, {3: 1})
    StateDirectory(tmp_path).write(written)
    assert StateDirectory(tmp_path).ownership() == written
    described = StateDirectory(tmp_path).describe()
    assert "2 jobs have been assigned" in described and "priorities of 1 jobs" in described
    (tmp_path / "assigned.json").write_text('{"format": 2, "jobs": {}}')
    with pytest.raises(DataError, match="format 2, expected 3"):
        StateDirectory(tmp_path).ownership()


def test_the_list_is_on_the_disk_before_it_has_its_name_and_its_name_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Content, rename, folder: so that a loss of power leaves the old list or the new one."""
    done: list[str] = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda number: (done.append(os.readlink(f"/proc/self/fd/{number}")), sync(number)))
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append("rename"), replace(a, b)))
    kept = StateDirectory(tmp_path)
    for _ in range(2):  # what is there is not written again
        kept.write(Ownership({7: Assignment(5)}))
    assert done == [str(tmp_path / f".assigned.{os.getpid()}.json"), "rename", str(tmp_path)]
