"""SchedInspector (Zhang et al., "SchedInspector: A Batch Job Scheduling Inspector Using Reinforcement Learning",
HPDC '22).

The base policy decides which job is next, and the agent inspects that choice: it accepts, or rejects, which leaves the
queue until its next event. A small network trained by PPO, rewarded for what the sequence gains over the base policy
alone, as its authors do (the relative gain is their best reward too). The preset's ``base_policy_bias`` is how reluctant it is
to reject at first; the last layer starts at zero, so that the greedy agent starts as its base policy.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from rltune.agent import training
from rltune.agent.peers.inspecting import FEATURES, InspectorRanker
from rltune.agent.policy_file import TrainedPolicy


class InspectorCourse(training.Course):
    """A training of the inspector."""

    agent = "schedinspector"
    features = FEATURES

    def _ranker(self, weights: tuple[np.ndarray, ...], rng: np.random.Generator | None = None) -> InspectorRanker:
        return InspectorRanker(TrainedPolicy(weights, {}).logits, self.observer, rng, self.preset.base_policy_bias)


learn = partial(training.learn, kind=InspectorCourse)
"""Train the inspector by PPO; rltune.agent.learners says what the arguments are."""
