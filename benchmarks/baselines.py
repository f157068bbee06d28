"""Mean wait of every heuristic under every backfill rule on held-out real rows, and how fast they are replayed.

Needs the folder of CSV files that config/traces/{philly,venus,pai}-csv.yaml read (RLTUNE_REAL_TRACES, default
../shared/traces). Windows of 256 jobs, disjoint, from the last tenth; best_fit; exact estimates and lognormal(1).
The last line is one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np

from rltune.cluster.workload import Workload, build_workload
from rltune.config.context import Run
from rltune.policies import IDS, TITLES
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.bound import lower_bound
from rltune.simulator.metrics import sequence_table
from rltune.traces.split import disjoint_windows

LENGTH = 256
ESTIMATES = ("exact", "lognormal-1")
BACKFILLS = ("none", "greedy", "easy", "conservative")


def compare(name: str, load: Workload) -> dict:
    """Every policy under every backfill rule on one workload's held-out windows."""
    first = disjoint_windows(*load.split.test, LENGTH)
    n = np.full(len(first), LENGTH)
    simulate(load.jobs, load.layout, first[:1], n[:1], SchedulerConfig("fifo", "easy"))  # compile
    bound = np.mean([lower_bound(load.jobs, load.layout, f, LENGTH).wait_s for f in first])
    print(f"{name}, {len(first)} windows; mean wait in s ({' / '.join(BACKFILLS)}); no schedule below {bound:.0f}")
    began, waits = time.perf_counter(), {}
    for policy in IDS:
        for backfill in BACKFILLS:
            state = simulate(load.jobs, load.layout, first, n, SchedulerConfig(policy, backfill))
            table = sequence_table(load.jobs, state, load.layout.gpus)
            waits.setdefault(policy, {})[backfill] = round(float(table["wait_s"].mean()), 1)
        print(f"  {TITLES[policy]:>24}  " + " / ".join(f"{v:.0f}" for v in waits[policy].values()))
    rate = len(IDS) * len(BACKFILLS) * n.sum() / (time.perf_counter() - began)
    print(f"  {rate:,.0f} jobs/s", flush=True)
    return {"windows": len(first), "mean_wait_s": waits, "bound_s": round(float(bound), 1), "jobs_per_s": round(rate)}


def main() -> None:
    os.environ.setdefault("RLTUNE_REAL_TRACES", "../shared/traces")
    run = Run.open("config/csv.yaml")
    figures: dict[str, dict] = {}
    main_ones = [w for e in run.config.experiments for w in e.workloads]
    for trace, cluster in dict.fromkeys((w.trace, w.cluster) for w in main_ones):
        figures[trace] = {}
        for estimate in ESTIMATES:
            load = build_workload(run, trace, cluster, estimate)
            figures[trace][estimate] = compare(f"{trace} on {cluster}, {estimate}", load)
    print(json.dumps(figures))


if __name__ == "__main__":
    sys.exit(main())
