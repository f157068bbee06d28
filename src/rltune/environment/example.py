"""A small made-up workload, so that the environment works without any trace."""

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs, compile_jobs, fit
from rltune.cluster.layout import Layout, build_layout
from rltune.config.cluster import ClusterConfig, NodeGroup, Pool
from rltune.traces.columns import empty_columns

JOBS = 4096
LOAD = 1.5
"""Offered load: GPU-seconds asked for over those there are while jobs arrive. Queues grow inside a sequence."""

NODES = [NodeGroup(gpu_type="A", nodes=4, gpus=gpus, cpus=8 * gpus, mem_gb=32 * gpus) for gpus in (2, 8)]
CLUSTER = ClusterConfig(title="40 GPUs", gpu_types="ignore", pools=[Pool(name="all", groups=NODES)])


def example_workload(seed: int = 0) -> tuple[Jobs, Layout]:
    """4,096 jobs of 1 to 16 GPUs, log-normal run times (median 10 min), on 40 GPUs; estimates err by a factor of e."""
    rng = np.random.default_rng(seed)
    gpus = rng.choice([1, 2, 4, 8, 16], size=JOBS, p=[0.55, 0.15, 0.15, 0.1, 0.05])
    run_s = np.round(np.exp(rng.normal(np.log(600), 1.3, size=JOBS))) + 1
    gap_s = (gpus * run_s).mean() / (40 * LOAD)
    frame = empty_columns(JOBS).assign(
        job_id=pd.Series([f"example-{i:04d}" for i in range(JOBS)], dtype="str"),
        gpus=gpus.astype(np.int64),
        run_s=run_s,
        submit_s=np.round(np.cumsum(rng.exponential(gap_s, size=JOBS))),
    )
    fitted, _ = fit(frame, CLUSTER)
    estimate_s = fitted["run_s"].to_numpy() * np.exp(rng.normal(0, 1, size=len(fitted)))
    return compile_jobs(fitted, estimate_s, CLUSTER), build_layout(CLUSTER)
