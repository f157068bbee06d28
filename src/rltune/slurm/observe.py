"""A live cluster as the simulator's own arrays: what the features, the ranking and the placement model read.

Nodes that Slurm starts nothing on, and those without GPUs or with GPUs of several types, are left out. Partitions that
share nodes make one pool. A running job keeps its part of the remaining nodes; whatever else is in use (by jobs without
GPUs, by users of a whole node) counts as permanently in use.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs, compile_jobs, fit
from rltune.cluster.free import CHUNK
from rltune.cluster.layout import MILLI, Layout, build_layout
from rltune.cluster.nodes import GB_PER_MIB, MOST_SLOTS
from rltune.cluster.speeds import Profile, read_speeds
from rltune.config.cluster import ClusterConfig, NodeGroup, Pool
from rltune.config.slurm import SlurmConfig
from rltune.errors import DataError, RLTuneError
from rltune.simulator.snapshot import FREE_RESOURCES, Snapshot, could_start
from rltune.slurm.eligibility import RANKED, reason_to_leave
from rltune.slurm.gpu_types import exclusions_by_type, flexible_jobs, type_of, with_live_speeds, with_types
from rltune.slurm.ownership import Ownership
from rltune.slurm.records import WAITING_STATES, SlurmJob, SlurmNode
from rltune.traces.columns import empty_columns
from rltune.traces.raw.slurm_fields import RUNNING

WHOLE = frozenset({"NO", "EXCLUSIVE", "USER"})
"""Over-subscription of jobs that have their nodes to themselves."""
NO_NODES = "no pool could hold it now"
IN_USE = "what it requests is in use by jobs without GPUs, or on unusable nodes"
EPILOG_S = 60.0
"""Expected remaining time of a job that is completing."""
OVERDUE_S = 3600.0
"""Shortest expected remaining time of a running job that is past its limit."""


@dataclass(frozen=True)
class LiveCluster:
    """The usable nodes as a cluster of the simulator; all, where none is usable now."""

    config: ClusterConfig
    layout: Layout
    nodes: tuple[SlurmNode, ...]
    """[M] In the order of the layout."""
    pool_of: dict[str, str]
    """Partition → pool; empty where no node is usable now."""
    speeds: Profile | None = None
    """How fast jobs run on each type; None: equally fast."""

    @property
    def index(self) -> dict[str, int]:
        """Name of a node → its number in the layout."""
        return {node.name: m for m, node in enumerate(self.nodes)}

    def compiled(self, jobs: Sequence[SlurmJob], t0_s: float, now_s: float = np.inf) -> tuple[Jobs, set[int]]:
        """(Jobs in this order, times in s since ``t0_s``, submitted at ``now_s`` at the latest; the ids of those that the
        cluster could hold)."""
        table = _table(jobs, t0_s, now_s, self)
        try:
            fitted = fit(table, self.config)[0]
        except DataError:  # it raises where it would leave out every job
            fitted = table.iloc[:0].assign(pool=np.zeros(0, np.int64))
        arrays = compile_jobs(fitted, fitted["requested_s"].to_numpy(float), self.config)
        kept = {int(i) for i in fitted["job_id"]}
        if self.speeds is not None:
            possible = [job for job in jobs if job.id in kept]
            arrays = with_live_speeds(arrays, possible, self.layout, self.index, self.speeds)
        return arrays, kept


@dataclass(frozen=True)
class View:
    """The jobs to rank and the cluster they wait for; times in s since ``t0_s``."""

    now_s: float
    """Now, s since 1970."""
    t0_s: float
    """s since 1970 at which the times of ``jobs`` and ``snapshot`` are 0."""
    cluster: LiveCluster
    jobs: Jobs
    """The running jobs, then those to rank, by submission."""
    snapshot: Snapshot
    running: tuple[SlurmJob, ...]
    """[R] The running jobs."""
    ranked: tuple[SlurmJob, ...]
    """[Q] The jobs to rank."""
    everyone: tuple[SlurmJob, ...]
    """All jobs that Slurm reported, where GPU types are decided with all types that their users allow."""
    left: dict[int, str]
    """Waiting jobs that are left to Slurm, each with the reason."""
    faults: tuple[str, ...]
    """Parts of the cluster that could not be used."""
    confined: frozenset[int] = frozenset()
    """Jobs that may not use every node of their pool, though the plan assumes that they can: because of their partitions,
    or because their users select nodes."""
    flexible: frozenset[int] = frozenset()
    """Ranked jobs whose GPU type is to be decided."""
    exclusions: Mapping[str, str] = field(default_factory=dict)
    """GPU type → the nodes to exclude for it, in Slurm's short form."""

    @property
    def layout(self) -> Layout:
        """The nodes as the simulator has them."""
        return self.cluster.layout

    @property
    def without_nodes(self) -> frozenset[int]:
        """Jobs that no pool could hold even if all known running jobs ended."""
        return frozenset(job for job, why in self.left.items() if why in (NO_NODES, IN_USE))


