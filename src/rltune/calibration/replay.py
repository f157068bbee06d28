"""Mean waits of FIFO, SJF and SAF on windows of a trace: what a scheduler makes of its likeness."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.calibration.likeness import WAITS, WINDOW, Tolerance
from rltune.cluster.fit import compile_jobs, fit
from rltune.cluster.layout import build_layout
from rltune.config import ClusterConfig
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table
from rltune.traces.estimates import estimate_run_s
from rltune.traces.split import disjoint_windows

POLICIES = ("fifo", "sjf", "saf")
BACKFILLS = ("none", "easy")
SEED = 1
"""Of the estimates: run time × exp(z), as the project's default."""

CONTENDED_S = 60
CONTENDED = f"windows with a mean FIFO wait over {CONTENDED_S} s"


def _title(policy: str, backfill: str) -> str:
    return f"mean wait, {policy.upper()}{' + EASY' if backfill == 'easy' else ''}, s"


WAIT_TOLERANCES = {**{_title(p, b): WAITS for p in POLICIES for b in BACKFILLS}, CONTENDED: Tolerance(difference=0.2)}


def window_waits(jobs: pd.DataFrame, cluster: ClusterConfig) -> dict[tuple[str, str], np.ndarray]:
    """Policy and backfill → mean wait of each disjoint window of 256 jobs, s, from an idle cluster."""
    fitted, _ = fit(jobs, cluster)
    estimate_s = estimate_run_s(fitted, "lognormal", 1.0, "likeness", SEED)
    compiled, layout = compile_jobs(fitted, estimate_s, cluster), build_layout(cluster)
    first = disjoint_windows(0, len(fitted), WINDOW)
    n = np.full(len(first), WINDOW)
    waits = {}
    for policy in POLICIES:
        for backfill in BACKFILLS:
            state = simulate(compiled, layout, first, n, SchedulerConfig(policy, backfill))
            waits[policy, backfill] = sequence_table(compiled, state, layout.gpus)["wait_s"].to_numpy()
    return waits


def describe_waits(jobs: pd.DataFrame, cluster: ClusterConfig) -> dict[str, float]:
    """The figures of :data:`WAIT_TOLERANCES`."""
    waits = window_waits(jobs, cluster)
    found = {_title(*k): float(v.mean()) for k, v in waits.items()}
    return found | {CONTENDED: float((waits["fifo", "none"] > CONTENDED_S).mean())}
