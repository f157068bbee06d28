"""A training's state on disk, as plain numbers: what an interrupted training goes on from, to the same result."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rltune import COMPILED, sources_digest
from rltune.agent.exercise import Exercise
from rltune.files import aside

NAME = "checkpoint.npz"


@dataclass(frozen=True)
class Checkpoint:
    """Groups of arrays, and facts that JSON can hold."""

    arrays: dict[str, list[np.ndarray]]
    facts: dict[str, Any]


def identity(exercise: Exercise) -> dict[str, Any]:
    """What a checkpoint is of: only a training equal in all of this may go on from it.

    Of the jobs, those of the training and the validation part count, which are all that training sees.
    """
    seen = slice(0, exercise.split.validation[1])
    digest = hashlib.sha256()
    for jobs in (exercise.jobs, exercise.believed):
        digest.update(jobs.row[seen].tobytes() + jobs.cut[seen].tobytes())
    digest.update(exercise.layout.nodes.row.tobytes() + repr(exercise.split).encode())
    return {
        "cell": exercise.cell.name, "preset": exercise.preset.model_dump(), "rules": repr((exercise.setting, exercise.own)),
        "look-ahead": exercise.lookahead.model_dump(), "jobs": digest.hexdigest()[:16],
        "version": sources_digest("traces", *COMPILED),
    }  # fmt: skip


def save_checkpoint(folder: Path, of: dict[str, Any], checkpoint: Checkpoint) -> None:
    """Write the state atomically."""
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


def discard_checkpoint(folder: Path) -> None:
    """Delete the state of a training that is finished."""
    (folder / NAME).unlink(missing_ok=True)