def observe(
    jobs: Iterable[SlurmJob],
    nodes: Iterable[SlurmNode],
    config: SlurmConfig,
    now_s: float,
    ownership: Ownership = Ownership(),
) -> View:
    """The cluster of a configuration now; without jobs to rank where no node is usable. Raises RLTuneError where there is no
    node with GPUs at all.

    ``ownership``: the list of assigned jobs after this answer.
    """
    faults: list[str] = []
    nodes, everyone = tuple(nodes), list(jobs)
    owned, overridden = ownership.owned(everyone, config.band), ownership.set_by_others(everyone, config.band)
    restricted = ownership.restricted(everyone)
    there = _with_gpus(nodes, config.eligible.partitions, faults)
    if not there:
        named = ", ".join(config.eligible.partitions)
        names = ", ".join(sorted({name for node in nodes for name in node.partitions})) or "none"
        raise RLTuneError(f"no node with GPUs in `eligible.partitions` ({named}); the cluster's partitions: {names}")
    usable = [node for node in there if node.usable] or there
    cluster = _cluster(usable)
    if not usable[0].usable:
        faults.append("no node with GPUs is usable now: no job is ranked")
        cluster = replace(cluster, pool_of={})
    if config.speeds is not None:
        try:
            speeds = read_speeds(config.speeds, cluster.layout.types, "the configuration's speeds")
            cluster = replace(cluster, speeds=speeds)
            everyone = with_types(everyone, usable, restricted)
        except DataError as error:
            faults.append(f"{error}; no GPU types are decided")
    running = _running(everyone, cluster, now_s)
    ranked, left = [], {}
    for job in everyone:
        if job.state in WAITING_STATES:
            why = reason_to_leave(job, config.eligible, now_s, job.id in owned, job.id in overridden, config.band.high)
            if why == RANKED and not any(p in cluster.pool_of for p in job.partition.split(",")):
                why = NO_NODES
            if why == RANKED:
                ranked.append(job)
            else:
                left[job.id] = why
    ranked.sort(key=lambda job: (min(job.submit_s, now_s), job.id))
    rows = [*running, *ranked]
    t0_s = min([now_s, *(min(job.submit_s, job.start_s or now_s) for job in rows)])
    arrays, kept = cluster.compiled(rows, t0_s, now_s)
    left |= {job.id: NO_NODES for job in ranked if job.id not in kept}
    ranked = [job for job in ranked if job.id in kept]
    running = [job for job in running if job.id in kept]
    snapshot = _snapshot(cluster, running, len(ranked), arrays, everyone, now_s - t0_s, t0_s, faults)
    if ranked:
        arrays, fits = _that_could_start(arrays, cluster.layout, snapshot)
        left |= {job.id: IN_USE for job, fit_ in zip(ranked, fits, strict=True) if not fit_}
        ranked = [job for job, fit_ in zip(ranked, fits, strict=True) if fit_]
        arrays = arrays.take(np.concatenate([np.arange(len(running)), len(running) + np.flatnonzero(fits)]))
        snapshot = snapshot._replace(queued=len(ranked))
    selective = _selective(everyone, restricted)
    confined = selective | _without_some_nodes(everyone, cluster)
    seen = tuple(running), tuple(ranked), tuple(everyone)
    view = View(now_s, t0_s, cluster, arrays, snapshot, *seen, left, tuple(faults), confined)
    if cluster.speeds is None:
        return view
    in_one = {job.id for job in ranked if len({cluster.pool_of.get(p) for p in job.partition.split(",")}) == 1}
    flexible = flexible_jobs(arrays.cut[len(running) :], ranked, selective | _whole(ranked, nodes)) & in_one
    exclusions = exclusions_by_type(nodes, config.eligible.partitions, cluster.layout.types)
    return replace(view, flexible=flexible, exclusions=exclusions)


def _selective(jobs: Iterable[SlurmJob], restricted: Collection[int]) -> frozenset[int]:
    """Jobs whose users named nodes to use or to exclude, a reservation, or features of nodes. ``restricted``: jobs whose
    excluded nodes were set by the controller."""
    return frozenset(
        job.id for job in jobs if job.is_bound or job.constraint or (job.excluded and job.id not in restricted)
    )


def _whole(jobs: Iterable[SlurmJob], nodes: Iterable[SlurmNode]) -> frozenset[int]:
    """Jobs that need idle nodes: whole ones or, while any job holds memory, those that ask for all memory of their nodes."""
    memory = any(node.mem_alloc_mb for node in nodes)
    return frozenset(job.id for job in jobs if job.shared in WHOLE or (memory and job.mem_mb is None))


