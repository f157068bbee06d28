"""A synthetic Slurm log, the text of ``sacct --parsable2``, of a made-up cluster of 128 GPUs: for the example of an own
log. Jobs, users and run times are drawn as Helios' are; partition, limits, waits and oddities are our choice.

Waits are those of a queue in which the first job that fits goes first, on all GPUs as one heap: a likeness of what a
cluster records, without nodes. So a simulation of the same jobs on nodes comes near them, and not too near.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.traces.readers.sacct import FORMAT
from rltune.traces.synthetic.archives import write_gz
from rltune.traces.synthetic.engine import draw_jobs, streams
from rltune.traces.synthetic.oddities import pick
from rltune.traces.synthetic.parameters import Parameters, load

SALT = 2024
GPUS = 128
"""Of the made-up cluster: 16 nodes of 8."""
ZONE, START = "Europe/Berlin", "2024-01-08 00:00:00"
LIMIT_S = 7 * 86_400
"""The partition's limit."""
LIMITS_S = tuple(3600 * h for h in (1, 2, 4, 8, 12, 24, 48, 72, 168))
"""What users ask for: the next of these above the run time, or one or several further."""
MARGIN = {0: 0.25, 1: 0.3, 2: 0.25, 3: 0.2}
"""How many further → share of jobs."""
SECONDS_A_JOB = 900.0
"""Mean gap between submissions: with such run times the cluster is asked for some six tenths of what it has, in busy
weeks for more than all."""
STATES = {"FAILED": 0.12, "CANCELLED by 1007": 0.12, "OUT_OF_MEMORY": 0.02, "NODE_FAIL": 0.003}
ODD = {"never started": 0.02, "unknown end": 0.001, "step": 0.05}
LOOKS_AT = 200
"""Waiting jobs looked at, at most, when GPUs come free."""


def write(folder: Path, seed: int, jobs: int) -> list[Path]:
    """Write the log into ``folder``; returns its path."""
    rng = streams(seed, SALT)
    rows = _rows(draw_jobs(_parameters(), jobs, rng), rng["extras"])
    path = folder / "sacct.txt.gz"
    write_gz(path, ("\n".join([FORMAT.replace(",", "|"), *rows]) + "\n").encode())
    return [path]


def _parameters() -> Parameters:
    helios = load("helios")
    shares = {n: share for n, share in helios.marginals.gpu_shares.items() if n <= 32}
    marginals = replace(helios.marginals, rate_per_s=1 / SECONDS_A_JOB, gpu_shares=shares)
    return replace(helios, start=START, time_zone=ZONE, users=48, max_run_s=LIMIT_S, vcs={}, vc_gpus={},
                   marginals=marginals)


def _rows(jobs: pd.DataFrame, rng: np.random.Generator) -> list[str]:
    """The lines of the log, in the order of submission; steps behind their job."""
    count = len(jobs)
    run, gpus = jobs["run_s"].to_numpy(), jobs["gpus"].to_numpy()
    submit = jobs["submit_unix_s"].to_numpy()
    limit = _limits(run, rng)
    state, odd = pick(rng, count, STATES), pick(rng, count, ODD)
    state = np.where(run >= LIMIT_S, "TIMEOUT", np.where(state == "", "COMPLETED", state))
    start = submit + _waits(submit, np.where(odd == "never started", 0, run), gpus)
    at = {name: _slurm_time(seconds) for name, seconds in (("submit", submit), ("start", start), ("end", start + run))}
    lines = []
    for i in range(count):
        job, user = 100_000 + i, f"user{jobs['user'].iloc[i]:02d}"
        nodes, cores = -(-int(gpus[i]) // 8), 4 * int(gpus[i])
        asked = f"billing={cores},cpu={cores},gres/gpu={gpus[i]},mem={8 * cores}G,node={nodes}"
        had = [at["start"][i], at["end"][i]]
        said, elapsed, given, alive = state[i], run[i], asked, cores
        if odd[i] == "never started":
            had, said, elapsed, given, alive = ["None", at["start"][i]], "CANCELLED by 1007", 0, "", 0
        elif odd[i] == "unknown end":
            had[1], said = "Unknown", "NODE_FAIL"
        fields = [job, user, "gpu", at["submit"][i], *had, elapsed, limit[i] // 60, said, nodes, cores, alive,
                  f"{8 * cores}G", asked, given]
        lines.append("|".join(map(str, fields)))
        if odd[i] == "step":
            step = [f"{job}.batch", "", "", at["start"][i], *had, elapsed, "", said, 1, cores, cores, "", "",
                    f"cpu={cores},mem={8 * cores}G,node=1"]  # fmt: skip
            lines.append("|".join(map(str, step)))
    return lines


def _limits(run: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What each job's user asks for, s: never less than its run time."""
    least = np.searchsorted(LIMITS_S, run)
    further = rng.choice(list(MARGIN), size=len(run), p=list(MARGIN.values()))
    return np.array(LIMITS_S)[np.minimum(least + further, len(LIMITS_S) - 1)]


def _waits(submit: np.ndarray, run: np.ndarray, gpus: np.ndarray) -> np.ndarray:
    """Seconds each job waits [J]: when GPUs come free, or a job comes, whoever of the first LOOKS_AT fits starts."""
    wait, free, queue = np.zeros(len(submit), np.int64), GPUS, []
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


def _slurm_time(unix_s: np.ndarray) -> list[str]:
    """``YYYY-MM-DDThh:mm:ss`` in the cluster's zone, as sacct writes it."""
    local = pd.to_datetime(pd.Series(unix_s), unit="s", utc=True).dt.tz_convert(ZONE)
    return local.dt.strftime("%Y-%m-%dT%H:%M:%S").tolist()
