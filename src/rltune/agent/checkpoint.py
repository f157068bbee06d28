"""A training's state on disk, as plain numbers: what an interrupted training goes on from, to the same result."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rltune.agent.trials import NAME as TRIALS
from rltune.config import Preset
from rltune.files import aside

NAME = "checkpoint.npz"


@dataclass(frozen=True)
class Checkpoint:
    """Groups of arrays, and facts that JSON can hold."""

    arrays: dict[str, list[np.ndarray]]
    facts: dict[str, Any]


class Resumable(Protocol):
    """A training that can go back to a state."""

    preset: Preset

    @property
    def done(self) -> int:
        """Epochs so far."""

    def restore(self, found: Checkpoint) -> None:
        """Go back to a state."""


def save_checkpoint(folder: Path, of: dict[str, Any], checkpoint: Checkpoint) -> None:
    """Write the state of the training that ``of`` tells apart (rltune.agent.exercise.Exercise.identity), atomically."""
    arrays = {f"{group}{i}": a for group, members in checkpoint.arrays.items() for i, a in enumerate(members)}
    text = json.dumps({"of": of, "groups": {g: len(m) for g, m in checkpoint.arrays.items()}, **checkpoint.facts})
    with aside(folder / NAME) as temporary, open(temporary, "wb") as file:
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
        print(f"going on after epoch {course.done} of {course.preset.epochs}: an earlier training was stopped", flush=True)
    elif why:
        print(f"{why}; training from the beginning", flush=True)


def discard_checkpoint(folder: Path) -> None:
    """Delete what a training keeps for going on; it is finished."""
    for name in (NAME, TRIALS):
        (folder / name).unlink(missing_ok=True)