def _without_some_nodes(jobs: Iterable[SlurmJob], cluster: LiveCluster) -> frozenset[int]:
    """Jobs whose partitions lack a node of their pool."""
    jobs, lack = list(jobs), set()
    for partition in {job.partition for job in jobs}:
        partitions = set(partition.split(","))
        pools = {cluster.pool_of[p] for p in partitions if p in cluster.pool_of}
        others = (node for node in cluster.nodes if not partitions & set(node.partitions))
        if any(cluster.pool_of.get(node.partitions[0]) in pools for node in others):
            lack.add(partition)
    return frozenset(job.id for job in jobs if job.partition in lack)


def _that_could_start(arrays: Jobs, layout: Layout, snapshot: Snapshot) -> tuple[Jobs, np.ndarray]:
    """(The jobs without the GPU types on which the queued ones do not fit even if all known running jobs ended; which of the
    queued jobs [Q] fit on some type)."""
    first, cut = len(snapshot.start_s), arrays.cut.copy()
    fits = np.zeros(len(cut) - first, np.bool_)
    for kind in range(len(layout.types)):
        only = arrays.cut.copy()
        only["full"][:, np.arange(len(layout.types)) != kind] = -1
        only["full"][:first] = arrays.cut["full"][:first]
        there = could_start(arrays._replace(cut=only), layout, snapshot)
        cut["full"][first:, kind] = np.where(there, cut["full"][first:, kind], -1)
        fits |= there
    return arrays._replace(cut=cut), fits


def _with_gpus(nodes: Iterable[SlurmNode], partitions: Sequence[str], faults: list[str]) -> list[SlurmNode]:
    """Nodes of the ranked partitions with GPUs of one type, whether or not Slurm starts jobs on them now."""
    found = []
    for node in nodes:
        if any(node.gpus.values()) and set(node.partitions) & set(partitions):
            if (gpus := sum(node.gpus.values())) > MOST_SLOTS:
                faults.append(f"node {node.name}: {gpus} GPUs, at most {MOST_SLOTS}; not used")
            elif type_of(node):
                found.append(node)
            else:
                kinds = ", ".join(kind for kind, gpus in node.gpus.items() if gpus)
                faults.append(f"node {node.name}: GPUs of several types ({kinds}); not used")
    return found


def _cluster(nodes: Sequence[SlurmNode]) -> LiveCluster:
    pool_of: dict[str, str] = {}
    for node in nodes:  # partitions of one node belong together, with all that belonged to either
        joined = {pool_of.get(p, p) for p in node.partitions}
        first = min(joined)
        pool_of |= {p: first for p in node.partitions}
        pool_of = {p: first if pool in joined else pool for p, pool in pool_of.items()}
    pools: dict[str, dict[tuple[Any, ...], list[SlurmNode]]] = defaultdict(lambda: defaultdict(list))
    for node in nodes:
        shape = (type_of(node), sum(node.gpus.values()), max(node.cpus, 1), max(node.mem_mb, 1))
        pools[pool_of[node.partitions[0]]][shape].append(node)
    configured = []
    for pool, shapes in pools.items():
        groups = [
            NodeGroup(gpu_type=kind, nodes=len(alike), gpus=gpus, cpus=cpus, mem_gb=mem * GB_PER_MIB)
            for (kind, gpus, cpus, mem), alike in shapes.items()
        ]
        configured.append(Pool(name=pool, groups=groups))
    config = ClusterConfig(title="live", pools=configured)
    ordered = tuple(node for shapes in pools.values() for alike in shapes.values() for node in alike)
    return LiveCluster(config, build_layout(config), ordered, pool_of)


def _running(jobs: Sequence[SlurmJob], cluster: LiveCluster, now_s: float) -> list[SlurmJob]:
    """Jobs that hold GPUs of the usable nodes, by start."""
    there = cluster.index.keys()
    found = [j for j in jobs if j.state in RUNNING and j.gpus > 0 and there & set(j.node_names)]
    return sorted(found, key=lambda job: (min(job.start_s or now_s, now_s), job.id))


