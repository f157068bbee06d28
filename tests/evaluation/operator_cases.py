"""A small log on a small cluster, without files: the run, its workloads, and an agent that only repeats its base policy."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from workload_cases import cluster, group

from rltune.cluster.fit import fit
from rltune.cluster.workload import Workload, make_workload
from rltune.config.context import Run
from rltune.config.run import RunConfig
from rltune.config.trace import TraceConfig
from rltune.slurm.experiment.conduct import policy_of_rule
from rltune.traces.columns import TraceMeta, empty_columns
from rltune.traces.estimates import estimate_jobs

T0, JOBS = 1_700_000_000, 240
CLUSTER = cluster([group(2, 8, "P100", mem_gb=512), group(2, 2, "P100", mem_gb=128)], gpu_types="ignore")
COLUMNS = {"submit_s": "a", "gpus": "b", "run_s": "c"}
TRACE = TraceConfig(title="Tiny", data="own", format="csv", path="jobs.csv", columns=COLUMNS)
META = TraceMeta("tiny", "Tiny", "own", "csv", pd.Timestamp(T0, unit="s", tz="UTC").isoformat(), "Europe/Berlin", "")


def log() -> pd.DataFrame:
    """Jobs with users, of half of them limits, and of most of them recorded waits."""
    rng = np.random.default_rng(5)
    run_s = np.maximum(1, rng.lognormal(8, 1.2, JOBS)).round()
    wait_s = rng.exponential(500, JOBS).round()
    wait_s[::9] = np.nan
    return empty_columns(JOBS).assign(
        job_id=[f"j{i}" for i in range(JOBS)],
        user=rng.choice(["Ann B", "ben", "cy"], JOBS),
        submit_s=np.cumsum(rng.exponential(900, JOBS)).round(),
        run_s=run_s,
        requested_s=np.where(np.arange(JOBS) % 2, 2 * run_s, np.nan),
        gpus=rng.choice([1, 2, 4, 8], JOBS),
        wait_s=wait_s,
    )


def run_of(**blocks: Any) -> Run:
    """A run of one cell with more blocks."""
    cell = {"workloads": [{"trace": "tiny", "cluster": "small"}], "policy": ["fifo"]}
    config = RunConfig.model_validate({"title": "A tiny run", "experiments": [cell], **blocks})
    return Run(Path(), "config/tiny.yaml", config, {"tiny": TRACE}, {"small": CLUSTER})


def workload_of(run: Run, estimate: str = "lognormal-1", jobs: pd.DataFrame | None = None) -> Workload:
    """The log on the run's cluster, with estimates."""
    fitted, _ = fit(log() if jobs is None else jobs, run.clusters["small"])
    given = estimate_jobs(fitted, META, estimate, 1, None, Path())
    return make_workload(fitted, META, given, run.clusters["small"], run.config.train_share)


def agent(rule: str = "fifo", **facts: Any) -> Any:
    """A policy that ranks as a rule does."""
    policy = policy_of_rule(rule)
    policy.facts.update({"learned": True, "best_epoch": 0, **facts})
    return policy
