"""Mean job completion time: end − submission."""

from rltune.metrics.metric import Metric, mean_of

METRIC = Metric(
    "jct",
    "jct_s",
    mean_of("jct_s"),
    noun="mean completion time",
    short="Completion time",
    improvement="Shorter completion",
    words=("shorter", "longer"),
    unit="s",
    format="seconds",
    rank=1,
)
