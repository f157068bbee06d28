"""Mean job completion time: end − submission."""

from rltune.metrics.metric import Metric


def compute(jobs, gpus):
    """Mean over the jobs of each sequence, s."""
    return jobs.groupby("sequence")["jct_s"].mean()


METRIC = Metric(
    "jct",
    "jct_s",
    compute,
    noun="mean completion time",
    short="Completion time",
    improvement="Shorter completion",
    words=("shorter", "longer"),
    unit="s",
    format="seconds",
    rank=1,
)
