"""A synthetic Helios archive: ``data.zip`` with Venus' ``cluster_log.csv``.

One row in ten is a CPU job, next to the GPU jobs asked for (in the published log it is one in two).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from rltune.traces.synthetic.archives import pick, wall_clock, write_zip
from rltune.traces.synthetic.model import draw_jobs, generator
from rltune.traces.synthetic.models import HELIOS

STATE = {"COMPLETED": 0.526, "CANCELLED": 0.272, "FAILED": 0.19, "TIMEOUT": 0.008, "NODE_FAIL": 0.004}
"""Completed, cancelled, and failed in sum: GPU jobs of Venus in the published cluster summary; the split is ours."""
ODD = {"no start": 0.001, "zero run": 0.0005}
"""Our choice: cancelled before the start, ended at once."""
CPU_PER_GPU_JOB = 1 / 9
CPUS_PER_GPU = 6  # Venus nodes have 48 CPU threads for 8 GPUs


def write(folder: Path, seed: int, jobs: int) -> list[Path]:
    """Write the archive into ``folder``; returns its path."""
    text = _log(seed, jobs).to_csv(index=False, lineterminator="\n")
    return [write_zip(folder / "data.zip", {"data/Venus/cluster_log.csv": text})]


def _log(seed: int, count: int) -> pd.DataFrame:
    rng = generator(HELIOS, seed)
    jobs = draw_jobs(HELIOS, count, rng)
    cpu = jobs.iloc[np.sort(rng.choice(count, int(count * CPU_PER_GPU_JOB), replace=False))]
    # CPU jobs: the median of 21 s and mean of 1,650 s of the published summary, as a lognormal.
    run = np.ceil(21 * np.exp(2.95 * rng.standard_normal(len(cpu)))).clip(max=HELIOS.longest_s)
    submit = cpu["submit_unix_s"] + rng.integers(0, 600, len(cpu))
    jobs = pd.concat([jobs, cpu.assign(gpus=0, run_s=run.astype(np.int64), submit_unix_s=submit)])
    jobs = jobs.sort_values("submit_unix_s", kind="stable", ignore_index=True)
    rows, gpus = len(jobs), jobs["gpus"]
    odd = pick(rng, rows, ODD)
    never = odd == "no start"
    run = np.where(odd == "zero run", 0, jobs["run_s"])
    start = jobs["submit_unix_s"] + jobs["wait_s"]
    zone = HELIOS.time_zone
    names = np.array([f"u{code:05d}" for code in rng.permutation(100_000)[: HELIOS.users]], dtype=object)
    return pd.DataFrame(
        {
            "job_id": 100_000 + np.arange(rows),
            "user": names[jobs["user"]],
            "vc": jobs["vc"],
            "gpu_num": gpus,
            "cpu_num": np.where(gpus > 0, gpus * CPUS_PER_GPU, rng.integers(1, 17, rows)),
            "node_num": np.maximum(1, -(-gpus // 8)),
            "state": np.where(never, "CANCELLED", pick(rng, rows, STATE)),
            "submit_time": wall_clock(jobs["submit_unix_s"], zone),
            "start_time": np.where(never, None, wall_clock(start, zone)),
            "end_time": np.where(never, None, wall_clock(start + run, zone)),
            "duration": pd.Series(run, dtype="Int64").mask(never),
            "queue": jobs["wait_s"],
        }
    )
