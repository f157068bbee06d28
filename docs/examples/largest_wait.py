"""The largest wait of a sequence."""

from rltune.metrics.metric import Metric


def compute(jobs, gpus):
    """The longest that a job of each sequence waited, s."""
    return jobs.groupby("sequence")["wait_s"].max()


METRIC = Metric(
    "largest_wait",
    "longest_wait_s",
    compute,
    noun="largest wait",
    short="Largest wait",
    improvement="Shorter largest wait",
    words=("shorter", "longer"),
    unit="s",
    format="seconds",
)
