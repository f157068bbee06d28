"""A trained policy as one file: weights, what it was trained on, how. Loading it runs nothing, TensorFlow neither."""

from __future__ import annotations

import itertools
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from rltune.agent.ways import Way
from rltune.config import Preset
from rltune.environment.features import FEATURE_SETS, width_of
from rltune.environment.observation import CRITIC_WIDTH
from rltune.errors import DataError
from rltune.files import atomic_write
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.state import MAX_VISIBLE

FORMAT = 2
AGENTS: tuple[str, ...] = get_args(Preset.model_fields["agent"].annotation)
MADE = {"rltune": None, "rlscheduler": None, "schedinspector": 8, "linear": 12}
"""Columns that an agent makes of those of its feature set; None: it takes them as they are."""
ATTENTION = 4
"""Arrays of an attention: kernel and bias of its keys, kernel and bias of its values."""
CRITIC_LAYERS = (32, 16, 8)
"""Widths of the critic's hidden layers."""


@dataclass(frozen=True)
class TrainedPolicy:
    """An actor's weights, layer by layer (kernel, bias), those of an attention last, and the facts of its training."""

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

    def probabilities(self, queue: np.ndarray, mask: np.ndarray, prior: np.ndarray | float = 0.0) -> np.ndarray:
        """Probability [window] of each slot of a padded queue [window, width] to go first, in the paper's fixed shape.

        Slots where ``mask`` [window] is 0 hold no job and get none, whatever stands in them; the others get what they
        do without padding. ``prior`` is added to the logits. Raises ValueError where the mask holds no job.
        """
        held = np.asarray(mask, bool)
        if not held.any():
            raise ValueError("mask: found no job, expected one at least")
        logits = np.full(len(held), -np.inf)
        logits[held] = self.logits(queue[held]) + np.broadcast_to(prior, held.shape)[held]
        weight = np.exp(logits - logits.max())
        return weight / weight.sum()

    def logits(self, obs: np.ndarray, offsets: np.ndarray | None = None) -> np.ndarray:
        """Logits [rows] of jobs [rows, width]: the actor's forward pass in numpy.

        ``offsets`` [queues + 1]: where each queue begins and the last one ends; None: it is one queue. Only an actor
        with attention asks which queue a job is in.
        """
        x, layers = obs, self.weights
        if self.facts.get("attention"):
            offsets = np.array([0, len(obs)]) if offsets is None else offsets
            layers, x = layers[:-ATTENTION], np.concatenate([obs, attend(obs, offsets, *layers[-ATTENTION:])], axis=1)
        for i in range(0, len(layers), 2):
            x = x @ layers[i]
            x += layers[i + 1]
            if i + 2 < len(layers):
                np.maximum(x, 0.0, out=x)
        return x[:, 0]


def attend(
    obs: np.ndarray,
    offsets: np.ndarray,
    key: np.ndarray,
    key_bias: np.ndarray,
    value: np.ndarray,
    value_bias: np.ndarray,
) -> np.ndarray:
    """What an attention makes of each queue, beside each of its jobs [rows, units]: the mean of max(0, obs · value),
    weighted by the softmax of obs · key over the queue."""
    begins = offsets[:-1]
    score = obs @ key[:, 0] + key_bias
    weight = np.exp(score - np.repeat(np.maximum.reduceat(score, begins), np.diff(offsets)))
    seen = np.maximum(obs @ value + value_bias, 0.0)
    total = np.add.reduceat(weight[:, None] * seen, begins, axis=0) / np.add.reduceat(weight, begins)[:, None]
    return np.repeat(total, np.diff(offsets), axis=0)


def shapes_of(features: str, agent: str = "rltune") -> dict[str, list[int]]:
    """What actor and critic see, padded (paper §3.2): jobs of a queue × columns."""
    return {"actor": [MAX_VISIBLE, MADE[agent] or width_of(features)], "critic": [MAX_VISIBLE, CRITIC_WIDTH]}


