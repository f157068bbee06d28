"""The configuration of one cluster: pools of node groups.

One file a cluster in ``config/clusters/<name>.yaml``; the file's stem is the cluster's name.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from rltune.config.base import Block


class NodeGroup(Block):
    """Identical nodes."""

    gpu_type: str
    """GPU model; jobs name it, and a job never mixes two."""
    nodes: int = Field(ge=1)
    """Number of nodes."""
    gpus: int = Field(ge=1, le=64)
    """GPUs a node."""
    cpus: float = Field(ge=0.001)
    """CPU cores a node."""
    mem_gb: float = Field(ge=0.001)
    """Memory a node, GB."""


class Pool(Block):
    """A queueing domain: its own queue over its own nodes (a virtual cluster, a partition)."""

    name: str
    """Name in tables and figures."""
    vcs: list[str] | None = None
    """Virtual clusters of the trace that this pool serves; default: the one of its own name."""
    groups: list[NodeGroup] = Field(min_length=1)
    """Its nodes."""
    priority: float = Field(1.0, ge=0)
    """Partition priority in Slurm's multifactor order; counts relative to the largest of the cluster."""


class ClusterConfig(Block):
    """A cluster: pools, and how jobs of a trace find theirs."""

    title: str
    """Name in tables and figures."""
    pools: list[Pool] = Field(min_length=1)
    """Queueing domains; a cluster of one pool has no virtual clusters, every job goes there."""
    gpu_types: Literal["match", "ignore"] = "match"
    """`match`: a job's GPU type is a constraint; `ignore`: all GPUs of a pool count as alike."""
    type_shares: dict[str, float] | None = None
    """Jobs that name no GPU type: null, any one type; else a type drawn for each, in proportion to these shares of the
    types its pool could hold it on (counted)."""
    fewest_nodes: bool = False
    """A job goes on nodes of those types alone that hold it on the fewest nodes, as Slurm places one that asks for that
    many; else also on more nodes of smaller ones."""
    unknown_vc: Literal["leave_out", "impute"] = "leave_out"
    """A job whose VC no pool serves: left out (counted), or its pool drawn as for a job without a VC (counted)."""
    slots: Literal["gpu", "cpu"] = "gpu"
    """What a node's `gpus` are: `gpu`, GPUs; `cpu`, the processors of a cluster without GPUs. There a job's CPUs are
    what it asks for in the place of GPUs, and neither CPUs nor memory limit it besides."""
    max_job_gpus: int | None = Field(None, ge=1)
    """Leave out jobs of more GPUs than this (counted)."""
    balance: float | None = Field(None, gt=0)
    """Leave out jobs, chosen by their ids alone, until no more than this offered load (requested GPU-seconds per second
    over the cluster's GPUs) is left (counted); never adds any."""
    source: str = ""
    """Where the layout comes from."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> ClusterConfig:
        names = [p.name for p in self.pools]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"pool names must differ; found twice: {', '.join(twice)}")
        served = [v for p in self.pools for v in (p.vcs if p.vcs is not None else [p.name])]
        twice = sorted({v for v in served if served.count(v) > 1})
        if twice:
            raise ValueError(f"a virtual cluster belongs to one pool; found in two: {', '.join(twice)}")
        return self

    @model_validator(mode="after")
    def _shares_are_of_its_types(self) -> ClusterConfig:
        if self.type_shares is None:
            return self
        if self.gpu_types == "ignore":
            raise ValueError("type_shares: goes with gpu_types: match; with ignore there is one type only")
        types = {g.gpu_type for p in self.pools for g in p.groups}
        unknown = sorted(set(self.type_shares) - types)
        if unknown:
            raise ValueError(f"type_shares: found {', '.join(unknown)}; the cluster has {', '.join(sorted(types))}")
        if min(self.type_shares.values(), default=0.0) < 0 or not sum(self.type_shares.values()) > 0:
            raise ValueError(f"type_shares: found {self.type_shares}, expected shares of 0 or more, one above 0")
        return self

    @property
    def gpus(self) -> int:
        """GPUs in all."""
        return sum(g.nodes * g.gpus for p in self.pools for g in p.groups)

    @property
    def nodes(self) -> int:
        """Nodes in all."""
        return sum(g.nodes for p in self.pools for g in p.groups)
