"""The orders of the plain-Python twin: formulas of the base policies and fair shares, written for reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp, log, log2, log10
from typing import NamedTuple

WEEK_S = 7 * 86400.0
DECAY = log(2.0) / WEEK_S
"""Usage halves every week."""


class Told(NamedTuple):
    """What a policy is told of a queued job."""

    submit_s: float
    estimate_s: float
    gpus: int
    wait_s: float = 0.0
    fair_share: float = 1.0
    gpu_share: float = 0.0
    partition: float = 0.0
    sla: bool = False


def _wfp3(job: Told) -> float:
    ratio = job.wait_s / job.estimate_s
    return -ratio * ratio * ratio * job.gpus


def _slurm(job: Told, attribute: float) -> float:
    """Five factors in [0, 1], the same weight each."""
    age = min(job.wait_s / WEEK_S, 1.0)
    return -1000.0 * (age + job.fair_share + attribute + job.partition + (1.0 if job.sla else 0.0))


POLICIES: dict[str, Callable[[Told], float]] = {
    "fifo": lambda job: job.submit_s,
    "sjf": lambda job: job.estimate_s,
    "saf": lambda job: job.estimate_s * job.gpus,
    "smallest": lambda job: float(job.gpus),
    "f1": lambda job: log10(max(job.estimate_s, 1.0)) * job.gpus + 870.0 * log10(max(job.submit_s, 1.0)),
    "wfp3": _wfp3,
    "unicep": lambda job: -job.wait_s / (log2(job.gpus + 1.0) * job.estimate_s),
    "multifactor": lambda job: _slurm(job, 1.0 - min(job.estimate_s / WEEK_S, 1.0)),
    "multifactor_size": lambda job: _slurm(job, min(job.gpu_share, 1.0)),
}
"""Name → score, lower first."""


@dataclass
class Account:
    """Somebody's use of GPUs: seconds until ``at``, the older ones decayed, and GPUs in use since."""

    used: float = 0.0
    at: float = 0.0
    using: float = 0.0

    def decayed(self, now: float) -> float:
        """GPU-seconds used until ``now``, the older ones decayed."""
        keep = exp(-DECAY * (now - self.at))
        return self.used * keep + self.using * (1.0 - keep) / DECAY

    def use(self, now: float, gpus: int) -> None:
        """From now on so many GPUs more, or fewer."""
        self.used, self.at, self.using = self.decayed(now), now, self.using + gpus


@dataclass
class Usage:
    """What every account and all of them together have used."""

    accounts: int
    each: list[Account] = field(init=False)
    known: set[int] = field(init=False, default_factory=set)
    """Accounts that have submitted a job."""
    all: Account = field(init=False, default_factory=Account)

    def __post_init__(self) -> None:
        self.each = [Account() for _ in range(self.accounts)]

    def use(self, account: int, now: float, gpus: int) -> None:
        """From now on an account uses so many GPUs more, or fewer."""
        self.each[account].use(now, gpus)
        self.all.use(now, gpus)

    def fair_share(self, account: int, now: float) -> float:
        """Slurm's ``2^(−U / S)``: U the account's part of all use, S one over the number of accounts known."""
        total = self.all.decayed(now)
        if total <= 0.0:
            return 1.0
        return exp(-log(2.0) * (self.each[account].decayed(now) / total) * len(self.known))
