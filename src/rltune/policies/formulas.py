"""The scores of the policies as formulas, for tables; tests hold that the compiled policies compute them."""

from __future__ import annotations

from typing import NamedTuple

SYMBOLS = {
    "s": "submission",
    "r": "estimated run time",
    "n": "GPUs",
    "w": "wait so far",
    "f": "fair share",
    "g": "GPUs over those of the pool",
    "p": "partition’s priority",
    "q": "QoS",
}
"""Letters of the formulas; times in seconds, f, g, p and q in [0, 1]; `d` is a day."""


class Formula(NamedTuple):
    """A policy's score, lower first."""

    text: str
    """In SYMBOLS."""
    source: str
    """Where it is from."""
    in_table5: bool
    """Whether the paper's Table 5 has it."""
    remark: str = ""
    """Where it differs from what is printed there."""


_TANG = "Tang et al., CLUSTER 2009"
FORMULAS: dict[str, Formula] = {
    "fifo": Formula("s", "first come, first served", True),
    "sjf": Formula("r", "shortest job first", True),
    "saf": Formula("r · n", "smallest area first", False),
    "smallest": Formula("n", "fewest GPUs first; needs no estimate", False),
    "f1": Formula(
        "log10(max(r, 1)) · n + 870 · log10(max(s, 1))",
        "Carastan-Santos and de Camargo, SC 2017",
        True,
        "times below a second count as one",
    ),
    "wfp3": Formula("−(w / r)³ · n", _TANG, True),
    "unicep": Formula(
        "−w / (log2(n + 1) · r)", f"{_TANG} (UNICEF)", True, "log2(n), as printed, is 0 for a job of one GPU"
    ),
    "multifactor": Formula(
        "−1000 · (min(w / 7 d, 1) + f + max(1 − r / 7 d, 0) + p + q)",
        "Slurm’s plugin with the paper’s five factors (§5.4)",
        False,
    ),
    "multifactor_size": Formula(
        "−1000 · (min(w / 7 d, 1) + f + min(g, 1) + p + q)", "Slurm’s plugin with its own job-size factor", False
    ),
}
"""By the names of rltune.policies.registry.IDS."""
