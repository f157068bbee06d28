"""Fair shares for Slurm's multifactor order: GPU-seconds each account has used, halving every half-life."""

import math

from rltune.kernels import kernel
from rltune.policies.multifactor import HALF_LIFE_S

LN2 = math.log(2.0)
RATE = LN2 / HALF_LIFE_S


@kernel
def decayed(account, now):
    """GPU-seconds an account (SHARE) has used until ``now``, the older ones decayed."""
    keep = math.exp(-RATE * (now - account.at))
    return account.used * keep + account.using * (1.0 - keep) / RATE


@kernel
def use(share, account, now, gpus):
    """From now on an account uses ``gpus`` more (negative: fewer)."""
    last = share.shape[0] - 1
    for a in (account, last):
        share[a].used = decayed(share[a], now)
        share[a].at = now
        share[a].using += gpus


@kernel
def know(share, account):
    """An account has submitted a job: from now on it has its part of the shares."""
    if share[account].known == 0:
        share[account].known = 1
        share[-1].known += 1


@kernel
def fair_share(share, account, now):
    """``2^(−U / S)``: U the account's part of all use, S one over the number of accounts known; 1 before any use."""
    last = share.shape[0] - 1
    total = decayed(share[last], now)
    if total <= 0.0:
        return 1.0
    return math.exp(-LN2 * (decayed(share[account], now) / total) * share[last].known)
