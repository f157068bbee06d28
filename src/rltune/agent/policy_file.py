"""A trained policy as one file: weights, what it was trained on, how. Loading it runs no code and needs no TensorFlow."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rltune.agent.learners import LEARNERS
from rltune.agent.scheduler_choice import CHOSEN
from rltune.environment.features import FEATURE_SETS, width_of
from rltune.environment.observation import CRITIC_WIDTH
from rltune.errors import DataError
from rltune.files import UNREADABLE, atomic_write
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.state import MAX_VISIBLE

FORMAT = 3
CRITIC_LAYERS = (32, 16, 8)
"""Widths of the critic's hidden layers (RLTune §3.2)."""


@dataclass(frozen=True)
class TrainedPolicy:
    """An actor's weights, layer by layer (kernel, bias), and the facts of its training."""

    weights: tuple[np.ndarray, ...]
    facts: dict[str, Any]

    @property
    def agent(self) -> str:
        """Which learner it comes from (rltune.agent.learners)."""
        return self.facts.get("agent", "rltune")

    @property
    def features(self) -> str:
        """Feature set it was trained on."""
        return self.facts["features"]

    def under(self, **changes: Any) -> TrainedPolicy:
        """The same agent with other fields of the scheduler configuration that training left it with."""
        chosen = self.facts.get("scheduler")
        return replace(self, facts=self.facts | {"scheduler": chosen | changes}) if chosen else self

    def logits(self, obs: np.ndarray) -> np.ndarray:
        """Logits [rows] of jobs [rows, width]: the actor's forward pass in numpy."""
        x = obs
        for i in range(0, len(self.weights), 2):
            x = x @ self.weights[i]
            x += self.weights[i + 1]
            if i + 2 < len(self.weights):
                np.maximum(x, 0.0, out=x)
        return x[:, 0]


def shapes_of(features: str, agent: str = "rltune") -> dict[str, list[int]]:
    """What actor and critic see, padded (paper §3.2): jobs of a queue × columns."""
    columns = LEARNERS[agent].columns or width_of(features)
    return {"actor": [MAX_VISIBLE, columns], "critic": [MAX_VISIBLE, CRITIC_WIDTH]}


def save_policy(path: Path | str, policy: TrainedPolicy) -> None:
    """Write the policy atomically; equal policies give equal bytes."""
    facts = json.dumps({"format": FORMAT, **policy.facts}, sort_keys=True)
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, facts=np.array(facts), **{f"w{i}": w for i, w in enumerate(policy.weights)})


def load_policy(path: Path | str) -> TrainedPolicy:
    """Read a policy; its arrays are plain numbers, pickled objects are refused.

    Raises DataError, with the reason, where the file is missing, broken, or of another format, or where this version
    has no such agent or feature set, or one of another width or window.
    """
    if not Path(path).is_file():
        raise DataError(f"{path}: no trained policy here; train the cell first")
    try:
        with np.load(path, allow_pickle=False) as data:
            facts = json.loads(str(data["facts"]))
            policy = TrainedPolicy(tuple(data[f"w{i}"] for i in range(len(data.files) - 1)), facts)
        wrong = _wrong_with(policy)
    except UNREADABLE as error:
        raise DataError(f"{path}: not a policy file of RLTune ({error}); train the cell again") from None
    if wrong:
        raise DataError(f"{path}: {wrong}; train the cell again")
    return policy


def _is_network(weights: tuple[np.ndarray, ...]) -> bool:
    """Whether these are kernels and biases of consecutive layers, the last of one unit."""
    kernels, biases = weights[::2], weights[1::2]
    if not weights or len(weights) % 2 or any(k.ndim != 2 for k in kernels) or kernels[-1].shape[1] != 1:
        return False
    chained = all(a.shape[1] == b.shape[0] for a, b in itertools.pairwise(kernels))
    return chained and all(b.shape == k.shape[1:] for k, b in zip(kernels, biases, strict=True))


def _wrong_with(policy: TrainedPolicy) -> str:
    """Why a policy cannot be used, "" where it can."""
    facts, weights = policy.facts, policy.weights
    if facts.get("format") != FORMAT:
        return f"policy format {facts.get('format')}, expected {FORMAT}"
    for name, found, known in (("agent", policy.agent, LEARNERS), ("features", policy.features, FEATURE_SETS)):
        if found not in known:
            return f"{name} {found!r}, expected one of {', '.join(known)}"
    if any(w.dtype.kind != "f" or not np.isfinite(w).all() for w in weights):
        return "weights that are not numbers"
    if not _is_network(weights):
        shapes = [w.shape for w in weights]
        return f"weights of shapes {shapes}, expected consecutive layers, the last of one logit"
    bias = facts.get("base_policy_bias", 0.0)
    if not isinstance(bias, (int, float)) or not 0 <= bias < np.inf:
        return f"base_policy_bias {bias!r}, expected a number from 0"
    if "scheduler" in facts:
        try:
            SchedulerConfig(**{name: facts["scheduler"][name] for name in CHOSEN})
        except (TypeError, ValueError, KeyError) as error:
            return f"scheduler {facts['scheduler']!r} ({error})"
    expected = shapes_of(policy.features, policy.agent)
    if facts.get("shapes", expected) != expected:
        return f"trained on observations of {facts['shapes']}, expected {expected}"
    width = expected["actor"][1]
    if len(weights[0]) != width:
        return f"an actor of {len(weights[0])} columns, expected {width}, those of {policy.features}"
    return ""
