"""Synthetic PAI tables: ``pai_job_table``, ``pai_task_table``, ``pai_machine_spec``, each a headerless CSV in a tar.gz.

On top of the GPU tasks asked for there are CPU tasks (parameter servers) beside some of them and a few tasks that did
not finish, as in the original.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from rltune.traces.synthetic.archives import write_tar_gz
from rltune.traces.synthetic.engine import draw_jobs, streams
from rltune.traces.synthetic.oddities import hex_names, pick
from rltune.traces.synthetic.parameters import load

SALT = 2022
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
MACHINES = (
    ("CPU", 96, 512, 0, 83),
    ("MISC", 96, 512, 8, 280),
    ("P100", 64, 512, 2, 798),
    ("T4", 96, 512, 2, 497),
    ("V100", 96, 384, 8, 45),
    ("V100", 96, 512, 8, 59),
    ("V100M32", 96, 384, 8, 135),
)
"""Type, CPUs, memory in GB, GPUs, machines: counts of the published machine table."""
CPU_TASKS_PER_GPU_TASK = 0.05
UNFINISHED = {"Failed": 0.01, "Running": 0.002, "no end": 0.001, "zero run": 0.0005}
"""Our choice, after the kinds of rows the published table has."""
PLAN_CPU, PLAN_MEM = (600, 1200, 300), (29.296875, 58.59375, 14.6484375)
"""Percent of a core, and GB, per instance: values common in the published table; their mix is our choice."""


def write(folder: Path, seed: int, jobs: int) -> list[Path]:
    """Write the three archives into ``folder``; returns their paths."""
    rng = streams(seed, SALT)
    job_table, task_table = _tables(rng, jobs)
    tables = {"pai_job_table": job_table, "pai_task_table": task_table, "pai_machine_spec": _machines(rng["extras"])}
    paths = []
    for name, table in tables.items():
        path = folder / f"{name}.tar.gz"
        text = table.to_csv(index=False, header=False, lineterminator="\n")
        write_tar_gz(path, {f"{name}.csv": text.encode()})
        paths.append(path)
    return paths


def _tables(rng: dict[str, np.random.Generator], count: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    extras = rng["extras"]
    parameters = load("alibaba2020")
    drawn = draw_jobs(parameters, count, rng)
    names = np.array(hex_names(extras, count, 16), dtype=object)
    users = np.array(hex_names(extras, parameters.users, 12), dtype=object)
    odd = pick(extras, count, UNFINISHED)
    submit = drawn["submit_unix_s"].to_numpy()
    start = submit + drawn["wait_s"].to_numpy()
    end = start + np.where(odd == "zero run", 0, drawn["run_s"].to_numpy())
    open_end = np.isin(odd, ["Running", "no end"])
    instances, plan_gpu = _plans(drawn["gpus"].to_numpy(), extras)
    status = np.where(np.isin(odd, ["Failed", "Running"]), odd, "Terminated")
    ended = pd.Series(end, dtype="Int64").mask(open_end)
    tasks = pd.DataFrame(
        {
            "job_name": names,
            "task_name": pick(extras, count, TASK_NAMES),
            "inst_num": instances,
            "status": status,
            "start_time": start,
            "end_time": ended,
            "plan_cpu": extras.choice(PLAN_CPU, count),
            "plan_mem": extras.choice(PLAN_MEM, count),
            "plan_gpu": plan_gpu,
            "gpu_type": pd.Series(pick(extras, count, GPU_TYPES)).replace("", None),
        }
    )
    beside = np.sort(extras.choice(count, int(count * CPU_TASKS_PER_GPU_TASK), replace=False))
    cpu = tasks.iloc[beside].assign(task_name="ps", plan_gpu=pd.NA, gpu_type=None)
    jobs = pd.DataFrame(
        {
            "job_name": names,
            "inst_id": hex_names(extras, count, 16),
            "user": users[drawn["user"]],
            "status": status,
            "start_time": submit,
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


def _machines(rng: np.random.Generator) -> pd.DataFrame:
    rows = [(kind, cpus, memory, gpus) for kind, cpus, memory, gpus, count in MACHINES for _ in range(count)]
    table = pd.DataFrame(rows, columns=["gpu_type", "cap_cpu", "cap_mem", "cap_gpu"])
    table.insert(0, "machine", hex_names(rng, len(table), 16))
    return table
