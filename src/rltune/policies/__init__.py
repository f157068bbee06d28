"""Base policies: a file each that assigns a ``Policy`` to ``POLICY``; and a decorator for custom ones."""

from rltune.policies.policy import SYMBOLS, Facts, Policy
from rltune.policies.registry import CUSTOM, FIRST_DYNAMIC, FIRST_FAIR, IDS, POLICIES, TITLES, Queue, policy

__all__ = [
    "CUSTOM",
    "FIRST_DYNAMIC",
    "FIRST_FAIR",
    "IDS",
    "POLICIES",
    "SYMBOLS",
    "TITLES",
    "Facts",
    "Policy",
    "Queue",
    "policy",
]
