"""Mean of the jobs' waits (rltune.simulator.metrics.job_table)."""

from rltune.metrics.metric import Metric, mean_of

METRIC = Metric(
    "wait",
    "wait_s",
    mean_of("wait_s"),
    noun="mean wait",
    short="Wait",
    improvement="Less wait",
    words=("less", "more"),
    unit="s",
    format="seconds",
    rank=0,
)
