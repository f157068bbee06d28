"""The learners by name: how an agent of each kind is trained, and how one that is trained ranks a queue.

A learner is a module with two functions:

    learn(exercise, threads, progress, folder) -> Training
    ranker(policy, jobs, layout) -> Ranker

It is loaded when it is first used: TensorFlow takes seconds. ``folder`` is where it may keep what it needs to go on
after an interruption and what it logs; None: nowhere.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rltune.agent.exercise import Exercise
from rltune.agent.policy_file import TrainedPolicy
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.simulator.batch import Ranker

MODULES = {
    "rltune": "rltune.agent.training",
    "rlscheduler": "rltune.agent.peers.rlscheduler",
    "schedinspector": "rltune.agent.peers.schedinspector",
    "linear": "rltune.agent.peers.linear",
}
RANKERS = {
    "rltune": "rltune.agent.rollout",
    "rlscheduler": "rltune.agent.rollout",
    "schedinspector": "rltune.agent.peers.inspecting",
    "linear": "rltune.agent.peers.linear",
}
"""Where the function ``ranker`` of each is: acting needs no TensorFlow."""

Progress = Callable[[dict[str, float]], None]
"""Called with each row of the history."""


@dataclass(frozen=True)
class Training:
    """What came out."""

    policy: TrainedPolicy
    history: pd.DataFrame
    runs_on: str


def ranker_of(policy: TrainedPolicy, jobs: Jobs, layout: Layout) -> Ranker:
    """A trained policy as a ranker of runs on ``jobs``, greedy."""
    return importlib.import_module(RANKERS[policy.agent]).ranker(policy, jobs, layout)


def train(
    exercise: Exercise, threads: int | None = None, progress: Progress | None = None, folder: Path | None = None
) -> Training:
    """Train the learner that the exercise's preset names, on the training part; chosen on the validation part.

    The test part is not touched. The policy's facts say what it was trained on and how, and whether it learned.
    """
    return importlib.import_module(MODULES[exercise.preset.agent]).learn(exercise, threads, progress, folder)
