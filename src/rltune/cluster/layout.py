"""A cluster as flat arrays: what the compiled simulator reads."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rltune.cluster.bits import WORD
from rltune.config import ClusterConfig
from rltune.kernels import record

MILLI = 1000  # CPUs are counted in thousandths, memory in MB: whole numbers add up exactly
ANY_TYPE = "any"


NODE = record(int64="gpus cpu_milli mem_mb type group share_cpu share_mem domain slot")
"""A node: GPUs, thousandths of a CPU, MB; index into Layout.types; index over all groups of all pools; CPU and memory
that go with one GPU; its domain and its index there."""
DOMAIN = record(int64="gpus largest nodes member_at bucket_at word_at words")
"""A domain: GPUs in all and of the largest node, nodes; where its nodes begin in ``member``, its buckets (one for
each number of free GPUs, from 0) and the words of its buckets, so many a bucket (rltune.cluster.free)."""
POOL = record(int64="start stop gpus", float64="priority")
"""A pool: nodes start … stop − 1, GPUs in all, partition priority over the largest."""


class Nodes(NamedTuple):
    """Nodes of a cluster, pool by pool, group by group; M nodes, P pools, T GPU types.

    A *domain* is the nodes of one GPU type in one pool; D domains. A job lives in one domain. Sizes are whole
    numbers. Few arrays of records, because compiled functions pass every array they are given.
    """

    row: np.ndarray  # [M] NODE
    domain: np.ndarray  # [D] DOMAIN
    domain_of: np.ndarray  # [P, T] int64, −1 for none
    member: np.ndarray  # [M] int64, nodes domain by domain, in order
    pool: np.ndarray  # [P] POOL

    @property
    def gpus(self) -> np.ndarray:
        """GPUs of each node [M]."""
        return self.row["gpus"]

    @property
    def pool_start(self) -> np.ndarray:
        """Pool p has the nodes pool_start[p] … pool_start[p + 1] − 1 [P + 1]."""
        return np.append(self.pool["start"], len(self.row))


@dataclass(frozen=True)
class Layout:
    """A cluster's nodes with the names behind the numbers."""

    nodes: Nodes
    pools: tuple[str, ...]
    types: tuple[str, ...]
    pool_of_vc: dict[str, int]

    @property
    def gpus(self) -> int:
        """GPUs in all."""
        return int(self.nodes.gpus.sum())

    def serves(self, vc: str) -> int | None:
        """The pool of a virtual cluster: the one that names it, or all of its part of the trace (``Venus/*``)."""
        part, slash, _ = vc.partition("/")
        return self.pool_of_vc.get(vc, self.pool_of_vc.get(f"{part}/*") if slash else None)


def build_layout(cluster: ClusterConfig) -> Layout:
    """Number the nodes, groups, pools and GPU types of a cluster.

    With ``gpu_types: ignore`` all GPUs have the one type ``any``.
    """
    types: dict[str, int] = {}
    rows, pool_start, group = [], [0], 0
    for pool in cluster.pools:
        for g in pool.groups:
            kind = types.setdefault(ANY_TYPE if cluster.gpu_types == "ignore" else g.gpu_type, len(types))
            rows += [(g.gpus, round(g.cpus * MILLI), round(g.mem_gb * 1000), kind, group)] * g.nodes
            group += 1
        pool_start.append(len(rows))
    row = np.zeros(len(rows), NODE)
    for name, column in zip(("gpus", "cpu_milli", "mem_mb", "type", "group"), zip(*rows)):
        row[name] = column
    row["share_cpu"], row["share_mem"] = row["cpu_milli"] // row["gpus"], row["mem_mb"] // row["gpus"]
    pool = np.zeros(len(cluster.pools), POOL)
    pool["start"], pool["stop"] = pool_start[:-1], pool_start[1:]
    pool["gpus"] = np.add.reduceat(row["gpus"], pool_start[:-1])
    priority = np.array([p.priority for p in cluster.pools])
    pool["priority"] = priority / priority.max() if priority.max() > 0 else 0.0
    nodes = Nodes(row, *_domains(row, pool, len(types)), pool)
    vcs = {v: i for i, p in enumerate(cluster.pools) for v in (p.vcs if p.vcs is not None else [p.name])}
    return Layout(nodes, tuple(p.name for p in cluster.pools), tuple(types), vcs)


def _domains(row: np.ndarray, pool: np.ndarray, types: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(domain, domain_of, member) of Nodes; fills in the nodes' domains and slots."""
    domain_of = np.full((len(pool), types), -1, np.int64)
    found, members = [], []
    member_at = bucket_at = word_at = 0
    for p, kind in np.ndindex(domain_of.shape):
        here = np.arange(pool["start"][p], pool["stop"][p])
        mine = here[row["type"][here] == kind]
        if not len(mine):
            continue
        domain_of[p, kind] = len(found)
        row["domain"][mine], row["slot"][mine] = len(found), np.arange(len(mine))
        members.append(mine)
        gpus = row["gpus"][mine]
        words = -(-len(mine) // WORD)
        found.append((gpus.sum(), gpus.max(), len(mine), member_at, bucket_at, word_at, words))
        member_at += len(mine)
        bucket_at += gpus.max() + 1
        word_at += (gpus.max() + 1) * words
    return np.array(found, DOMAIN), domain_of, np.concatenate(members)
