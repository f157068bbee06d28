"""Every feature in plain Python, from its definition."""

import math

import numpy as np

from rltune.cluster.candidates import class_table, classes, count_candidates
from rltune.cluster.fit import Jobs
from rltune.cluster.free import Free
from rltune.cluster.layout import Layout
from rltune.cluster.search import EXCLUSIVE, find
from rltune.environment.features import Column
from rltune.simulator.config import DOUBLE
from rltune.simulator.state import State

HOUR_S = 3600
SeenJob = dict[str, float]


def shown(column: Column, f: SeenJob) -> float:
    """What a column shows of a job, by whether free GPUs are scattered."""
    scattered = int(f["cff"] > 0.5)
    return column.weights[scattered] * f[column.names[scattered]]


def seen_of(jobs: Jobs, layout: Layout, state: State, s: int) -> list[SeenJob]:
    """Every feature of every visible job of the queue that sequence ``s`` asks about, in the order of the queue."""
    nodes, now, first = layout.nodes, state.now[s], state.first[s]
    left, run = state.free.row[s]["gpus"], state.run[s]
    queue = [jobs.row[first + i] for i in state.queued_jobs(s)]
    running = [i for i in range(state.n[s]) if not math.isnan(run["start"][i]) and run["end"][i] > now]
    again = state.options.overrun == DOUBLE  # a job past its estimate runs as long again, or ends now
    ends = {i: run["due"][i] if run["due"][i] > now else now + again * (now - run["start"][i]) for i in running}
    out = []
    for rank, (i, job) in enumerate(zip(state.queued_jobs(s), queue)):
        p, gpus, estimate_s, wait_s = job["pool"], int(job["gpus"]), job["estimate_s"], now - job["submit_s"]
        here = [m for m in range(nodes.pool["start"][p], nodes.pool["stop"][p])]
        size = {m: int(nodes.row["gpus"][m]) for m in here}
        kinds = [t for t in range(jobs.cut.shape[1]) if jobs.cut["full"][first + i, t] >= 0]
        mine = [m for m in here if nodes.row["type"][m] in kinds]
        supply = sum(left[m] for m in mine)
        held = {r: state.chunk[s, run["at"][r] : run["at"][r] + run["len"][r]] for r in running}
        whole = state.options.rule == EXCLUSIVE  # then the whole node comes back
        ended = [c for r in running if ends[r] <= now + HOUR_S for c in held[r] if c["node"] in mine]
        back = sum(size[c["node"]] if whole else c["gpus"] for c in ended)
        releases = [ends[r] - now for r in running if jobs.row["pool"][first + r] == p]
        weight = sum(size[m] * left[m] for m in here)
        cpu_milli = job["cpu_milli"] if job["cpu_milli"] >= 0 else nodes.row["share_cpu"][here[0]]
        mem_mb = job["mem_mb"] if job["mem_mb"] >= 0 else nodes.row["share_mem"][here[0]]
        pool_gpus = sum(size.values())
        backlog_h = sum(q["gpus"] * q["estimate_s"] for q in queue if q["pool"] == p) / pool_gpus / HOUR_S
        candidates = _count(jobs, layout, state, s, first + i)
        cff = 1 - sum(left[m] ** 2 for m in here) / weight if weight else 0.0
        out.append(
            {
                "gpus": min(gpus / 64, 1),
                "estimate": min(estimate_s / 43200, 1),
                "wait": min(wait_s / 43200, 1),
                "submit": min((job["submit_s"] - jobs.row["submit_s"][first]) / 43200, 1),
                "cpus": min(gpus * cpu_milli / 512e3, 1),
                "memory": min(gpus * mem_mb / 4096e3, 1),
                "vc": p / len(layout.pools),
                "gpu_type": kinds[0] / len(layout.types),
                "log_gpus": math.log2(1 + gpus) / 7,
                "log_estimate": math.log10(1 + estimate_s) / 6,
                "job_size": math.log10(1 + gpus * estimate_s) / 8,
                "log_wait": math.log10(1 + wait_s) / 6,
                "urgency": wait_s / (wait_s + estimate_s),
                "can_schedule_now": float(candidates > 0),
                "num_ways": candidates / 8,
                "dsr": gpus / max(supply, 1) / (1 + gpus / max(supply, 1)),
                "future_availability": min(max((supply - gpus + back) / sum(size[m] for m in mine), -1), 1),
                "cff": cff,
                "scattered": float(cff > 0.5),
                "sampled_ways": candidates / 8 * (2 if candidates > 1 else 1),
                "free_share": sum(left[m] for m in here) / pool_gpus,
                "free_nodes": sum(left[m] == size[m] for m in here) / len(here),
                "queue_length": math.log2(1 + state.queued[s]) / 8,
                "backlog": math.log10(1 + backlog_h) / 3,
                "next_release": min(releases) / (min(releases) + 600) if releases else 1.0,
                "rank_size": _rank(gpus * estimate_s, [q["gpus"] * q["estimate_s"] for q in queue]),
                "rank_estimate": _rank(estimate_s, [q["estimate_s"] for q in queue]),
                "rank_gpus": _rank(gpus, [q["gpus"] for q in queue]),
                "rank_wait": _rank(wait_s, [now - q["submit_s"] for q in queue]),
                "rank_base": rank / (len(queue) - 1) if len(queue) > 1 else 0.0,
            }
        )
    return out


def _rank(value: float, values: list[float]) -> float:
    """Mean rank among the sorted values, 0 … 1."""
    ranks = [k for k, v in enumerate(sorted(values)) if v == value]
    return sum(ranks) / len(ranks) / max(len(values) - 1, 1)


def _count(jobs: Jobs, layout: Layout, state: State, s: int, j: int) -> int:
    """Candidates of a job, up to 8; where there is nothing to choose, whether it fits."""
    nodes, options = layout.nodes, state.options
    free = Free(*(column[s] for column in state.free))
    table = class_table(nodes)
    k = classes(nodes, jobs.row["pool"][j], free, options.rule == EXCLUSIVE, table)
    candidates = count_candidates(nodes, jobs, j, table, k)
    return candidates or int(find(nodes, jobs, free, j, options.rule, options.extra, np.zeros_like(state.place[s])) > 0)
