"""Base policies: a file each, one signature ``score(submit_s, estimate_s, gpus, wait_s)``, lower first."""

from rltune.policies.registry import IDS, TITLES, compiled_score

__all__ = ["IDS", "TITLES", "compiled_score"]
