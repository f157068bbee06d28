"""What a base policy is: how it scores a queued job, and how tables describe it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

SYMBOLS = {
    "s": "submission",
    "r": "estimated run time",
    "n": "GPUs",
    "w": "wait so far",
    "f": "fair share",
    "g": "GPUs over those of the pool",
    "p": "partition’s priority",
    "q": "QOS",
}
"""Letters of the formulas; times in seconds, f, g, p and q in [0, 1]; `d` is a day."""


class Facts(NamedTuple):
    """What a policy knows of a queued job, now. All float64 but ``gpus``."""

    submit_s: float
    """Submission, seconds since the trace's t0."""
    estimate_s: float
    """Estimated run time."""
    gpus: int
    """Requested GPUs."""
    wait_s: float = 0.0
    """Waiting time so far."""
    fair_share: float = 1.0
    """Slurm's fair-share factor of its account, in (0, 1]."""
    gpu_share: float = 0.0
    """Requested GPUs over those of its pool."""
    partition: float = 0.0
    """Priority of its pool over the largest."""
    qos: float = 0.0
    """Slurm's QOS factor, in [0, 1]; of a trace's jobs 1 under a service-level agreement, else 0."""


@dataclass(frozen=True)
class Policy:
    """A base policy. Its file assigns it to ``POLICY``, and rltune.policies finds it."""

    name: str
    """Its name in configurations and on the command line."""
    title: str
    """Its name in tables and figures."""
    score: Callable[[Any], float]
    """Score of a job, lower first: plain Python that numba can compile, without calls of other functions of ours."""
    formula: str
    """The score in SYMBOLS, as tables print it; a test holds that it is what is computed."""
    source: str
    """Where it is from."""
    rank: int = 100
    """Its rank among the policies of its kind: static, dynamic, fair."""
    dynamic: bool = False
    """Whether scores change while a job waits; the others rank a job once, when it arrives."""
    fair: bool = False
    """Whether it uses fair shares; such a policy is dynamic, too."""
    predicted: bool = False
    """Whether it needs estimates that are predicted from earlier jobs alone."""
    in_table5: bool = False
    """Whether the paper's Table 5 has it."""
    remark: str = ""
    """Where it differs from what is printed there."""

    def __post_init__(self) -> None:
        if self.fair and not self.dynamic:
            raise ValueError(
                f"policy {self.name!r}: found fair without dynamic, expected both: fair shares change with time"
            )
        usual = Facts(1e5, 600.0, 2, gpu_share=0.25, partition=0.5, qos=0.5)
        for field, kind, values in (
            ("wait_s", "dynamic", (1.0, 60.0, 4e3, 9e4, 1e6)),
            ("fair_share", "fair", (0.01, 0.3, 0.9)),
        ):
            scores = {self.score(usual._replace(**{field: value})) for value in values}
            if len(scores) > 1 and not getattr(self, kind):
                raise ValueError(f"policy {self.name!r}: its score depends on {field}, expected {kind}=True")
