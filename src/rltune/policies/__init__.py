"""Base policies: a file each, one signature ``score(submit_s, estimate_s, gpus, wait_s)``, lower first."""

from rltune.policies.registry import AGENT, IDS, TITLES, compiled_score

__all__ = ["AGENT", "IDS", "TITLES", "compiled_score"]
