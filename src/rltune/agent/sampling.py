"""From an actor's logits to an order of the queue: a sample in training, the best otherwise."""

from __future__ import annotations

import math

import numpy as np

from rltune.kernels import kernel


@kernel
def by_submission(offsets, jobs, order):
    """Write to ``order`` [rows] the rows of each decision by their job, the earlier submission first."""
    for a in range(offsets.shape[0] - 1):
        lo = offsets[a]
        for row in range(lo, offsets[a + 1]):
            i = row
            while i > lo and jobs[order[i - 1]] > jobs[row]:
                order[i] = order[i - 1]
                i -= 1
            order[i] = row


@kernel
def base_logits(offsets, order, base_policy_bias, logits):
    """Write −base_policy_bias · place in the base policy's order to ``logits`` [rows], those of the queues' rows ``order``."""
    for a in range(offsets.shape[0] - 1):
        for i in range(offsets[a], offsets[a + 1]):
            logits[i] = -base_policy_bias * (order[i] - offsets[a])


@kernel
def answer(score, asking, offsets, order, logits, noise, action, log_prob):
    """Turn logits [rows] into ``score`` (lower first) and report the pick of each asking sequence.

    ``order`` [rows]: the rows of the queues that the logits belong to. ``noise`` [rows]: Gumbel noise makes the pick
    a sample of the softmax (and the whole order one of Plackett-Luce), zeros make it the arg max. ``action`` [k]
    gets the place of the pick among the logits, ``log_prob`` [k] its log-probability without the noise.
    """
    for a in range(asking.shape[0]):
        s, lo, hi = asking[a], offsets[a], offsets[a + 1]
        best, top, most = lo, -np.inf, -np.inf
        for row in range(lo, hi):
            value = logits[row] + noise[row]
            score[s, order[row] - lo] = -value
            if value > top:
                best, top = row, value
            most = max(most, logits[row])
        total = 0.0
        for row in range(lo, hi):
            total += math.exp(logits[row] - most)
        action[a] = best
        log_prob[a] = logits[best] - most - math.log(total)
