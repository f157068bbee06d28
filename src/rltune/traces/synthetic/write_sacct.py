"""Synthetic Slurm logs, the text of ``sacct --parsable2``, of made-up clusters: ``example`` is the log of 128 GPUs that
shows what a report on an operator's log looks like, ``finetuning`` the jobs of the deployment (paper §5.6) on 13.

Waits are those of a queue in which the first job that fits goes first, on all GPUs as one pool without nodes: a
simulation of the same jobs on nodes comes near them, and not too near.
"""

import heapq
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.traces.readers.sacct import FORMAT
from rltune.traces.synthetic.archives import pick, wall_clock, write_gz
from rltune.traces.synthetic.model import DAY_S, Model, draw_jobs
from rltune.traces.synthetic.models import EXAMPLE, FINETUNING

LOOKS_AT = 200
"""Waiting jobs looked at, at most, when GPUs come free."""


@dataclass(frozen=True)
class Log:
    """What a log is drawn from."""

    model: Model
    gpus: int
    gpus_a_node: int
    limit_s: int
    """The partition's limit: a job that runs as long ended by it."""
    limits_s: tuple[int, ...]
    """What users ask for: the next of these above the run time …"""
    margin: tuple[float, ...]
    """… or one or several further: share of jobs. Limits are known to be several times the run time."""
    states: dict[str, float] = field(default_factory=dict)
    """Ends of jobs other than COMPLETED → share."""
    odd: dict[str, float] = field(default_factory=dict)
    """Oddities of rows → share."""


LOGS = {
    "example": Log(
        EXAMPLE,
        gpus=128,
        gpus_a_node=8,
        limit_s=7 * DAY_S,
        limits_s=tuple(3600 * h for h in (1, 2, 4, 8, 12, 24, 48, 72, 168)),
        margin=(0.25, 0.3, 0.25, 0.2),
        states={"FAILED": 0.12, "CANCELLED by 1007": 0.12, "OUT_OF_MEMORY": 0.02, "NODE_FAIL": 0.003},
        odd={"never started": 0.02, "unknown end": 0.001, "step": 0.05},
    ),
    "finetuning": Log(
        FINETUNING,
        gpus=16,  # three more than the paper's 13, so that its queue does not grow without end
        gpus_a_node=4,
        limit_s=DAY_S // 2,
        limits_s=tuple(60 * m for m in (10, 20, 30, 60, 120, 240, 480, 720)),
        margin=(0.35, 0.35, 0.2, 0.1),
    ),
}
"""The logs, by ``part`` of a trace's configuration."""


def write(folder: Path, seed: int, jobs: int, part: str | None = None) -> list[Path]:
    """Write a log into ``folder``, that of ``example`` where ``part`` names none; returns its path."""
    log = LOGS[part or "example"]
    rows = _rows(log, *draw_jobs(log.model, jobs, seed))
    text = rows.to_csv(sep="|", columns=FORMAT.split(","), index=False, lineterminator="\n")
    return [write_gz(folder / "sacct.txt.gz", text.encode())]


def _rows(log: Log, jobs: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The rows of the log, in the order of submission; steps behind their job."""
    count, submit, run = len(jobs), jobs["submit_unix_s"], jobs["run_s"].to_numpy()
    further = rng.choice(len(log.margin), size=count, p=log.margin)
    limit = np.array(log.limits_s)[np.minimum(np.searchsorted(log.limits_s, run) + further, len(log.limits_s) - 1)]
    state, odd = pick(rng, count, log.states), pick(rng, count, log.odd)
    state = np.where(run >= log.limit_s, "TIMEOUT", np.where(state == "", "COMPLETED", state))
    never, lost, run = odd == "never started", odd == "unknown end", np.where(odd == "never started", 0, run)
    start = submit + _waits(submit.to_numpy(), run, jobs["gpus"].to_numpy(), log.gpus)
    rows = pd.DataFrame({"JobID": [f"{100_000 + i}" for i in range(count)], "Partition": "gpu"})
    rows["User"] = jobs["user"].map("user{:02d}".format)
    for name, unix_s in (("Submit", submit), ("Start", start), ("End", start + run)):
        rows[name] = wall_clock(unix_s, log.model.time_zone, "T")
    rows.loc[never, "Start"], rows.loc[lost, "End"] = "None", "Unknown"
    rows["ElapsedRaw"], rows["TimelimitRaw"] = run, (limit // 60).astype(str)
    rows["State"] = np.where(never, "CANCELLED by 1007", np.where(lost, "NODE_FAIL", state))
    rows["NNodes"], rows["ReqCPUS"] = -(-jobs["gpus"] // log.gpus_a_node), 4 * jobs["gpus"]
    rows["AllocCPUS"] = rows["ReqCPUS"].mask(never, 0)
    rows["ReqMem"] = [f"{8 * cores}G" for cores in rows["ReqCPUS"]]
    amounts = zip(rows["ReqCPUS"], jobs["gpus"], rows["ReqMem"], rows["NNodes"], strict=True)
    rows["ReqTRES"] = ["billing={0},cpu={0},gres/gpu={1},mem={2},node={3}".format(*amount) for amount in amounts]
    rows["AllocTRES"] = rows["ReqTRES"].mask(never, "")
    step = rows[odd == "step"]
    held = [f"cpu={cores},mem={memory},node=1" for cores, memory in zip(step["ReqCPUS"], step["ReqMem"], strict=True)]
    step = step.assign(JobID=step["JobID"] + ".batch", Submit=step["Start"], NNodes=1, AllocTRES=held)
    step[["User", "Partition", "TimelimitRaw", "ReqMem", "ReqTRES"]] = ""
    return pd.concat([rows, step]).sort_index(kind="stable")


def _waits(submit: np.ndarray, run: np.ndarray, gpus: np.ndarray, of_cluster: int) -> np.ndarray:
    """Seconds each job waits [J]: when GPUs come free, or a job comes, every job of the first LOOKS_AT that fits starts."""
    wait, free = np.zeros(len(submit), np.int64), of_cluster
    queue: list[int] = []
    ends: list[tuple[int, int]] = []
    arrivals = [*zip(submit.tolist(), range(len(submit)), strict=True)]
    k = 0
    while k < len(arrivals) or queue:
        time_s = min(arrivals[k][0] if k < len(arrivals) else ends[0][0], ends[0][0] if ends else arrivals[k][0])
        while ends and ends[0][0] <= time_s:
            free += heapq.heappop(ends)[1]
        while k < len(arrivals) and arrivals[k][0] <= time_s:
            queue.append(arrivals[k][1])
            k += 1
        for job in queue[:LOOKS_AT]:
            if gpus[job] <= free:
                free -= int(gpus[job])
                heapq.heappush(ends, (time_s + int(run[job]), int(gpus[job])))
                wait[job] = time_s - int(submit[job])
                queue.remove(job)
    return wait
