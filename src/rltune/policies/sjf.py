"""Shortest job first (paper Table 5): by estimated run time."""

from rltune.policies.policy import Policy


def score(job):
    """Shorter estimates first."""
    return job.estimate_s


POLICY = Policy("sjf", "SJF", score, "r", "shortest job first", rank=1, in_table5=True)
