"""A feature set as compiled code reads it: the source of each column, and the features that a job keeps while it waits."""

from typing import NamedTuple

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.environment.features import CRITIC, FEATURES, JOB, NOW, POOL, SHAPE, Column, columns_of, slots
from rltune.kernels import record

TIME_SCALE_S = 12 * 3600.0
"""Largest time distinguished by raw features (our choice; RLScheduler divides by the longest request of a trace)."""
GPUS_SCALE, CPUS_SCALE, MEMORY_SCALE_MB = 64, 512, 4096e3
"""Largest sizes of a job distinguished by raw features (our choice)."""

TOGETHER, SCATTERED = 1, 2
"""The states of the free GPUs that a switched column tells apart, as bits."""
SOURCE = record(int64="of", uint64="slot", float32="weight")
"""Where a column's numbers come from: JOB, SHAPE, POOL or NOW; the number of the feature there; the factor."""
FACTS = record(float64="submit_s estimate_s area_s gpus", int64="pool shape")
"""What the compiled part reads of a job: of Jobs, and its estimated GPU-seconds."""


class FeatureEncoding(NamedTuple):
    """How to write W columns of the rows and V of the critic, for J jobs."""

    rows: np.ndarray  # [2, W] SOURCE, while free GPUs lie together and while they are scattered
    critic: np.ndarray  # [2, V] SOURCE
    wants: np.ndarray  # [4, most] uint8, of JOB, SHAPE, POOL, NOW, by their slots: needed TOGETHER, SCATTERED or both
    static: np.ndarray  # [J, used] float32, the JOB features that are used; their slots are columns of this
    fact: np.ndarray  # [J] FACTS


def encode_features(jobs: Jobs, layout: Layout, features: str) -> FeatureEncoding:
    """Find the columns of a feature set and compute what does not change of each job while it waits.

    Raises ValueError where there is no such set.
    """
    columns = columns_of(features)
    shown = dict.fromkeys(n for c in (*columns, *CRITIC) for n in c.names)
    used = [n for n in shown if FEATURES[n].of == JOB]
    slot = {n: i for of in (SHAPE, POOL, NOW) for n, i in slots(of).items()} | {n: i for i, n in enumerate(used)}
    wants = np.zeros((4, max(map(len, map(slots, range(4))))), np.uint8)
    for column in (*columns, *CRITIC):
        for n, regime in zip(column.names, (TOGETHER, SCATTERED), strict=True):
            wants[FEATURES[n].of, slot[n]] |= regime
        if column.switched:
            wants[POOL, slot["scattered"]] = TOGETHER | SCATTERED
    values = static_features(jobs, layout)
    static = np.empty((len(jobs.row), len(used)), np.float32)
    for i, n in enumerate(used):
        static[:, i] = values[n]
    return FeatureEncoding(_sources(columns, slot), _sources(CRITIC, slot), wants, static, _facts(jobs))


def _sources(columns: tuple[Column, ...], slot: dict[str, int]) -> np.ndarray:
    sources = [[(FEATURES[n].of, slot[n], w) for n, w in zip(c.names, c.weights, strict=True)] for c in columns]
    return np.ascontiguousarray(np.array(sources, SOURCE).T)


def static_features(jobs: Jobs, layout: Layout) -> dict[str, np.ndarray]:
    """The features that belong to a job as submitted, each [J] float64.

    CPUs and memory that were not asked for are those that go with the GPUs on the pool's first node.
    """
    nodes, row = layout.nodes, jobs.row
    gpus, estimate_s = row["gpus"].astype(float), row["estimate_s"]
    begin = nodes.pool["start"][row["pool"]]
    cpu_milli = np.where(row["cpu_milli"] >= 0, row["cpu_milli"], nodes.row["share_cpu"][begin])
    mem_mb = np.where(row["mem_mb"] >= 0, row["mem_mb"], nodes.row["share_mem"][begin])
    return {
        "gpus": np.minimum(gpus / GPUS_SCALE, 1),
        "estimate": np.minimum(estimate_s / TIME_SCALE_S, 1),
        "cpus": np.minimum(gpus * cpu_milli / (1000 * CPUS_SCALE), 1),
        "memory": np.minimum(gpus * mem_mb / MEMORY_SCALE_MB, 1),
        "vc": row["pool"] / len(nodes.pool),
        "gpu_type": (jobs.cut["full"] >= 0).argmax(axis=1) / jobs.cut.shape[1],
        "log_gpus": np.minimum(np.log2(1 + gpus) / 7, 2),
        "log_estimate": np.minimum(np.log10(1 + estimate_s) / 6, 2),
        "job_size": np.minimum(np.log10(1 + gpus * estimate_s) / 8, 2),
    }


def _facts(jobs: Jobs) -> np.ndarray:
    fact = np.zeros(len(jobs.row), FACTS)
    for name in ("submit_s", "estimate_s", "gpus", "pool", "shape"):
        fact[name] = jobs.row[name]
    fact["area_s"] = fact["gpus"] * fact["estimate_s"]
    return fact
