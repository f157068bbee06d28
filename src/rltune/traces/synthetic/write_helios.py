"""A synthetic Helios archive: ``data.zip`` with Venus' ``cluster_log.csv`` and ``cluster_gpu_number.csv``.

One row in ten is a CPU job on top of the GPU jobs asked for (in the published log it is one in two; fewer keep the
default small).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from rltune.traces.synthetic.archives import write_zip
from rltune.traces.synthetic.engine import draw_jobs, streams
from rltune.traces.synthetic.oddities import pick, wall_clock
from rltune.traces.synthetic.parameters import VENUS_VC_GPUS, load

SALT = 2020
PART = "Venus"
STATE = {"COMPLETED": 0.526, "CANCELLED": 0.272, "FAILED": 0.19, "TIMEOUT": 0.008, "NODE_FAIL": 0.004}
"""Completed, cancelled, and failed in sum: GPU jobs of Venus in the published cluster summary; the split is ours."""
ODD = {"no start": 0.001, "zero run": 0.0005}
"""Our choice: cancelled before the start, ended at once."""
CPU_PER_GPU_JOB = 1 / 9
CPUS_PER_GPU = 6  # Venus nodes have 48 CPU threads for 8 GPUs
COLUMNS = [
    "job_id",
    "user",
    "vc",
    "gpu_num",
    "cpu_num",
    "node_num",
    "state",
    "submit_time",
    "start_time",
    "end_time",
    "duration",
    "queue",
]


def write(folder: Path, seed: int, jobs: int) -> list[Path]:
    """Write the archive into ``folder``; returns its path."""
    rng = streams(seed, SALT)
    log = _log(rng, jobs)
    path = folder / "data.zip"
    members = {
        f"data/{PART}/cluster_log.csv": log.to_csv(index=False, lineterminator="\n").encode(),
        f"data/{PART}/cluster_gpu_number.csv": _gpu_numbers(log).encode(),
    }
    write_zip(path, members)
    return [path]


def _log(rng: dict[str, np.random.Generator], count: int) -> pd.DataFrame:
    extras = rng["extras"]
    parameters = load("helios")
    jobs = draw_jobs(parameters, count, rng)
    spare = jobs.sample(n=int(count * CPU_PER_GPU_JOB), random_state=int(extras.integers(2**31)))
    # CPU jobs: the median of 21 s and mean of 1,650 s of the published summary, as a lognormal.
    cpu = spare.assign(gpus=0, run_s=np.ceil(21 * np.exp(2.95 * extras.standard_normal(len(spare)))).astype(np.int64))
    cpu["run_s"] = cpu["run_s"].clip(upper=parameters.max_run_s)
    cpu["submit_unix_s"] += extras.integers(0, 600, len(spare))
    jobs = pd.concat([jobs, cpu]).sort_values("submit_unix_s", kind="stable", ignore_index=True)
    rows = len(jobs)
    odd = pick(extras, rows, ODD)
    never = odd == "no start"
    run = np.where(odd == "zero run", 0, jobs["run_s"])
    start = (jobs["submit_unix_s"] + jobs["wait_s"]).to_numpy()
    zone = parameters.time_zone
    names = np.array([f"u{code:05d}" for code in extras.permutation(100_000)[: parameters.users]], dtype=object)
    state = pick(extras, rows, STATE)
    table = {
        "job_id": 100_000 + np.arange(rows),
        "user": names[jobs["user"]],
        "vc": jobs["vc"],
        "gpu_num": jobs["gpus"],
        "cpu_num": np.where(jobs["gpus"] > 0, jobs["gpus"] * CPUS_PER_GPU, extras.integers(1, 17, rows)),
        "node_num": np.maximum(1, -(-jobs["gpus"] // 8)),
        "state": np.where(never, "CANCELLED", state),
        "submit_time": wall_clock(jobs["submit_unix_s"].to_numpy(), zone),
        "start_time": np.where(never, None, wall_clock(start, zone)),
        "end_time": np.where(never, None, wall_clock(start + run, zone)),
        "duration": pd.Series(run, dtype="Int64").mask(never),
        "queue": jobs["wait_s"],
    }
    return pd.DataFrame(table)[COLUMNS]


def _gpu_numbers(log: pd.DataFrame) -> str:
    """GPUs of each virtual cluster on each day: the same every day."""
    days = pd.date_range(log["submit_time"].min()[:10], log["submit_time"].max()[:10], freq="D")
    sizes = [str(gpus) for gpus in VENUS_VC_GPUS.values()]
    total = sum(VENUS_VC_GPUS.values())
    lines = [",".join(["date", *VENUS_VC_GPUS, "total"])]
    lines += [",".join([day.strftime("%Y-%m-%d"), *sizes, str(total)]) for day in days]
    return "\n".join(lines) + "\n"
