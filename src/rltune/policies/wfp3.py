"""WFP3 of Tang et al. (CLUSTER '09); paper Table 5."""

from rltune.policies.policy import Policy


def score(job):
    """Long waits relative to the run time first, large jobs more so."""
    ratio = job.wait_s / job.estimate_s
    return -ratio * ratio * ratio * job.gpus


POLICY = Policy(
    "wfp3", "WFP3", score, "−(w / r)³ · n", "Tang et al., CLUSTER 2009", rank=5, dynamic=True, in_table5=True
)
