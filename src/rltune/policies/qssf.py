"""Quasi-shortest service first (Hu et al., SC '21): smallest area first, on run times predicted from earlier jobs alone."""

from rltune.policies.policy import Policy
from rltune.policies.saf import score

POLICY = Policy(
    "qssf", "QSSF", score, "r · n", "Hu et al., SC 2021", rank=4, predicted=True, remark="r predicted from earlier jobs"
)
