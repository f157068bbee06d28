"""RLScheduler (Zhang et al., "RLScheduler: An Automated HPC Batch Job Scheduler Using Reinforcement Learning", SC '20).

A kernel network, one small MLP shared by all jobs of the queue, scores each job by raw numbers of it, and PPO trains it
from nothing. That is RLTune's learner with other columns (feature set ``rlscheduler``, whatever the cell's) and without
the base policy to start from. Its reward is the metric of the whole sequence, with its sign reversed; here it is the
gap to the base policy (rltune.environment.reward), which is the same but for a shift and a scale that belong to the
sequence: it keeps one sequence that happens to be crowded from drowning the others, for which its authors filter the
sequences they train on.
"""

from __future__ import annotations

from functools import partial

from rltune.agent import training


class RLSchedulerCourse(training.Course):
    """A training of the kernel network."""

    agent = "rlscheduler"
    features = "rlscheduler"


learn = partial(training.learn, kind=RLSchedulerCourse)
"""Train the kernel network by PPO; rltune.agent.learners says what the arguments are."""
