"""The configuration of one cluster: pools of node groups.

One file a cluster in ``config/clusters/<name>.yaml``; the file's stem is the cluster's name.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from pydantic import Field, model_validator

from rltune.config.base import Block, Speeds, repeated


class NodeGroup(Block):
    """Identical nodes."""

    gpu_type: str
    """GPU type, as jobs request it; a job never runs on two types."""
    nodes: int = Field(ge=1, le=1_000_000)
    """Number of nodes."""
    gpus: int = Field(ge=1, le=64)
    """GPUs per node."""
    cpus: float = Field(ge=0.001, le=1e6)
    """CPU cores per node."""
    mem_gb: float = Field(ge=0.001, le=1e6)
    """Memory per node, GB."""


class Pool(Block):
    """A queueing domain: its own queue over its own nodes (a virtual cluster, a partition)."""

    name: str
    """Name in tables and figures."""
    vcs: list[str] | None = None
    """Virtual clusters of the trace that this pool serves, `Venus/*` for all of a cluster in a trace of several; default:
    the one with the pool's name."""
    groups: list[NodeGroup] = Field(min_length=1)
    """Its nodes."""
    priority: float = Field(1.0, ge=0)
    """Partition priority in Slurm's multifactor order, relative to the largest in the cluster."""


class ClusterConfig(Block):
    """A cluster: pools, and how jobs of a trace find theirs."""

    title: str
    """Name in tables and figures."""
    pools: list[Pool] = Field(min_length=1)
    """Queueing domains; a single pool takes the jobs of all virtual clusters."""
    gpu_types: Literal["match", "any", "ignore"] = "match"
    """`match`: a job's GPU type is a constraint; `any`: a job may use any type, whatever it requests; `ignore`: all GPUs of a
    pool count as the same type."""
    speeds: Speeds | None = None
    """How fast jobs run on each GPU type: `gavel`, measured for 26 models on K80, P100 and V100; a CSV file of the same form,
    relative to the root; or the speed of each type in any unit. null: a job runs as long on every type."""
    recorded_on: str | None = None
    """With `speeds`, the GPU type on which a job counts as recorded where it requests none that has a speed; null: the most
    frequent type of the cluster."""
    multi_node_slowdown: float = Field(1.0, ge=1, le=100)
    """Factor on the run time of a job on more nodes than the fewest that hold it."""
    interference_slowdown: float = Field(1.0, ge=1, le=100)
    """Factor on the run time of a job of several GPUs while another such job is on one of its nodes."""
    type_shares: dict[str, float] | None = None
    """GPU type of jobs that request none: null, any one type; else one drawn for each job, in proportion to these
    shares, from the types in its pool that could hold it (counted)."""
    fewest_nodes: bool = False
    """Whether a job may only use the node types that hold it on the fewest nodes, as in Slurm when it requests that
    number of nodes; else it may also use more nodes of smaller types."""
    unknown_vc: Literal["leave_out", "impute"] = "leave_out"
    """Jobs whose VC is served by no pool are left out, or get one drawn from the VC's name (both are counted)."""
    slots: Literal["gpu", "cpu"] = "gpu"
    """What a node's `gpus` are: `gpu`, GPUs; `cpu`, the processors of a cluster without GPUs. There a job's CPUs take
    the place of GPUs, and memory is no constraint."""
    max_job_gpus: int | None = Field(None, ge=1)
    """Leave out jobs with more GPUs than this (counted)."""
    balance: float | None = Field(None, gt=0)
    """Leave out jobs, chosen by their ids alone, until the offered load (requested GPU-seconds per second over the
    cluster's GPUs) is no more than this (counted); never adds any."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> ClusterConfig:
        if twice := repeated([p.name for p in self.pools]):
            raise ValueError(f"pool names must differ; found twice: {', '.join(twice)}")
        served = [v for p in self.pools for v in (p.vcs if p.vcs is not None else [p.name])]
        if stray := [name for name in served if "*" in name.removesuffix("/*")]:
            raise ValueError(f"vcs: found {', '.join(stray)}; a * stands at the end, behind the cluster: Venus/*")
        if twice := repeated(served):
            raise ValueError(f"a virtual cluster belongs to one pool; found in two: {', '.join(twice)}")
        return self

    @model_validator(mode="after")
    def _types_are_known(self) -> ClusterConfig:
        types = {g.gpu_type for p in self.pools for g in p.groups}
        if several := sorted(name for name in types if "|" in name):
            raise ValueError(
                f"gpu_type: found {', '.join(several)}, expected the name of one type; a job writes A|B to ask for either"
            )
        for key in ("type_shares", "speeds"):
            if getattr(self, key) is not None and self.gpu_types == "ignore":
                raise ValueError(f"{key}: goes with gpu_types: match or any; with ignore there is one type only")
        if self.type_shares is None:
            return self
        unknown = sorted(set(self.type_shares) - types)
        if unknown:
            raise ValueError(f"type_shares: found {', '.join(unknown)}; the cluster has {', '.join(sorted(types))}")
        if min(self.type_shares.values(), default=0.0) < 0 or not sum(self.type_shares.values()) > 0:
            raise ValueError(f"type_shares: found {self.type_shares}, expected shares of 0 or more, one above 0")
        return self

    @property
    def slowdowns(self) -> dict[str, float]:
        """Factors on run times, as rltune.simulator.config.SchedulerConfig names them."""
        return {name: getattr(self, name) for name in ("multi_node_slowdown", "interference_slowdown")}

    @property
    def recorded_type(self) -> str:
        """`recorded_on`, or the type with the most GPUs."""
        gpus = Counter[str]()
        for group in (group for pool in self.pools for group in pool.groups):
            gpus[group.gpu_type] += group.nodes * group.gpus
        return self.recorded_on or max(gpus, key=gpus.__getitem__)

    @property
    def gpus(self) -> int:
        """GPUs in all."""
        return sum(g.nodes * g.gpus for p in self.pools for g in p.groups)

    @property
    def nodes(self) -> int:
        """Nodes in all."""
        return sum(g.nodes for p in self.pools for g in p.groups)
