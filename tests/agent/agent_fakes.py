"""A small made-up workload for tests of the agent and the evaluation."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs, compile_jobs, fit
from rltune.cluster.layout import Layout, build_layout
from rltune.cluster.workload import Workload, make_workload
from rltune.config import ClusterConfig, RunConfig, SimulationConfig
from rltune.config.run import SplitConfig
from rltune.traces.columns import TraceMeta, empty_columns

CLUSTER = ClusterConfig.model_validate(
    {
        "title": "test",
        "gpu_types": "ignore",
        "pools": [
            {
                "name": "all",
                "groups": [
                    {"gpu_type": "A", "nodes": 2, "gpus": 8, "cpus": 32, "mem_gb": 128},
                    {"gpu_type": "A", "nodes": 2, "gpus": 2, "cpus": 8, "mem_gb": 32},
                ],
            }
        ],
    }
)


def jobs_frame(n: int, seed: int, load: float = 3.0) -> pd.DataFrame:
    """``n`` jobs that ask for about ``load`` times the 20 GPUs there are."""
    rng = np.random.default_rng(seed)
    frame = empty_columns(n)
    gpus = rng.choice([1, 1, 1, 2, 4, 8], size=n)
    run = np.exp(rng.normal(5.5, 1.2, size=n))
    gap = (gpus * run).mean() / (20 * load)
    return frame.assign(
        job_id=pd.Series([f"j{i:05d}" for i in range(n)], dtype="str"),
        gpus=gpus.astype(np.int64),
        run_s=run,
        submit_s=np.cumsum(rng.exponential(gap, size=n)),
    )


def workload(n: int = 600, seed: int = 1, load: float = 3.0) -> tuple[Jobs, Layout]:
    """The jobs fitted to the cluster, with estimates that err by a factor of about two."""
    fitted, _ = fit(jobs_frame(n, seed, load), CLUSTER)
    noise = np.exp(np.random.default_rng(seed + 1).normal(0, 0.7, size=len(fitted)))
    return compile_jobs(fitted, fitted["run_s"].to_numpy() * noise, CLUSTER), build_layout(CLUSTER)


def whole_workload(n: int = 600, seed: int = 1, load: float = 3.0) -> Workload:
    """The same as a Workload, split as by default, with users "u0" to "u4"."""
    fitted, _ = fit(jobs_frame(n, seed, load), CLUSTER)
    fitted = fitted.assign(user=[f"u{i % 5}" for i in range(len(fitted))])
    noise = np.exp(np.random.default_rng(seed + 1).normal(0, 0.7, size=len(fitted)))
    estimates = pd.DataFrame({"estimate_s": fitted["run_s"].to_numpy() * noise})
    return make_workload(
        fitted, TraceMeta("t", "T", "own", "csv", "2020-01-01", "UTC", "test"), estimates, CLUSTER, SplitConfig()
    )


def run_config(simulation: SimulationConfig | None = None, **evaluation: object) -> RunConfig:
    """A run with this block ``evaluation``."""
    experiment = {"name": "x", "workloads": [{"trace": "t", "cluster": "c"}], "policy": ["fifo"]}
    blocks = {"title": "Test", "experiments": [experiment], "evaluation": evaluation}
    return RunConfig.model_validate(blocks).model_copy(update={"simulation": simulation or SimulationConfig()})
