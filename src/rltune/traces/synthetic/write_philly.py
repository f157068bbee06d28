"""A synthetic Philly archive: ``trace-data.tar.gz`` with ``cluster_job_log`` (JSON).

A small share of the jobs is odd, as in the original: jobs without attempts (cancelled in the queue), attempts without
times, retries, runs of zero seconds.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from rltune.traces.synthetic.archives import hex_names, pick, wall_clock, write_tar_gz
from rltune.traces.synthetic.model import draw_jobs
from rltune.traces.synthetic.models import PHILLY

NODES = 552
"""Nodes in the published machine list."""
STATUS = {"Pass": 0.693, "Killed": 0.135, "Failed": 0.172}
"""Shares of Jeon et al., USENIX ATC 2019, Table 6 (there 'unsuccessful' for Failed)."""
ODD = {"no attempt": 0.005, "no times": 0.002, "no end": 0.001, "zero run": 0.0005, "no detail": 0.0005, "retry": 0.08}
"""Our choice, after the kinds of faults the published log has."""


def write(folder: Path, seed: int, jobs: int) -> list[Path]:
    """Write the archive into ``folder``; returns its path."""
    log = ",\n".join(json.dumps(job, separators=(",", ":")) for job in _log(seed, jobs))
    return [write_tar_gz(folder / "trace-data.tar.gz", {"trace-data/cluster_job_log": f"[{log}]\n"})]


def _log(seed: int, count: int) -> list[dict[str, Any]]:
    jobs, rng = draw_jobs(PHILLY, count, seed)
    jobs["user"] = hex_names(rng, PHILLY.users, 6)[jobs["user"]]
    jobs["number"] = rng.permutation(count * 3)[:count]
    jobs["status"], jobs["odd"] = pick(rng, count, STATUS), pick(rng, count, ODD)
    jobs["node"] = rng.integers(0, NODES, count)
    run = np.where(jobs["odd"] == "zero run", 0, jobs["run_s"])
    # A retry: a first attempt of a part of the run, a pause of a minute, and the rest.
    jobs["twice"] = (jobs["odd"] == "retry") & (run >= 2)
    first = np.where(jobs["twice"], np.maximum(1, (run * rng.uniform(0.05, 0.95, count)).astype(np.int64)), run)
    start = jobs["submit_unix_s"] + jobs["wait_s"]
    times = {
        "submitted": jobs["submit_unix_s"],
        "start": start,
        "end": start + first,
        "again": start + first + 60,
        "over": start + 60 + run,
    }
    for name, unix_s in times.items():
        jobs[name] = wall_clock(unix_s, PHILLY.time_zone)
    return [_job(row) for row in jobs.itertuples()]


def _job(row: Any) -> dict[str, Any]:
    detail = [] if row.odd == "no detail" else _detail(row.gpus, row.node)
    begin = None if row.odd == "no times" else row.start
    end = {"no end": "None", "no times": None}.get(row.odd, row.end)
    attempts = [{"start_time": begin, "end_time": end, "detail": detail}]
    if row.twice:
        attempts.append({"start_time": row.again, "end_time": row.over, "detail": detail})
    return {
        "status": row.status,
        "vc": row.vc,
        "jobid": f"application_1506638472019_{row.number:06d}",
        "attempts": [] if row.odd == "no attempt" else attempts,
        "submitted_time": row.submitted,
        "user": row.user,
    }


def _detail(gpus: int, first_node: int) -> list[dict[str, Any]]:
    """GPUs by node, whole 8-GPU nodes and a remainder."""
    sizes = [8] * (gpus // 8) + ([gpus % 8] if gpus % 8 else [])
    return [{"ip": f"m{(first_node + i) % NODES}", "gpus": [f"gpu{k}" for k in range(n)]} for i, n in enumerate(sizes)]
