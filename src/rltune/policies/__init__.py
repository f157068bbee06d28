"""Base policies: a file each, one signature ``score(job: Facts)``, lower first; and a decorator for one's own."""

from rltune.policies.facts import Facts
from rltune.policies.registry import FIRST_DYNAMIC, FIRST_FAIR, IDS, OWN, TITLES, Queue, compiled_score, policy

__all__ = ["FIRST_DYNAMIC", "FIRST_FAIR", "IDS", "OWN", "TITLES", "Facts", "Queue", "compiled_score", "policy"]
