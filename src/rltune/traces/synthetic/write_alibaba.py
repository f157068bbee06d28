"""Synthetic PAI tables: ``pai_job_table`` and ``pai_task_table``, each a headerless CSV in a tar.gz.

Next to the GPU tasks asked for there are CPU tasks (parameter servers) and a few tasks that did not finish, as in the
original.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from rltune.traces.synthetic.archives import hex_names, pick, write_tar_gz
from rltune.traces.synthetic.model import draw_jobs
from rltune.traces.synthetic.models import PAI

TASK_NAMES = {
    "tensorflow": 0.556,
    "worker": 0.29,
    "PyTorchWorker": 0.095,
    "xComputeWorker": 0.031,
    "evaluator": 0.02,
    "chief": 0.008,
}
"""Shares of the published tasks, the rarest replaced by chief."""
GPU_TYPES = {"T4": 0.10, "MISC": 0.26, "P100": 0.19, "V100": 0.09, "V100M32": 0.11}
"""In proportion to the GPUs of each type in the published machine table (994, 2240, 1596, 832, 1080), in three tasks
of four; the fourth names no type. The three quarters are our choice."""
CPU_TASKS_PER_GPU_TASK = 0.05
UNFINISHED = {"Failed": 0.01, "Running": 0.002, "no end": 0.001, "zero run": 0.0005}
"""Our choice, after the kinds of rows the published table has."""
PLAN_CPU, PLAN_MEM = (600, 1200, 300), (29.296875, 58.59375, 14.6484375)
"""Percent of a core, and GB, per instance: values common in the published table; their mix is our choice."""


def write(folder: Path, seed: int, jobs: int) -> list[Path]:
    """Write the two archives into ``folder``; returns their paths."""
    tables = zip(("pai_job_table", "pai_task_table"), _tables(seed, jobs))
    return [
        write_tar_gz(folder / f"{n}.tar.gz", {f"{n}.csv": t.to_csv(index=False, header=False, lineterminator="\n")})
        for n, t in tables
    ]


def _tables(seed: int, count: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    drawn, rng = draw_jobs(PAI, count, seed)
    names, odd = hex_names(rng, count, 16), pick(rng, count, UNFINISHED)
    start = drawn["submit_unix_s"] + drawn["wait_s"]
    open_end = np.isin(odd, ["Running", "no end"])
    ended = (start + np.where(odd == "zero run", 0, drawn["run_s"])).astype("Int64").mask(open_end)
    instances, plan_gpu = _plans(drawn["gpus"].to_numpy(), rng)
    status = np.where(np.isin(odd, ["Failed", "Running"]), odd, "Terminated")
    tasks = pd.DataFrame(
        {
            "job_name": names,
            "task_name": pick(rng, count, TASK_NAMES),
            "inst_num": instances,
            "status": status,
            "start_time": start,
            "end_time": ended,
            "plan_cpu": rng.choice(PLAN_CPU, count),
            "plan_mem": rng.choice(PLAN_MEM, count),
            "plan_gpu": plan_gpu,
            "gpu_type": pd.Series(pick(rng, count, GPU_TYPES)).replace("", None),
        }
    )
    servers = np.sort(rng.choice(count, int(count * CPU_TASKS_PER_GPU_TASK), replace=False))
    cpu = tasks.iloc[servers].assign(task_name="ps", plan_gpu=pd.NA, gpu_type=None)
    jobs = pd.DataFrame(
        {
            "job_name": names,
            "inst_id": hex_names(rng, count, 16),
            "user": hex_names(rng, PAI.users, 12)[drawn["user"]],
            "status": status,
            "start_time": drawn["submit_unix_s"],
            "end_time": ended,
        }
    )
    return jobs, pd.concat([tasks, cpu]).sort_index(kind="stable")


def _plans(gpus: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(instances, percent of a GPU each) whose product, rounded up, is ``gpus``; half of the single GPUs are shares."""
    share = rng.choice([25, 50], len(gpus))
    single = (gpus == 1) & (rng.uniform(size=len(gpus)) < 0.5)
    halves = (gpus > 1) & (rng.uniform(size=len(gpus)) < 0.1)
    return np.where(halves, 2 * gpus, gpus), np.where(single, share, np.where(halves, 50, 100))
