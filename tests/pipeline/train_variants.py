"""Trains and judges one cell three times over in one process: as it is, with another seed, with its test rows poisoned.

Called as a script: ``train_variants.py BASE CELL``, with the smoke run's traces and workloads in BASE/plain.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import numpy as np

from rltune.pipeline.notebook import THREAD_VARIABLES

os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"), TF_NUM_INTEROP_THREADS="1")

from rltune.config import Cell, Workspace  # noqa: E402
from rltune.pipeline.cells import evaluate_cell, train_cell, workload_of  # noqa: E402
from rltune.traces.table import read_table, write_table  # noqa: E402


def run(workspace: Workspace, cell: Cell) -> None:
    """Train and judge, as the notebooks do."""
    workload = workload_of(workspace, cell)
    policy, _, _ = train_cell(workspace, cell, workload)
    evaluate_cell(workspace, cell, policy, workload)


def poison(workspace: Workspace, cell: Cell) -> None:
    """Give the jobs of the test part absurd run times, wherever they are stored."""
    workload = workload_of(workspace, cell)
    held_out = workload.job_ids[workload.split.test[0] :]
    jobs, meta = read_table(workspace.jobs(cell.trace))
    mine = jobs["job_id"].isin(held_out)
    jobs.loc[mine, "run_s"] = np.where(np.arange(mine.sum()) % 2, 1.0, 3e7)
    write_table(jobs, meta, workspace.jobs(cell.trace))
    workspace.estimates(cell.trace, cell.cluster, cell.estimate).unlink()
    workspace.baselines(cell.trace, cell.cluster, cell.estimate).unlink()


def main(base: Path, name: str) -> None:
    workspace = Workspace.open("config/smoke.yaml", base / "plain")
    cell = workspace.config.cell(name)
    poisoned = Workspace.open("config/smoke.yaml", base / "poisoned")
    shutil.copytree(workspace.results, poisoned.results)
    run(workspace, cell)
    run(workspace, cell.but(seed=cell.seed + 1))
    poison(poisoned, cell)
    run(poisoned, cell)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
