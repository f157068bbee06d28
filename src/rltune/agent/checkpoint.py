"""A training's state on disk, as plain numbers; an interrupted training resumes from it, with the same result."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from rltune.files import UNREADABLE, atomic_write

NAME = "checkpoint.npz"
Arrays = dict[str, list[np.ndarray]]


def save_checkpoint(folder: Path, identity: dict[str, Any], arrays: Arrays, facts: dict[str, Any]) -> None:
    """Write the state of the training of this identity (rltune.agent.task.TrainingTask), atomically."""
    named = {f"{group}{i}": array for group, members in arrays.items() for i, array in enumerate(members)}
    text = json.dumps({"of": identity, "groups": {g: len(m) for g, m in arrays.items()}, "facts": facts})
    with atomic_write(folder / NAME) as temporary, open(temporary, "wb") as file:
        np.savez(file, text=np.array(text), **named)


def load_checkpoint(folder: Path, identity: dict[str, Any]) -> tuple[tuple[Arrays, dict[str, Any]] | None, str]:
    """((arrays, facts) to resume from or None, why there is none: "" without a file)."""
    path = folder / NAME
    if not path.is_file():
        return None, ""
    try:
        with np.load(path, allow_pickle=False) as data:
            kept = json.loads(str(data["text"]))
            arrays = {group: [data[f"{group}{i}"] for i in range(n)] for group, n in kept["groups"].items()}
    except UNREADABLE as error:
        return None, f"{path}: cannot be read ({error})"
    other = [name for name, value in identity.items() if kept["of"].get(name) != value]
    return (None, f"{path}: of another {', '.join(other)}") if other else ((arrays, kept["facts"]), "")
