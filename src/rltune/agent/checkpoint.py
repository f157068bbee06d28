"""A training's state on disk, as plain numbers: what an interrupted training goes on from, to the same result."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rltune.agent.logs import Log
from rltune.agent.trials import NAME as TRIALS
from rltune.config import Preset
from rltune.files import atomic_write

NAME = "checkpoint.npz"


@dataclass(frozen=True)
class Checkpoint:
    """Groups of arrays, and facts that JSON can hold."""

    arrays: dict[str, list[np.ndarray]]
    facts: dict[str, Any]


class Resumable(Protocol):
    """A training under way, epoch by epoch, that can go back to a state."""

    preset: Preset
    rows: list[dict[str, float]]
    """The history so far."""

    @property
    def done(self) -> int:
        """Epochs so far."""

    @property
    def over(self) -> bool:
        """Whether there is nothing more to do."""

    @property
    def validated(self) -> bool:
        """Whether the last epoch was followed by a validation."""

    def epoch(self) -> dict[str, float]:
        """One epoch; its row of the history."""

    def state(self) -> Checkpoint:
        """Everything that the rest depends on."""

    def restore(self, found: Checkpoint) -> None:
        """Go back to a state."""


def carry_out(
    course: Resumable, of: dict[str, Any], folder: Path | None, progress: Callable[[dict[str, float]], None] | None
) -> None:
    """All that is left of a course: logged, told to ``progress`` and, with ``folder``, gone on with from the state kept
    there (of the training that ``of`` tells apart) and kept after each validation."""
    if folder is not None:
        resume(course, of, folder)
    log = Log(folder, course.rows)
    while not course.over:
        row = course.epoch()
        log.epoch(course.rows)
        if progress:
            progress(row)
        if folder is not None and course.validated:
            save_checkpoint(folder, of, course.state())
    log.close()


def save_checkpoint(folder: Path, of: dict[str, Any], checkpoint: Checkpoint) -> None:
    """Write the state of the training that ``of`` tells apart (rltune.agent.exercise.Exercise.identity), atomically."""
    arrays = {f"{group}{i}": a for group, members in checkpoint.arrays.items() for i, a in enumerate(members)}
    text = json.dumps({"of": of, "groups": {g: len(m) for g, m in checkpoint.arrays.items()}, **checkpoint.facts})
    with atomic_write(folder / NAME) as temporary, open(temporary, "wb") as file:
        np.savez(file, facts=np.array(text), **arrays)


def load_checkpoint(folder: Path, of: dict[str, Any]) -> tuple[Checkpoint | None, str]:
    """(State to go on from or None, why there is none: "" where there is no file)."""
    path = folder / NAME
    if not path.is_file():
        return None, ""
    try:
        with np.load(path, allow_pickle=False) as data:
            facts = json.loads(str(data["facts"]))
            groups = facts.pop("groups")
            arrays = {group: [data[f"{group}{i}"] for i in range(n)] for group, n in groups.items()}
        found = facts.pop("of")
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError, EOFError, OSError) as error:
        return None, f"{path}: cannot be read ({error})"
    other = [name for name, value in of.items() if found.get(name) != value]
    if other:
        return None, f"{path}: of another {', '.join(other)}"
    return Checkpoint(arrays, facts), ""


def resume(course: Resumable, of: dict[str, Any], folder: Path) -> None:
    """Bring a course back to the state kept in ``folder``, if there is one of this training; says what it does."""
    found, why = load_checkpoint(folder, of)
    if found is not None:
        course.restore(found)
        epochs = course.preset.epochs
        print(f"going on after epoch {course.done} of {epochs}: an earlier training was stopped", flush=True)
    elif why:
        print(f"{why}; training from the beginning", flush=True)


def discard_checkpoint(folder: Path) -> None:
    """Delete what a training keeps for going on; it is finished."""
    for name in (NAME, TRIALS):
        (folder / name).unlink(missing_ok=True)
