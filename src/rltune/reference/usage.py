"""Fair shares of the plain-Python twin: what accounts have used of late."""

from collections import defaultdict
from dataclasses import dataclass, field
from math import exp, log

DECAY = log(2.0) / (7 * 86400.0)
"""Usage halves every week."""


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

    each: defaultdict[int, Account] = field(default_factory=lambda: defaultdict(Account))
    known: set[int] = field(default_factory=set)
    """Accounts that have submitted a job."""
    all: Account = field(default_factory=Account)

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
