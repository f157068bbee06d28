"""What each decision was worth: the waiting that came after it, against other rollouts of its sequence.

A reward at the end of a sequence tells hundreds of decisions the same. But waiting adds up over time, and a decision
changes only what comes after it; and rollouts of one sequence have the same arrivals, so that what the others still
wait from the same instant on is what to expect. Waiting long after a decision has little to do with it, so it counts less
the later it is (``horizon_s``).
"""

from __future__ import annotations

import numpy as np

from rltune.environment.reward import METRIC_COLUMN
from rltune.kernels import kernel
from rltune.simulator.metrics import BSLD_FLOOR_S
from rltune.simulator.state import State

CREDITED = ("wait", "jct", "bsld")
"""Metrics that are a sum over jobs of time lost, weighted: of bounded slowdown by one over the run time."""
assert set(CREDITED) <= set(METRIC_COLUMN)


def credit(
    metric: str,
    state: State,
    run_s: np.ndarray,
    submit_s: np.ndarray,
    now_s: np.ndarray,
    sequence: np.ndarray,
    rollouts: int,
    horizon_s: float,
) -> np.ndarray:
    """Advantage [D] float32 of decisions, in weighted seconds of waiting saved against the mean of all rollouts.

    What a job loses while it runs, split or in company, counts as waiting before its end, but not for metric ``wait``.

    Args:
        metric: one of CREDITED.
        state: of S sequences that have ended, each group of ``rollouts`` consecutive ones the same jobs.
        run_s: run times of all jobs of the workload [J], s.
        submit_s: their submissions [J], s.
        now_s: [D] when each decision was made, s.
        sequence: [D] in which sequence.
        rollouts: 2 or more.
        horizon_s: waiting this much later counts 1/e.
    """
    weight = 1.0 / np.maximum(run_s, BSLD_FLOOR_S) if metric == "bsld" else np.ones(len(run_s))
    begun = state.start
    if metric != "wait":  # where nothing is slowed down, the same
        begun = np.full_like(state.start, np.nan)
        for s, (first, n) in enumerate(zip(state.first, state.n, strict=True)):
            begun[s, :n] = np.maximum(state.end[s, :n] - run_s[first : first + n], state.start[s, :n])
    out = np.empty(len(now_s), np.float32)
    _credit(state.first, state.n, begun, submit_s, weight, now_s, sequence, rollouts, horizon_s, out)
    return out


@kernel
def _credit(first, n, start, submit_s, weight, now_s, sequence, rollouts, horizon_s, out):
    for d in range(now_s.shape[0]):
        s, now = sequence[d], now_s[d]
        group = s - s % rollouts
        total = own = 0.0
        for other in range(group, group + rollouts):
            later = 0.0
            for i in range(n[other]):
                begun = start[other, i]
                if begun <= now:
                    continue
                j = first[other] + i
                since = max(submit_s[j] - now, 0.0)
                if since > 8.0 * horizon_s:
                    break  # jobs are in the order of submission
                later += weight[j] * (np.exp(-since / horizon_s) - np.exp(-(begun - now) / horizon_s))
            total += later
            if other == s:
                own = later
        out[d] = horizon_s * (total / rollouts - own)
