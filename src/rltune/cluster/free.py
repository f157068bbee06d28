"""What is free on every node, with an index by the number of free GPUs; many sequences side by side.

Each domain keeps, for every number of free GPUs, the set of nodes that have it, as bits in the order of the
nodes. A start or an end moves a node from one set to another, and a search looks only at sets that can help:
its cost does not grow with the nodes that are full.
"""

from typing import NamedTuple

import numpy as np

from rltune.cluster.bits import WORD, flip
from rltune.cluster.layout import Nodes
from rltune.kernels import inlined, kernel, record

FREE = record(int64="gpus cpu mem multi_gpu_jobs")
"""What is free on a node: GPUs, thousandths of a CPU, MB; jobs of several GPUs that run on it, where a run counts them."""


CHUNK = record(int64="node gpus")
"""Part of an allocation."""


class Free(NamedTuple):
    """M nodes in D domains; with a leading axis [S] for S sequences side by side."""

    row: np.ndarray  # [M] FREE
    total: np.ndarray  # [D] int64, free GPUs of a domain
    count: np.ndarray  # [buckets] int64, nodes of a domain with so many free GPUs
    words: np.ndarray  # [words] uint64, which ones


def all_free(nodes: Nodes, sequences: int) -> Free:
    """Every node idle, in each of so many sequences."""
    node, domain = nodes.row, nodes.domain[nodes.row["domain"]]
    row = np.zeros(len(node), FREE)
    row["gpus"], row["cpu"], row["mem"] = node["gpus"], node["cpu_milli"], node["mem_mb"]
    count = np.zeros((nodes.domain["largest"] + 1).sum(), np.int64)
    np.add.at(count, domain["bucket_at"] + node["gpus"], 1)
    words = np.zeros(((nodes.domain["largest"] + 1) * nodes.domain["words"]).sum(), np.uint64)
    at = domain["word_at"] + node["gpus"] * domain["words"] + node["slot"] // WORD
    np.bitwise_or.at(words, at, np.uint64(1) << (node["slot"] % WORD).astype(np.uint64))
    return Free(*(np.tile(column, (sequences, 1)) for column in (row, nodes.domain["gpus"], count, words)))


@kernel
def change(nodes, free, m, gpus, cpu, mem):
    """Add to what is free on node ``m`` (negative: take)."""
    before = free.row[m].gpus
    after = before + gpus
    free.row[m].gpus = after
    free.row[m].cpu += cpu
    free.row[m].mem += mem
    if gpus != 0:
        d, slot = nodes.row[m].domain, nodes.row[m].slot
        at, words = nodes.domain[d].word_at, nodes.domain[d].words
        free.total[d] += gpus
        free.count[nodes.domain[d].bucket_at + before] -= 1
        free.count[nodes.domain[d].bucket_at + after] += 1
        flip(free.words, at + before * words, slot)
        flip(free.words, at + after * words, slot)


@inlined
def needs(nodes, jobs, j, gpus, m):
    """(CPU thousandths, MB) that a chunk of ``gpus`` of job ``j`` takes on node ``m``: its own, else a GPU share."""
    cpu, mem = jobs.row[j].cpu_milli, jobs.row[j].mem_mb
    cpu = cpu if cpu >= 0 else nodes.row[m].share_cpu
    mem = mem if mem >= 0 else nodes.row[m].share_mem
    return gpus * cpu, gpus * mem


@kernel
def take(nodes, jobs, free, j, whole_nodes, chunk, at, n, sign):
    """Take (``sign`` −1) or release (+1) chunks ``at … at + n − 1`` of job ``j``.

    ``whole_nodes``: each takes all its node has.
    """
    for c in range(at, at + n):
        m, gpus = chunk[c].node, chunk[c].gpus
        if whole_nodes:
            node = nodes.row[m]
            change(nodes, free, m, sign * node.gpus, sign * node.cpu_milli, sign * node.mem_mb)
        else:
            cpu, mem = needs(nodes, jobs, j, gpus, m)
            change(nodes, free, m, sign * gpus, sign * cpu, sign * mem)
