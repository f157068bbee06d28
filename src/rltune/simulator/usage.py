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
def fair_share(share, account, now):
    """``2^(−U / S)``: U the account's part of all use, S one over the number of accounts; 1 before any use."""
    accounts = share.shape[0] - 1
    total = decayed(share[accounts], now)
    if total <= 0.0:
        return 1.0
    return math.exp(-LN2 * (decayed(share[account], now) / total) * accounts)
