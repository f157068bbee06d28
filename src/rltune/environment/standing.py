"""Features of a job at a decision: its wait, and its ranks in the queue."""

import numpy as np

from rltune.environment.encoding import TIME_SCALE_S
from rltune.environment.features import NOW, slots
from rltune.kernels import inlined, kernel

_SLOT = slots(NOW)
SUBMIT, WAIT, LOG_WAIT, URGENCY = (_SLOT[n] for n in ("submit", "wait", "log_wait", "urgency"))
RANK_SIZE, RANK_ESTIMATE, RANK_GPUS, RANK_WAIT, RANK_BASE = (
    _SLOT[n] for n in ("rank_size", "rank_estimate", "rank_gpus", "rank_wait", "rank_base")
)
PER_SCALE = 1 / TIME_SCALE_S
LOG_WAIT_SCALE = np.float32(1 / (6 * np.log(10)))
"""Turns natural logarithms of seconds into log10(…) / 6."""


@inlined
def waits(fact, seen, m, now, first, wants, regime, out):
    """Waits and urgency of the ``m`` jobs ``seen`` of a sequence, into ``out`` [NOW features, ranks]."""
    start_s = fact[first].submit_s
    for k in range(m):
        job, rank = fact[seen[k].row], seen[k].rank
        out[SUBMIT, rank] = min((job.submit_s - start_s) * PER_SCALE, 1.0)
        out[WAIT, rank] = min((now - job.submit_s) * PER_SCALE, 1.0)
    if wants[URGENCY] & regime:
        for k in range(m):
            job = fact[seen[k].row]
            wait = now - job.submit_s
            out[URGENCY, seen[k].rank] = wait / max(wait + job.estimate_s, 1e-9)
    if wants[LOG_WAIT] & regime:
        for k in range(m):
            wait = np.float32(now - fact[seen[k].row].submit_s)
            out[LOG_WAIT, seen[k].rank] = min(np.log(np.float32(1.0) + wait) * LOG_WAIT_SCALE, np.float32(2.0))


@inlined
def queue_ranks(fact, seen, n, now, wants, value, out):
    """The rank of each of the ``n`` jobs among them; ``value`` [n or more] float64 is work space."""
    if wants[RANK_BASE]:
        for r in range(n):
            out[RANK_BASE, r] = r / max(n - 1, 1)
    for feature in (RANK_SIZE, RANK_ESTIMATE, RANK_GPUS, RANK_WAIT):
        if wants[feature]:
            for r in range(n):
                job = fact[seen[r].row]
                if feature == RANK_SIZE:
                    value[r] = job.area_s
                elif feature == RANK_ESTIMATE:
                    value[r] = job.estimate_s
                elif feature == RANK_GPUS:
                    value[r] = job.gpus
                else:
                    value[r] = now - job.submit_s
            _ranks(value, n, out[feature])


@kernel
def _ranks(value, n, out):
    """Share of the others that are below each, ties counted half: 0 the least, 1 the most, 0 for one alone.

    Every pair is compared: without branches that is faster than sorting up to a hundred jobs, takes twice as long at
    256, and ties need no care.
    """
    scale = 0.5 / max(n - 1, 1)
    for r in range(n):
        here = value[r]
        below = 0
        for k in range(n):
            below += (value[k] < here) + (value[k] <= here)
        out[r] = (below - 1) * scale
