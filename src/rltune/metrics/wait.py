"""Mean of the jobs' waits (rltune.simulator.metrics.job_table)."""

from rltune.metrics.metric import Metric


def compute(jobs, gpus):
    """Mean over the jobs of each sequence, s."""
    return jobs.groupby("sequence")["wait_s"].mean()


METRIC = Metric(
    "wait",
    "wait_s",
    compute,
    noun="mean wait",
    short="Wait",
    improvement="Less wait",
    words=("less", "more"),
    unit="s",
    format="seconds",
    rank=0,
)
