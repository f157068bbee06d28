"""SchedInspector (Zhang et al., "SchedInspector: A Batch Job Scheduling Inspector Using Reinforcement Learning",
HPDC '22).

The base policy decides which job is next, and the agent inspects that choice: it accepts, or rejects, which leaves the
queue until its next event. A small network trained by PPO, rewarded for what the sequence gains over the base policy
alone, as its authors do (the relative gain is their best reward too). The preset's ``residual`` is how reluctant it is
to reject at first; the last layer starts at zero, so that the greedy agent starts as its base policy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rltune.agent import training
from rltune.agent.exercise import Exercise
from rltune.agent.learners import Progress, Training
from rltune.agent.peers.inspecting import FEATURES, InspectorRanker
from rltune.agent.policy_file import TrainedPolicy
from rltune.config import Cell, Preset
from rltune.errors import ConfigError


class InspectorCourse(training.Course):
    """A training of the inspector."""

    agent = "schedinspector"
    features = FEATURES

    def _ranker(self, weights: tuple[np.ndarray, ...], rng: np.random.Generator | None = None) -> InspectorRanker:
        return InspectorRanker(TrainedPolicy(weights, {}).logits, self.observer, rng, self.preset.residual)


def learn(
    exercise: Exercise,
    preset: Preset,
    cell: Cell,
    threads: int | None = None,
    progress: Progress | None = None,
    folder: Path | None = None,
) -> Training:
    """Train the inspector by PPO; rltune.agent.learners says what the arguments are.

    Raises ConfigError for a preset without a residual: half of all choices would be rejected, and nothing run.
    """
    if not preset.residual:
        raise ConfigError("preset of agent schedinspector: residual: found 0, expected more (3: one in twenty rejected)")
    return training.learn(exercise, preset, cell, threads, progress, folder, InspectorCourse)
