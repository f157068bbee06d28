"""A synthetic Philly archive: ``trace-data.tar.gz`` with ``cluster_job_log`` (JSON) and ``cluster_machine_list``.

Odd rows on top of the GPU jobs asked for: none; a small share *of* them is odd, as in the original: jobs without
attempts (cancelled in the queue), attempts without times, retries, runs of zero seconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rltune.traces.synthetic.archives import write_tar_gz
from rltune.traces.synthetic.engine import draw_jobs, streams
from rltune.traces.synthetic.oddities import hex_names, pick, wall_clock
from rltune.traces.synthetic.parameters import load

SALT = 2017
NODES = ((321, 2, "12GB"), (231, 8, "24GB"))
"""Nodes, GPUs each, memory of one GPU: the published machine list."""
STATUS = {"Pass": 0.693, "Killed": 0.135, "Failed": 0.172}
"""Shares of Jeon et al., USENIX ATC 2019, Table 6 (there 'unsuccessful' for Failed)."""
ODD = {"no attempt": 0.005, "no times": 0.002, "no end": 0.001, "zero run": 0.0005, "no detail": 0.0005, "retry": 0.08}
"""Our choice, after the kinds of faults the published log has."""


def write(folder: Path, seed: int, jobs: int) -> list[Path]:
    """Write the archive into ``folder``; returns its path."""
    rng = streams(seed, SALT)
    log = _log(rng, jobs)
    text = "[" + ",\n".join(json.dumps(job, separators=(",", ":")) for job in log) + "]\n"
    path = folder / "trace-data.tar.gz"
    write_tar_gz(
        path, {"trace-data/cluster_machine_list": _machines().encode(), "trace-data/cluster_job_log": text.encode()}
    )
    return [path]


def _log(rng: dict[str, np.random.Generator], count: int) -> list[dict[str, Any]]:
    parameters = load("philly")
    jobs = draw_jobs(parameters, count, rng)
    extras = rng["extras"]
    users = hex_names(extras, parameters.users, 6)
    numbers = extras.permutation(count * 3)[:count]
    status = pick(extras, count, STATUS)
    odd = pick(extras, count, ODD)
    run = np.where(odd == "zero run", 0, jobs["run_s"].to_numpy())
    submit = jobs["submit_unix_s"].to_numpy()
    start = submit + jobs["wait_s"].to_numpy()
    # A retry: a first attempt of a part of the run, a pause of a minute, and the rest.
    retry = (odd == "retry") & (run >= 2)
    first_run = np.where(retry, np.maximum(1, (run * extras.uniform(0.05, 0.95, count)).astype(np.int64)), run)
    second_start = start + first_run + 60
    zone = parameters.time_zone
    times = {
        "submit": wall_clock(submit, zone),
        "start": wall_clock(start, zone),
        "end": wall_clock(start + first_run, zone),
        "again": wall_clock(second_start, zone),
        "over": wall_clock(second_start + run - first_run, zone),
    }
    node = extras.integers(0, NODES[0][0] + NODES[1][0], count)
    rows = []
    columns = (jobs["user"], jobs["vc"], jobs["gpus"], numbers, status, odd, retry, node, *times.values())
    for user, vc, gpus, number, state, fault, twice, at, submitted, begin, end, again, over in zip(*columns):
        detail = [] if fault == "no detail" else _detail(int(gpus), int(at))
        begin = None if fault == "no times" else begin
        end = "None" if fault == "no end" else None if fault == "no times" else end
        attempts = [{"start_time": begin, "end_time": end, "detail": detail}]
        if twice:
            attempts.append({"start_time": again, "end_time": over, "detail": detail})
        rows.append(
            {
                "status": state,
                "vc": vc,
                "jobid": f"application_1506638472019_{number:06d}",
                "attempts": [] if fault == "no attempt" else attempts,
                "submitted_time": submitted,
                "user": users[user],
            }
        )
    return rows


def _detail(gpus: int, first_node: int) -> list[dict[str, Any]]:
    """GPUs by node, whole 8-GPU nodes and a remainder."""
    sizes = [8] * (gpus // 8) + ([gpus % 8] if gpus % 8 else [])
    return [{"ip": f"m{(first_node + i) % 552}", "gpus": [f"gpu{k}" for k in range(n)]} for i, n in enumerate(sizes)]


def _machines() -> str:
    lines = ["machineId, number of GPUs, single GPU mem"]
    for nodes, gpus, memory in NODES:
        lines += [f"m{len(lines) - 1 + i},{gpus}, {memory}" for i in range(nodes)]
    return "\n".join(lines) + "\n"
