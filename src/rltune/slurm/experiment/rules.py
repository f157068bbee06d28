"""A rule's order as a policy, so that the very controller of an agent can write it."""

from __future__ import annotations

import numpy as np

from rltune.agent.policy_file import TrainedPolicy
from rltune.environment.features import width_of

FEATURES = "engineered"


def in_the_order_of(rule: str) -> TrainedPolicy:
    """A policy that ranks as the base policy ``rule`` does: a network of zeros, and a logit less for every place."""
    layer = (np.zeros((width_of(FEATURES), 1), np.float32), np.zeros(1, np.float32))
    return TrainedPolicy(layer, {"features": FEATURES, "policy": rule, "base_policy_bias": 1.0})
