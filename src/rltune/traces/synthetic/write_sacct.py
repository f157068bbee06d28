"""Synthetic Slurm logs, the text of ``sacct --parsable2``, of made-up clusters: ``example`` is the log of 128 GPUs that
shows what a report on an own log looks like, ``finetuning`` the jobs of the deployment (paper §5.6) on 13.

Waits are those of a queue in which the first job that fits goes first, on all GPUs as one heap: a likeness of what a
cluster records, without nodes. So a simulation of the same jobs on nodes comes near them, and not too near.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.traces.readers.sacct import FORMAT
from rltune.traces.synthetic import finetuning
from rltune.traces.synthetic.archives import write_gz
from rltune.traces.synthetic.engine import draw_jobs, streams
from rltune.traces.synthetic.oddities import pick
from rltune.traces.synthetic.parameters import Parameters, load

GPUS = 128
"""Of the example's cluster: 16 nodes of 8."""
LIMIT_S = 7 * 86_400
"""The limit of its partition."""
LIMITS_S = tuple(3600 * h for h in (1, 2, 4, 8, 12, 24, 48, 72, 168))
"""What its users ask for: the next of these above the run time, or one or several further."""
SECONDS_A_JOB = 900.0
"""Mean gap between its submissions: with such run times the cluster is asked for some six tenths of what it has, in busy
weeks for more than all."""
LOOKS_AT = 200
"""Waiting jobs looked at, at most, when GPUs come free."""


def _example() -> Parameters:
    """Jobs, users and run times are drawn as Helios' are; partition, limits, waits and oddities are our choice."""
    helios = load("helios")
    shares = {n: share for n, share in helios.marginals.gpu_shares.items() if n <= 32}
    marginals = replace(helios.marginals, rate_per_s=1 / SECONDS_A_JOB, gpu_shares=shares)
    return replace(
        helios,
        start="2024-01-08 00:00:00",
        time_zone="Europe/Berlin",
        users=48,
        max_run_s=LIMIT_S,
        vcs={},
        vc_gpus={},
        marginals=marginals,
    )


@dataclass(frozen=True)
class Log:
    """What a log is drawn from."""

    salt: int
    parameters: Callable[[], Parameters]
    gpus: int
    gpus_a_node: int
    limit_s: int
    """The partition's limit: a job that runs as long ended by it."""
    limits_s: tuple[int, ...]
    margin: dict[int, float] = field(default_factory=lambda: {0: 0.25, 1: 0.3, 2: 0.25, 3: 0.2})
    """How many of ``limits_s`` beyond the least that holds the run time a user asks for → share of jobs."""
    states: dict[str, float] = field(default_factory=dict)
    """Ends of jobs other than COMPLETED → share."""
    odd: dict[str, float] = field(default_factory=dict)
    """Oddities of rows → share."""


LOGS = {
    "example": Log(
        2024,
        _example,
        GPUS,
        8,
        LIMIT_S,
        LIMITS_S,
        states={"FAILED": 0.12, "CANCELLED by 1007": 0.12, "OUT_OF_MEMORY": 0.02, "NODE_FAIL": 0.003},
        odd={"never started": 0.02, "unknown end": 0.001, "step": 0.05},
    ),
    "finetuning": Log(
        2026,
        finetuning.parameters,
        finetuning.RECORDED_GPUS,
        finetuning.GPUS_A_NODE,
        finetuning.LIMIT_S,
        finetuning.LIMITS_S,
        finetuning.MARGIN,
    ),
}
"""The logs, by ``part`` of a trace's configuration."""


def write(folder: Path, seed: int, jobs: int, part: str | None = None) -> list[Path]:
    """Write a log into ``folder``, that of ``example`` where ``part`` names none; returns its path."""
    log = LOGS[part or "example"]
    rng, parameters = streams(seed, log.salt), log.parameters()
    rows = _rows(log, parameters.time_zone, draw_jobs(parameters, jobs, rng), rng["extras"])
    path = folder / "sacct.txt.gz"
    write_gz(path, ("\n".join([FORMAT.replace(",", "|"), *rows]) + "\n").encode())
    return [path]


