"""A cluster as flat arrays: what the compiled simulator reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rltune.config import ClusterConfig

MILLI = 1000  # CPUs are counted in thousandths, memory in MB: whole numbers add up exactly
ANY_TYPE = "any"


class Nodes(NamedTuple):
    """Nodes of a cluster, pool by pool, group by group; M nodes, P pools.

    Sizes are whole numbers: GPUs, thousandths of a CPU, MB.
    """

    gpus: np.ndarray  # [M] int64
    cpu_milli: np.ndarray  # [M] int64
    mem_mb: np.ndarray  # [M] int64
    type: np.ndarray  # [M] int64, index into Layout.types
    group: np.ndarray  # [M] int64, index over all groups of all pools
    pool_start: np.ndarray  # [P + 1] int64: pool p has the nodes pool_start[p] … pool_start[p + 1] − 1


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

    @property
    def has_vcs(self) -> bool:
        """Whether jobs are told apart by virtual cluster."""
        return len(self.pools) > 1


def build_layout(cluster: ClusterConfig) -> Layout:
    """Number the nodes, groups, pools and GPU types of a cluster.

    With ``gpu_types: ignore`` all GPUs have the one type ``any``.
    """
    ignore = cluster.gpu_types == "ignore"
    types: list[str] = [ANY_TYPE] if ignore else []
    rows, pool_start, group = [], [0], 0
    for pool in cluster.pools:
        for g in pool.groups:
            if not ignore and g.gpu_type not in types:
                types.append(g.gpu_type)
            kind = 0 if ignore else types.index(g.gpu_type)
            rows += [(g.gpus, round(g.cpus * MILLI), round(g.mem_gb * 1000), kind, group)] * g.nodes
            group += 1
        pool_start.append(len(rows))
    columns = np.array(rows, dtype=np.int64).T.copy()
    vcs = {v: i for i, p in enumerate(cluster.pools) for v in (p.vcs if p.vcs is not None else [p.name])}
    return Layout(
        Nodes(*columns, pool_start=np.array(pool_start, dtype=np.int64)),
        tuple(p.name for p in cluster.pools),
        tuple(types),
        vcs,
    )
