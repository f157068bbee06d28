"""First in, first out (FCFS in paper Table 5): by submission."""

from rltune.policies.policy import Policy


def score(job):
    """Earlier submissions first."""
    return job.submit_s


POLICY = Policy("fifo", "FIFO", score, "s", "first come, first served", rank=0, in_table5=True)