def _table(jobs: Sequence[SlurmJob], t0_s: float, now_s: float, cluster: LiveCluster) -> pd.DataFrame:
    """Their canonical job table (rltune.traces.columns), with the time limits as run times; a waiting job without one counts as
    long as the longest, so that it does not pass jobs with honest limits."""
    table, layout, pool_of = empty_columns(len(jobs)), cluster.layout, cluster.pool_of
    default = SlurmConfig.default_time_limit_s
    longest = max([default, *(job.time_limit_s or 0.0 for job in jobs)])
    limit = [job.time_limit_s or (longest if job.state in WAITING_STATES else default) for job in jobs]
    table["job_id"] = pd.Series([str(job.id) for job in jobs], dtype="str")
    table["user"] = pd.Series([job.user or None for job in jobs], dtype="str")
    pools = [next((pool_of[p] for p in job.partition.split(",") if p in pool_of), layout.pools[0]) for job in jobs]
    table["vc"] = pd.Series(pools, dtype="str")
    table["submit_s"] = np.array([min(job.submit_s, now_s) - t0_s for job in jobs], np.float64)
    table["run_s"] = table["requested_s"] = np.maximum(np.array(limit, np.float64), 1.0)
    table["gpus"] = np.array([job.gpus for job in jobs], np.int64)
    table["cpus"] = np.array([job.cpus or np.nan for job in jobs], np.float64)
    memory = [np.nan if not job.mem_mb else job.mem_mb * GB_PER_MIB for job in jobs]
    table["mem_gb"] = np.array(memory, np.float64)
    per_node = [1 if job.spreads else -(-job.gpus // max(job.nodes, 1)) for job in jobs]
    types = {gpus: _types_for(gpus, layout) for gpus in set(per_node)}
    kinds = [_both(job.gpu_type, types[gpus]) for job, gpus in zip(jobs, per_node, strict=True)]
    table["gpu_type"] = pd.Series(kinds, dtype="str")
    return table


def _both(requested: str | None, large: str | None) -> str | None:
    """The types of two lists, ``p100|k80``, where both name some; what was requested if they have none in common."""
    common = [kind for kind in (requested or "").split("|") if kind in (large or "").split("|")]
    return "|".join(common) or requested or large


def _types_for(gpus: int, layout: Layout) -> str | None:
    """Types with so many GPUs on one node, as Slurm requires for a job of that many on each; None where all have."""
    nodes = layout.nodes.row
    able = [kind for t, kind in enumerate(layout.types) if nodes["gpus"][nodes["type"] == t].max() >= gpus]
    return "|".join(able) if 0 < len(able) < len(layout.types) else None


def _snapshot(
    cluster: LiveCluster,
    running: Sequence[SlurmJob],
    queued: int,
    jobs: Jobs,
    everyone: Sequence[SlurmJob],
    now_s: float,
    t0_s: float,
    faults: list[str],
) -> Snapshot:
    """The initial state, made consistent: where Slurm's records contradict one another, the larger use counts."""
    at, total = cluster.index, cluster.layout.nodes.gpus
    in_use, free = np.zeros(len(at), np.int64), np.zeros(len(at), FREE_RESOURCES)
    offsets, chunks = [0], []
    for job in running:
        for m, gpus in _places(job, at):
            fits = min(gpus, int(total[m] - in_use[m]))
            if fits < gpus:
                faults.append(f"job {job.id}: {gpus} GPUs on node {cluster.nodes[m].name}, of which {fits} are usable")
            if fits > 0:
                chunks.append((m, fits))
                in_use[m] += fits
        offsets.append(len(chunks))
    for m, node in enumerate(cluster.nodes):
        free["gpus"][m] = max(min(total[m] - sum(node.gpus_alloc.values()), total[m] - in_use[m]), 0)
        free["cpu"][m] = max(node.cpus - node.cpus_alloc, 0) * MILLI
        free["mem"][m] = round(max(node.mem_mb - node.mem_alloc_mb, 0) * GB_PER_MIB * 1000)
    for job in everyone:
        if job.state in RUNNING and job.shared in WHOLE:
            for name in job.node_names:
                if name in at:
                    free[at[name]] = (0, 0, 0)
    start_s = np.array([min((job.start_s or now_s + t0_s) - t0_s, now_s) for job in running], np.float64)
    due_s = start_s + jobs.estimate_s[: len(running)]
    # a job past its limit is expected to run as long again as it has, as in the engine
    late_s = now_s + np.maximum(now_s - start_s, OVERDUE_S)
    completing = np.array([job.state == "COMPLETING" for job in running], np.bool_)
    end_s = np.where(completing, now_s + EPILOG_S, np.where(due_s > now_s, due_s, late_s))
    return Snapshot(now_s, start_s, end_s, np.array(offsets), np.array(chunks, CHUNK), free, queued)


def _places(job: SlurmJob, at: dict[str, int]) -> list[tuple[int, int]]:
    """(Node, GPUs) of a running job, on the usable nodes; split evenly where Slurm does not say."""
    if job.gpus_of_node:
        return [(at[name], gpus) for name, gpus in job.gpus_of_node.items() if name in at and gpus > 0]
    each, more = divmod(job.gpus, len(job.node_names))
    shares = [each + (k < more) for k in range(len(job.node_names))]
    return [(at[name], gpus) for name, gpus in zip(job.node_names, shares, strict=True) if name in at and gpus > 0]
