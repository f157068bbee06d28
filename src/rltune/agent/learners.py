"""The learners by name: who trains an agent of each kind, and who ranks a queue by what was learned.

RLTune's own and those it is compared with, in its simulator, on its sequences. Classes are loaded
when they are first used: acting needs no TensorFlow, and loading it takes seconds.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Learner:
    """A kind of agent."""

    ranker: str = "rltune.agent.rollout:AgentRanker"
    trainer: str = "rltune.agent.trainer:Trainer"
    features: str = ""
    """Feature set; empty: the cell's."""
    columns: int = 0
    """Columns it makes of those of its feature set; 0: it takes them as they are."""


LEARNERS = {
    "rltune": Learner(),
    # RLScheduler (Zhang et al., SC '20): a kernel network on raw columns that PPO trains from nothing. RLTune's learner
    # with other columns; its reward, too, is the gap to the base policy, which keeps a crowded sequence from drowning
    # the others (its authors filter the sequences they train on for that).
    "rlscheduler": Learner(features="rlscheduler"),
    "schedinspector": Learner("rltune.agent.peers.schedinspector:InspectorRanker", features="rich", columns=8),
    "linear": Learner(
        "rltune.agent.peers.linear_score:LinearRanker", "rltune.agent.peers.linear:LinearTrainer", "rich", columns=12
    ),
}
