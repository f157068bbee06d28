"""Mean bounded slowdown: completion time over run time, at least 1 (Feitelson and Rudolph 1998)."""

from rltune.metrics.metric import Metric


def compute(jobs, gpus):
    """Mean over the jobs of each sequence."""
    return jobs.groupby("sequence")["bsld"].mean()


METRIC = Metric(
    "bsld", "bsld", compute, noun="mean bounded slowdown", short="Slowdown", improvement="Lower slowdown", rank=2
)