def save_policy(path: Path, policy: TrainedPolicy) -> None:
    """Write the policy atomically; equal policies give equal bytes."""
    facts = json.dumps({"format": FORMAT, **policy.facts}, sort_keys=True)
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, facts=np.array(facts), **{f"w{i}": w for i, w in enumerate(policy.weights)})


def load_policy(path: Path) -> TrainedPolicy:
    """Read a policy; its arrays are plain numbers, pickled objects are refused.

    Raises DataError, with the reason, where the file is missing, broken, or of another format, or where this version
    has no such agent or feature set, or one of another width or window.
    """
    if not path.is_file():
        raise DataError(f"{path}: no trained policy here; train the cell first")
    try:
        with np.load(path, allow_pickle=False) as data:
            facts = json.loads(str(data["facts"]))
            weights = tuple(data[f"w{i}"] for i in range(len(data.files) - 1))
        wrong = _wrong_with(facts, weights)
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError, EOFError, OSError) as error:
        raise DataError(f"{path}: not a policy file of RLTune ({error}); train the cell again") from None
    if wrong:
        raise DataError(f"{path}: {wrong}; train the cell again")
    return TrainedPolicy(weights, facts)


def _is_attention(weights: tuple[np.ndarray, ...], width: int, units: int) -> bool:
    """Whether these are an attention's over rows of that width, of so many units."""
    return [w.shape for w in weights] == [(width, 1), (1,), (width, units), (units,)]


def _is_network(weights: tuple[np.ndarray, ...]) -> bool:
    """Whether these are kernels and biases of layers that follow on one another, the last of one unit."""
    kernels, biases = weights[::2], weights[1::2]
    if not weights or len(weights) % 2 or any(k.ndim != 2 for k in kernels) or kernels[-1].shape[1] != 1:
        return False
    chained = all(a.shape[1] == b.shape[0] for a, b in itertools.pairwise(kernels))
    return chained and all(b.shape == k.shape[1:] for k, b in zip(kernels, biases, strict=True))


def _wrong_with(facts: dict[str, Any], weights: tuple[np.ndarray, ...]) -> str:
    """Why a policy cannot be used, "" where it can."""
    if facts.get("format") != FORMAT:
        return f"policy format {facts.get('format')}, expected {FORMAT}"
    if facts.get("agent", "rltune") not in AGENTS:
        return f"agent {facts['agent']!r}, expected one of {', '.join(AGENTS)}"
    if facts["features"] not in FEATURE_SETS:
        return f"features {facts['features']!r}, expected one of {', '.join(FEATURE_SETS)}"
    if any(w.dtype.kind != "f" or not np.isfinite(w).all() for w in weights):
        return "weights that are not numbers"
    units = facts.get("attention", 0)
    if not isinstance(units, int) or units < 0:
        return f"attention {units!r}, expected a number of units from 0"
    attention, weights = (weights[-ATTENTION:], weights[:-ATTENTION]) if units else ((), weights)
    if facts.get("agent", "rltune") != "linear" and not _is_network(weights):
        return (
            f"weights of shapes {[w.shape for w in weights]}, expected layers that follow on one another, to one logit"
        )
    base_policy_bias = facts.get("base_policy_bias", 0.0)
    if not isinstance(base_policy_bias, (int, float)) or not 0 <= base_policy_bias < np.inf:
        return f"base_policy_bias {base_policy_bias!r}, expected a number from 0"
    if "way" in facts:
        try:
            Way(**facts["way"]).of(SchedulerConfig("fifo"))
        except (TypeError, ValueError) as error:
            return f"way {facts['way']!r} ({error})"
    agent = facts.get("agent", "rltune")
    expected = shapes_of(facts["features"], agent)
    if "shapes" in facts and facts["shapes"] != expected:
        return f"trained on observations of {facts['shapes']}, expected {expected}"
    width = expected["actor"][1]
    if units and not _is_attention(attention, width, units):
        return f"an attention of shapes {[w.shape for w in attention]}, expected {units} units over {width} columns"
    if weights[0].shape[0] != width + units:
        of = f", and {units} of its attention" if units else ""
        return f"an actor of {len(weights[0])} columns, expected {width}, those of {facts['features']}{of}"
    return ""
