"""Mean bounded slowdown: completion time over run time, at least 1 (Feitelson and Rudolph 1998)."""

from rltune.metrics.metric import Metric, mean_of

METRIC = Metric(
    "bsld",
    "bsld",
    mean_of("bsld"),
    noun="mean bounded slowdown",
    short="Slowdown",
    improvement="Lower slowdown",
    rank=2,
)
