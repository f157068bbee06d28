"""Mean wait of every heuristic under every blocking rule on held-out real rows, and how fast they are replayed.

Needs the folder of CSV files that config/traces/{philly,venus,pai}-csv.yaml read (RLTUNE_REAL_TRACES, default
../shared/traces). Windows of 256 jobs, disjoint, from the last tenth; best_fit; estimates lognormal(1).
The last line is one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time

import numpy as np

from rltune.config import Workspace
from rltune.config.cells import BLOCKINGS, POLICIES
from rltune.pipeline.prepare import ensure_workload
from rltune.policies import TITLES
from rltune.simulator.batch import Setting, simulate
from rltune.simulator.metrics import sequence_table
from rltune.traces.split import disjoint_windows

LENGTH = 256


def main() -> None:
    os.environ.setdefault("RLTUNE_REAL_TRACES", "../shared/traces")
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace.open("config/csv.yaml", folder)
        figures: dict[str, dict] = {}
        for w in workspace.config.all_workloads():
            load = ensure_workload(workspace, w.trace, w.cluster, "lognormal-1")
            first = disjoint_windows(*load.split.test, LENGTH)
            n = np.full(len(first), LENGTH)
            simulate(load.jobs, load.layout, first[:1], n[:1], Setting("fifo", "easy", "best_fit"))  # compile
            print(f"{w.trace} on {w.cluster}, {len(first)} windows; mean wait in s ({' / '.join(BLOCKINGS)})")
            began, runs = time.perf_counter(), 0
            waits = {}
            for policy in POLICIES:
                for blocking in BLOCKINGS:
                    state = simulate(load.jobs, load.layout, first, n, Setting(policy, blocking, "best_fit"))
                    runs += len(first)
                    table = sequence_table(load.jobs, state, load.layout.gpus)
                    waits.setdefault(policy, {})[blocking] = round(float(table["wait_s"].mean()), 1)
                print(f"  {TITLES[policy]:>5}  " + " / ".join(f"{v:.0f}" for v in waits[policy].values()))
            rate = runs * LENGTH / (time.perf_counter() - began)
            print(f"  {rate:,.0f} jobs/s")
            figures[w.trace] = {"windows": len(first), "mean_wait_s": waits, "jobs_per_s": round(rate)}
    print(json.dumps(figures))


if __name__ == "__main__":
    sys.exit(main())
