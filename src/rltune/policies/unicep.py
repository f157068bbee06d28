"""UNICEP of Tang et al. (CLUSTER '09), written UNICEF there; paper Table 5."""

from math import log2

from rltune.policies.policy import Policy


def score(job):
    """Long waits of small, short jobs first."""
    return -job.wait_s / (log2(job.gpus + 1.0) * job.estimate_s)


POLICY = Policy(
    "unicep",
    "UNICEP",
    score,
    "−w / (log2(n + 1) · r)",
    "Tang et al., CLUSTER 2009 (UNICEF)",
    rank=6,
    dynamic=True,
    in_table5=True,
    remark="log2(n), as printed, is 0 for a job of one GPU",
)
