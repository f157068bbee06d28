"""F1 of Carastan-Santos and de Camargo (SC '17), a fitted order; paper Table 5."""

from math import log10

from rltune.policies.policy import Policy


def score(job):
    """Small areas and early submissions first; times are at least 1 s."""
    return log10(max(job.estimate_s, 1.0)) * job.gpus + 870.0 * log10(max(job.submit_s, 1.0))


POLICY = Policy(
    "f1",
    "F1",
    score,
    "log10(max(r, 1)) · n + 870 · log10(max(s, 1))",
    "Carastan-Santos and de Camargo, SC 2017",
    rank=4,
    in_table5=True,
    remark="times below a second count as one",
)