def _rows(log: Log, zone: str, jobs: pd.DataFrame, rng: np.random.Generator) -> list[str]:
    """The lines of the log, in the order of submission; steps behind their job."""
    count = len(jobs)
    run, gpus = jobs["run_s"].to_numpy(), jobs["gpus"].to_numpy()
    submit = jobs["submit_unix_s"].to_numpy()
    limit = _limits(log, run, rng)
    state, odd = pick(rng, count, log.states), pick(rng, count, log.odd)
    state = np.where(run >= log.limit_s, "TIMEOUT", np.where(state == "", "COMPLETED", state))
    start = submit + _waits(submit, np.where(odd == "never started", 0, run), gpus, log.gpus)
    at = {
        name: _slurm_time(seconds, zone)
        for name, seconds in (("submit", submit), ("start", start), ("end", start + run))
    }
    lines = []
    for i in range(count):
        job, user = 100_000 + i, f"user{jobs['user'].iloc[i]:02d}"
        nodes, cores = -(-int(gpus[i]) // log.gpus_a_node), 4 * int(gpus[i])
        asked = f"billing={cores},cpu={cores},gres/gpu={gpus[i]},mem={8 * cores}G,node={nodes}"
        had = [at["start"][i], at["end"][i]]
        said, elapsed, given, alive = state[i], run[i], asked, cores
        if odd[i] == "never started":
            had, said, elapsed, given, alive = ["None", at["start"][i]], "CANCELLED by 1007", 0, "", 0
        elif odd[i] == "unknown end":
            had[1], said = "Unknown", "NODE_FAIL"
        fields = [
            job,
            user,
            "gpu",
            at["submit"][i],
            *had,
            elapsed,
            limit[i] // 60,
            said,
            nodes,
            cores,
            alive,
            f"{8 * cores}G",
            asked,
            given,
        ]
        lines.append("|".join(map(str, fields)))
        if odd[i] == "step":
            step = [
                f"{job}.batch",
                "",
                "",
                at["start"][i],
                *had,
                elapsed,
                "",
                said,
                1,
                cores,
                cores,
                "",
                "",
                f"cpu={cores},mem={8 * cores}G,node=1",
            ]
            lines.append("|".join(map(str, step)))
    return lines


def _limits(log: Log, run: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What each job's user asks for, s: never less than its run time."""
    least = np.searchsorted(log.limits_s, run)
    further = rng.choice(list(log.margin), size=len(run), p=list(log.margin.values()))
    return np.array(log.limits_s)[np.minimum(least + further, len(log.limits_s) - 1)]


def _waits(submit: np.ndarray, run: np.ndarray, gpus: np.ndarray, of_cluster: int) -> np.ndarray:
    """Seconds each job waits [J]: when GPUs come free, or a job comes, whoever of the first LOOKS_AT fits starts."""
    wait, free, queue = np.zeros(len(submit), np.int64), of_cluster, []
    ends: list[tuple[int, int]] = []
    arrivals = [*zip(submit.tolist(), range(len(submit)), strict=True)]
    k = 0
    while k < len(arrivals) or queue:
        now = min(arrivals[k][0] if k < len(arrivals) else ends[0][0], ends[0][0] if ends else arrivals[k][0])
        while ends and ends[0][0] <= now:
            free += heapq.heappop(ends)[1]
        while k < len(arrivals) and arrivals[k][0] <= now:
            queue.append(arrivals[k][1])
            k += 1
        for job in queue[:LOOKS_AT]:
            if gpus[job] <= free:
                free -= int(gpus[job])
                heapq.heappush(ends, (now + int(run[job]), int(gpus[job])))
                wait[job] = now - int(submit[job])
                queue.remove(job)
    return wait


def _slurm_time(unix_s: np.ndarray, zone: str) -> list[str]:
    """``YYYY-MM-DDThh:mm:ss`` in the cluster's zone, as sacct writes it."""
    local = pd.to_datetime(pd.Series(unix_s), unit="s", utc=True).dt.tz_convert(zone)
    return local.dt.strftime("%Y-%m-%dT%H:%M:%S").tolist()
