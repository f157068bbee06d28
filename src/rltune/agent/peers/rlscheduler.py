"""RLScheduler (Zhang et al., "RLScheduler: An Automated HPC Batch Job Scheduler Using Reinforcement Learning", SC '20).

A kernel network, one small MLP shared by all jobs of the queue, scores each job by raw numbers of it, and PPO trains it
from nothing. That is RLTune's learner with other columns (feature set ``rlscheduler``, whatever the cell's) and without
the base policy to start from. Its reward is the metric of the whole sequence, with its sign reversed; here it is the
gap to the base policy (rltune.environment.reward), which is the same but for a shift and a scale that belong to the
sequence: it keeps one sequence that happens to be crowded from drowning the others, for which its authors filter the
sequences they train on.
"""

from __future__ import annotations

from pathlib import Path

from rltune.agent import training
from rltune.agent.exercise import Exercise
from rltune.agent.learners import Progress, Training
from rltune.config import Cell, Preset
from rltune.errors import ConfigError


class RLSchedulerCourse(training.Course):
    """A training of the kernel network."""

    agent = "rlscheduler"
    features = "rlscheduler"


def learn(
    exercise: Exercise,
    preset: Preset,
    cell: Cell,
    threads: int | None = None,
    progress: Progress | None = None,
    folder: Path | None = None,
) -> Training:
    """Train the kernel network by PPO; rltune.agent.learners says what the arguments are.

    Raises ConfigError for a preset that starts from the base policy.
    """
    if preset.residual:
        raise ConfigError(f"preset of agent rlscheduler: residual: found {preset.residual:g}, expected 0")
    return training.learn(exercise, preset, cell, threads, progress, folder, RLSchedulerCourse)
