"""Clusters and job tables in a line, and random ones for comparisons of the simulator with its oracles."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs, compile_jobs, fit, with_speeds
from rltune.cluster.layout import Layout, build_layout
from rltune.cluster.speeds import Slowdowns
from rltune.config import ClusterConfig
from rltune.traces.columns import DTYPES, empty_columns


def group(
    nodes: int, gpus: int, gpu_type: str = "V100", cpus: float | None = None, mem_gb: float | None = None
) -> dict[str, Any]:
    """A node group; 8 CPUs and 32 GB a GPU unless given."""
    return {
        "gpu_type": gpu_type,
        "nodes": nodes,
        "gpus": gpus,
        "cpus": 8 * gpus if cpus is None else cpus,
        "mem_gb": 32 * gpus if mem_gb is None else mem_gb,
    }


def cluster(*pools: list[dict], priorities: Sequence[float] = (), **fields: Any) -> ClusterConfig:
    """A cluster of pools ``a``, ``b``, … with these groups, and partition priorities where they are not all 1."""
    named = [{"name": chr(ord("a") + i), "groups": groups} for i, groups in enumerate(pools)]
    named = [{**pool, "priority": priority} for pool, priority in zip(named, priorities or [1.0] * len(named))]
    return ClusterConfig.model_validate({"title": "C", "pools": named, **fields})


def table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """A canonical job table; a row names what it needs, the rest is ``run_s`` 100, ``gpus`` 1, not known.

    Ids are row numbers unless given; ``requested_s`` is the run time unless given.
    """
    frame = empty_columns(len(rows))
    full = [{"job_id": f"{i:04d}", "submit_s": 0.0, "run_s": 100.0, "gpus": 1, **row} for i, row in enumerate(rows)]
    full = [{"requested_s": row["run_s"], **row} for row in full]
    for column in {c for row in full for c in row}:
        unknown = frame[column].iloc[0]
        frame[column] = pd.Series([row.get(column, unknown) for row in full], dtype=DTYPES[column])
    return frame.sort_values(["submit_s", "job_id"], ignore_index=True)


def compiled(config: ClusterConfig, rows: list[dict[str, Any]]) -> tuple[Jobs, Layout]:
    """What the cluster can hold of a table, compiled; estimates are ``requested_s``."""
    fitted, _ = fit(table(rows), config)
    return compile_jobs(fitted, fitted["requested_s"].to_numpy(), config), build_layout(config)


def simple(config: ClusterConfig, *jobs: tuple) -> tuple[Jobs, Layout]:
    """The same for (submit_s, run_s, gpus) or (submit_s, run_s, gpus, estimate_s) tuples."""
    names = ("submit_s", "run_s", "gpus", "requested_s")
    return compiled(config, [dict(zip(names, job)) for job in jobs])


def with_rows(jobs: Jobs, **columns: Any) -> Jobs:
    """The jobs with other values in these columns."""
    row = jobs.row.copy()
    for name, values in columns.items():
        row[name] = values
    return jobs._replace(row=row)


def at_speeds(jobs: Jobs, slow: np.ndarray, spread: np.ndarray | None = None, mean_speed: Any = 1.0) -> Jobs:
    """The jobs so many times as long on each type [J, T], and ``spread`` times on more nodes than needed."""
    spread, speeds = slow if spread is None else spread, np.broadcast_to(mean_speed, slow.shape[1])
    return with_speeds(jobs, Slowdowns(slow, spread, np.full(len(slow), ""), speeds))


def random_cluster(rng: np.random.Generator, pools: int | None = None, types: int | None = None) -> ClusterConfig:
    """One to three pools of one to three groups of one to three nodes; groups of a type may differ in size."""
    names = ["V100", "P100", "K80"][: types or rng.integers(1, 4)]

    def some_group() -> dict:
        gpus = int(rng.choice([1, 2, 4, 8]))
        return group(
            int(rng.integers(1, 4)),
            gpus,
            str(rng.choice(names)),
            gpus * float(rng.choice([2.5, 4, 8])),
            gpus * float(rng.choice([16, 33.3])),
        )

    number = pools or int(rng.integers(1, 4))
    priorities = rng.spawn(1)[0].choice([0.0, 1.0, 1.0, 2.0, 5.0], number).tolist()
    groups = [[some_group() for _ in range(rng.integers(1, 4))] for _ in range(number)]
    return cluster(*groups, priorities=priorities)


def random_rows(rng: np.random.Generator, config: ClusterConfig, n: int) -> list[dict[str, Any]]:
    """Jobs that queue: many ties in submission and run time, some with their own CPUs, memory and GPU types, most with
    a user; in every second table some under a service-level agreement."""
    others = rng.spawn(1)[0]
    agreed = 0.1 if others.random() < 0.5 else 0.0
    pools = [p.name for p in config.pools]
    types = sorted({g.gpu_type for p in config.pools for g in p.groups})
    rows, now = [], 0.0
    for _ in range(n):
        now += float(rng.choice([0, 0, 1, 10, 60]))
        gpus = int(rng.choice([1, 1, 1, 2, 2, 3, 4, 5, 8, 12, 16]))
        run = float(rng.choice([1, 10, 50, 100, 300, 1000, rng.integers(1, 500)]))
        row: dict[str, Any] = {"submit_s": now, "gpus": gpus, "run_s": run, "vc": str(rng.choice(pools))}
        row["requested_s"] = float(rng.choice([run, run, max(1.0, run // 3), run * 2, 100.0, 7.5]))
        if rng.random() < 0.3:
            row["cpus"] = gpus * float(rng.choice([0.5, 3, 6]))
        if rng.random() < 0.3:
            row["mem_gb"] = gpus * float(rng.choice([1, 20, 30]))
        if rng.random() < 0.5:
            row["gpu_type"] = "|".join(rng.permutation(types)[: rng.integers(1, len(types) + 1)])
        row |= {"user": str(others.choice(["u", "v", "w"]))} if others.random() < 0.8 else {}
        row["sla"] = bool(others.random() < agreed)
        rows.append(row)
    return rows


def random_case(seed: int, n: int, **shape: Any) -> tuple[Jobs, Layout]:
    """A random cluster with at least one job it can hold of ``n`` random ones."""
    rng = np.random.default_rng(seed)
    config = random_cluster(rng, **shape)
    rows = random_rows(rng, config, n)
    rows[0] = {"submit_s": 0.0, "vc": "a", "gpus": 1}
    return compiled(config, rows)
