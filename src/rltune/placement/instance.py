"""The placement problem in small: the jobs that could start now, and node classes instead of nodes.

Nodes of one group with the same free vector are interchangeable, so of each class only as many enter the model
as the jobs have chunks; nothing is lost, and the size does not grow with the cluster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rltune.placement.settle import largest_node


class Instance(NamedTuple):
    """K jobs (the chosen one first, then the next that could start and share a GPU type with it) on C classes.

    ``full`` is −1 where a type is not allowed. CPU and memory of a chunk are its own need, or its GPU share.
    """

    rank: np.ndarray  # [K] int64, place in the ranking, 0 for the chosen job
    size: np.ndarray  # [K, T] int64, GPUs of a full chunk
    full: np.ndarray  # [K, T] int64, full chunks
    rem: np.ndarray  # [K, T] int64, GPUs of the last chunk
    cpu: np.ndarray  # [K] int64, thousandths of a CPU per GPU, −1: GPU share
    mem: np.ndarray  # [K] int64, MB per GPU, −1: GPU share
    type: np.ndarray  # [C] int64
    free_gpus: np.ndarray  # [C] int64
    free_cpu: np.ndarray  # [C] int64
    free_mem: np.ndarray  # [C] int64
    share_cpu: np.ndarray  # [C] int64, thousandths of a CPU that go with one GPU of the node
    share_mem: np.ndarray  # [C] int64
    whole: np.ndarray  # [C] bool, nothing runs on these nodes and the pool has none larger
    count: np.ndarray  # [C] int64, nodes, at most as many as there are chunks
    lowest: np.ndarray  # [C] int64, lowest node of the class (not part of the problem)

    def key(self) -> bytes:
        """The problem as bytes: equal for equal problems, wherever their nodes lie."""
        return b"|".join(x.tobytes() for x in self[:-1])


def build_instance(nodes, jobs, state, s: int, table: np.ndarray, k: int, startable: np.ndarray) -> Instance:
    """The reduced problem of one sequence from what rltune.placement.settle found."""
    places = np.concatenate([[0], startable]).astype(np.int64)
    j = state.first[s] + state.top[s, places]
    largest = largest_node(nodes, jobs.row["pool"][j[0]])
    cut, row = jobs.cut[j], jobs.row[j]
    size, full, rem = (np.ascontiguousarray(cut[name]) for name in ("size", "full", "rem"))
    full = np.where((size == 0) & (full > 0), -1, full)  # not cut into equal chunks: not an option of the model
    chunks = int((np.maximum(full, 0) + (rem > 0)).max(axis=1).sum())
    found = table[:k]
    free_gpus, free_cpu, free_mem, count, lowest = (
        np.ascontiguousarray(found[name]) for name in ("gpus", "cpu", "mem", "count", "lowest")
    )
    node = nodes.row[lowest]
    return Instance(
        places, size, full, rem, row["cpu_milli"].copy(), row["mem_mb"].copy(), node["type"].copy(), free_gpus,
        free_cpu, free_mem, node["share_cpu"].copy(), node["share_mem"].copy(), free_gpus == largest,
        np.minimum(count, chunks), lowest,
    )  # fmt: skip
