"""Slurm's multifactor priority (paper §5.4): five factors in [0, 1], each weighted 1,000.

=============  =================================================================================================
age            wait / 7 days, at most 1 (Slurm's default PriorityMaxAge)
fair share     2^(−U / S): U the account's part of all decayed GPU-seconds used so far, S its part of the shares,
               the same for all accounts that have submitted a job so far; usage halves every 7 days (Slurm's
               classic formula and default PriorityDecayHalfLife). An account is a user, where the trace has none a
               virtual cluster
job attribute  the paper's: 1 − estimate / 7 days, at least 0 (shorter first); Slurm's own job-size factor: the
               job's GPUs over its pool's (larger first) is the policy ``multifactor_size``
partition      the pool's priority over the largest
QOS            1 for a job under a service-level agreement, else 0
=============  =================================================================================================
"""

from rltune.policies.policy import Policy

WEIGHT = 1000.0
MAX_AGE_S = 7 * 86400.0
HALF_LIFE_S = 7 * 86400.0
LONGEST_S = 7 * 86400.0
"""Estimate at which the paper's job attribute reaches 0 (our choice: a week, like the age)."""


def score(job):
    """The priority with the estimate as job attribute, negative: lower first."""
    age, attribute = min(job.wait_s / MAX_AGE_S, 1.0), 1.0 - min(job.estimate_s / LONGEST_S, 1.0)
    return -WEIGHT * (age + job.fair_share + attribute + job.partition + job.qos)


POLICY = Policy(
    "multifactor",
    "Slurm multifactor",
    score,
    "−1000 · (min(w / 7 d, 1) + f + max(1 − r / 7 d, 0) + p + q)",
    "Slurm’s plugin with the paper’s five factors (§5.4)",
    rank=7,
    dynamic=True,
    fair=True,
)
