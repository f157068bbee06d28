"""The jobs of the deployment (paper §5.6): fine-tuning and inference of language models on 13 GPUs.

The paper says that its 1,024 jobs are "primarily" fine-tuning and inference, some of language models, on a single GPU,
several GPUs and several nodes, and that they arrive dynamically. Every number here is our choice. Run times are those
of a small test-bed, minutes to hours, so that 1,024 jobs ask for what the cluster has in two days.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from rltune.traces.synthetic.parameters import LEVELS, Dynamics, Marginals, Parameters, RunTimes, Waits

GPUS_A_NODE = 4
"""Of the largest nodes of the paper’s cluster (config/clusters/deployment.yaml)."""
RECORDED_GPUS = 16
"""Of the made-up cluster that the log is of: three more than the paper’s 13, so that its queue does not grow without end."""
LIMIT_S = 12 * 3600
"""The partition's limit; no job runs as long."""
LIMITS_S = tuple(60 * m for m in (10, 20, 30, 60, 120, 240, 480, 720))
"""What users ask for: the next of these above the run time …"""
MARGIN = {0: 0.35, 1: 0.35, 2: 0.2, 3: 0.1}
"""… or one or several further → share of jobs: limits are known to be several times the run time (docs/estimates.md)."""
SPAN_S = 48 * 3600.0
"""In which as many jobs arrive as the paper submits …"""
JOBS = 1024
"""… (paper §5.6)."""
KINDS = {
    "inference": (0.40, {1: 0.80, 2: 0.20}, 5.0, 1.0),
    "adapter": (0.37, {1: 0.60, 2: 0.40}, 14.0, 0.9),
    "full": (0.19, {2: 0.60, 4: 0.40}, 19.0, 0.9),
    "multi-node": (0.04, {8: 1.0}, 17.0, 0.8),
}
"""Kind of job → share of the jobs, GPUs → share of its jobs, median run time in minutes, and sigma of its logarithm: batch
inference, fine-tuning of an adapter, of all weights, and of all weights on two nodes of four."""
LEAST_S, MOST_S = 45.0, 10 * 3600.0
"""Run times are cut off there."""
USERS = 16
DYNAMICS = Dynamics(
    day_sigma=0.1,
    hour_sigma=0.4,
    session_exponent=1.3,
    session_cap=25,
    quick_share=0.3,
    quick_gap_s=5.0,
    quick_sigma=1.0,
    think_gap_s=300.0,
    keep_gpus=0.7,
    user_gpus=0.1,
    alike=0.2,
    session_run=0.1,
    user_run=0.05,
    big_gpus=0.3,
    big_run=0.3,
)
"""Bursts: three sessions in ten are sweeps of up to 25 jobs, seconds apart; the others a person's, minutes apart."""
HOURS = (0.8,) * 8 + (1.2,) * 12 + (0.9,) * 4
"""Relative intensity of the 24 hours: working hours are busier, nights are used."""
POINTS = 20_001
"""Of the grid on which distributions of run times are mixed."""


def parameters() -> Parameters:
    """What the log is drawn from."""
    shares: dict[int, float] = {}
    for share, gpus, _, _ in KINDS.values():
        for n, part in gpus.items():
            shares[n] = shares.get(n, 0.0) + share * part
    marginals = Marginals(
        JOBS / SPAN_S, HOURS, (1.0,) * 7, dict(sorted(shares.items())), tuple(_run_times(n) for n in sorted(shares))
    )
    nobody = Waits(share_immediate=1.0, immediate_s=1, mean_s=0.0, sigma=1.0)  # the log's waits are a queue's
    return Parameters(
        "2025-01-06 00:00:00",
        "Europe/Berlin",
        users=USERS,
        marginals=marginals,
        dynamics=DYNAMICS,
        max_run_s=LIMIT_S,
        waits=nobody,
    )


def _run_times(gpus: int) -> RunTimes:
    """Quantiles of the run times of all kinds of jobs that ask for so many GPUs."""
    at = (np.arange(POINTS) + 0.5) / POINTS
    seconds, weight = [], []
    for share, sizes, median_min, sigma in KINDS.values():
        if gpus in sizes:
            seconds.append(np.clip(60.0 * median_min * np.exp(sigma * ndtri(at)), LEAST_S, MOST_S))
            weight.append(np.full(POINTS, share * sizes[gpus]))
    both, heavy = np.concatenate(seconds), np.concatenate(weight)
    order = np.argsort(both, kind="stable")
    below = np.cumsum(heavy[order]) / heavy.sum()
    quantiles = both[order][np.minimum(np.searchsorted(below, LEVELS), len(both) - 1)]
    return RunTimes(gpus, gpus, 0.0, tuple(int(round(q)) for q in quantiles))
