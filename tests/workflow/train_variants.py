"""Train and evaluate a cell of the smoke run: as it is, with another seed, with its test rows poisoned.

Called as a script, in a process of its own: ``train_variants.py ROOT CELL OUT``.
"""

import os
import sys
from pathlib import Path

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1"))

import numpy as np

from rltune.agent.policy_file import save_policy
from rltune.agent.task import TrainingTask
from rltune.agent.trainer import fit, make_trainer
from rltune.cluster.workload import Workload, add_calibrated, load_workload, make_workload, read_fitted
from rltune.config import Cell
from rltune.config.context import Run
from rltune.evaluation.evaluate import evaluate
from rltune.traces.estimates import estimate_jobs


def variant(run: Run, cell: Cell, workload: Workload, out: Path) -> None:
    """Write policy, history and test results, as the notebooks do."""
    out.mkdir(parents=True)
    config = run.config
    trainer = make_trainer(
        TrainingTask(cell, config.preset(cell.preset), workload, config.lookahead, config.simulation), None, 1
    )
    policy = fit(trainer)
    save_policy(out / "policy.npz", policy)
    trainer.history.to_csv(out / "history.csv", index=False)
    results = evaluate(cell, policy, workload, config)
    results.windows.to_csv(out / "windows.csv", index=False)
    results.jobs.to_parquet(out / "jobs.parquet", index=False)


def main(root: Path, name: str, out: Path) -> None:
    os.chdir(root)
    run = Run.open("config/smoke.yaml")
    cell = run.config.cell(name)
    folder = root / run.config.results / "workloads" / f"{cell.trace}__{cell.cluster}"
    files = folder / "jobs.parquet", folder / f"estimate-{cell.estimate}.parquet"
    workload = load_workload(*files, run.clusters[cell.cluster], run.config.train_share)
    variant(run, cell, workload, out / "plain")
    variant(run, cell.but(seed=cell.seed + 1), workload, out / "seed")
    fitted, meta = read_fitted(files[0])
    test = np.arange(*workload.split.test)
    fitted.loc[test, "run_s"] = np.where(test % 2, 1.0, 3e7)
    made = estimate_jobs(fitted, meta, cell.estimate, run.config.evaluation.seed, None, root)
    made = add_calibrated(fitted, meta, made)
    poisoned = make_workload(fitted, meta, made, run.clusters[cell.cluster], run.config.train_share)
    variant(run, cell, poisoned, out / "poisoned")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
