"""A trained policy as one file: weights, what it was trained on, how. Loading it needs no TensorFlow."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rltune.errors import DataError
from rltune.files import aside

FORMAT = 1


@dataclass(frozen=True)
class TrainedPolicy:
    """The actor's weights, layer by layer (kernel, bias), and the facts of its training."""

    weights: tuple[np.ndarray, ...]
    facts: dict[str, Any]

    @property
    def features(self) -> str:
        """Feature set it was trained on."""
        return self.facts["features"]

    def logits(self, obs: np.ndarray) -> np.ndarray:
        """Logits [rows] of jobs [rows, 8]: the actor's forward pass in numpy."""
        x = obs
        for i in range(0, len(self.weights), 2):
            x = x @ self.weights[i] + self.weights[i + 1]
            if i + 2 < len(self.weights):
                x = np.maximum(x, 0.0)
        return x[:, 0]


def save_policy(path: Path, policy: TrainedPolicy) -> None:
    """Write the policy atomically; equal policies give equal bytes."""
    facts = json.dumps({"format": FORMAT, **policy.facts}, sort_keys=True)
    with aside(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, facts=np.array(facts), **{f"w{i}": w for i, w in enumerate(policy.weights)})


def load_policy(path: Path) -> TrainedPolicy:
    """Read a policy. Raises DataError where the file is missing, broken, or of another format."""
    if not path.is_file():
        raise DataError(f"{path}: no trained policy here; train the cell first")
    try:
        with np.load(path) as data:
            facts = json.loads(str(data["facts"]))
            weights = tuple(data[f"w{i}"] for i in range(len(data.files) - 1))
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, OSError) as error:
        raise DataError(f"{path}: not a policy file of RLTune ({error}); train the cell again") from None
    if facts.get("format") != FORMAT:
        raise DataError(f"{path}: policy format {facts.get('format')}, expected {FORMAT}; train the cell again")
    return TrainedPolicy(weights, facts)
