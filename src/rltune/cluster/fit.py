"""Fit a trace to a cluster: the pool and chunks of each job that the cluster can hold, and an audit of the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from rltune.cluster.layout import MILLI, Layout, build_layout
from rltune.cluster.load import offered_load, within_load
from rltune.cluster.speeds import Profile, Slowdowns, read_speeds, slowdowns
from rltune.config import ClusterConfig
from rltune.errors import DataError
from rltune.kernels import record
from rltune.traces.audit import Audit
from rltune.traces.columns import job_uniform

JOB = record(float64="submit_s run_s estimate_s qos", int64="gpus cpu_milli mem_mb pool shape account", bool="sla")
"""A job.

- ``submit_s``: submission, s since the trace's t0.
- ``run_s``, ``estimate_s``: true run time, and the run time that policies know, on the fastest GPU type that could hold it.
- ``qos``: its QOS factor in Slurm's priority.
- ``cpu_milli``, ``mem_mb``: thousandths of a CPU and MB per GPU; −1: the GPU share of the node.
- ``shape``: a number that is equal for jobs with equal requests.
- ``account``: whose fair share it uses (the user, else the VC, else one for all unknown).
- ``sla``: whether it goes before all others.
"""
CUT = record(int64="size full rem rank", float64="slow spread off price")
"""How a job is cut on nodes of a GPU type under strict locality (rltune.cluster.search).

- ``size``: GPUs of a full chunk; 0: no equal chunks could hold it, and ``full`` is the fewest nodes that could.
- ``full``: full chunks; −1: the type is not allowed or cannot hold it.
- ``rem``: GPUs of the last chunk; 0: there is none.
- ``rank``: of several types on which it fits the lower goes first, ties by placement rule.
- ``slow``: run time on the type over ``run_s``.
- ``spread``: run time there on more nodes than strict, over that on strict nodes.
- ``off``: how much longer than schedulers expect it runs there, relative; 0: they know.
- ``price``: seconds that its GPU time on the type counts as, for each second of ``run_s`` (rltune.cluster.types).
"""

_MOST = 2.0**62 / MILLI
"""CPUs, or GB, of a job: more than any pool has, and an int64 holds a thousand times as many."""


class Jobs(NamedTuple):
    """Jobs in the order of submission (ties by id); J jobs, T GPU types of the cluster."""

    row: np.ndarray  # [J] JOB
    cut: np.ndarray  # [J, T] CUT

    submit_s = property(lambda self: self.row["submit_s"])
    run_s = property(lambda self: self.row["run_s"])
    estimate_s = property(lambda self: self.row["estimate_s"])
    gpus = property(lambda self: self.row["gpus"])
    pool = property(lambda self: self.row["pool"])
    account = property(lambda self: self.row["account"])

    def take(self, rows: np.ndarray) -> Jobs:
        """Some of them."""
        return Jobs(self.row[rows], self.cut[rows])


def in_slots(jobs: pd.DataFrame, cluster: ClusterConfig) -> pd.DataFrame:
    """The job table in the cluster's slots.

    On a cluster of GPUs it is unchanged. On a cluster of processors ``gpus`` holds a job's CPUs, rounded up, and its CPUs and
    memory are unknown.
    """
    if cluster.slots == "gpu":
        return jobs
    slots = np.ceil(jobs["cpus"].fillna(0.0).clip(upper=_MOST)).astype(np.int64)
    return jobs.assign(gpus=slots, cpus=np.nan, mem_gb=np.nan)


def fit(
    jobs: pd.DataFrame, cluster: ClusterConfig, name: str = "", known_share: float = 1.0
) -> tuple[pd.DataFrame, Audit]:
    """Keep the jobs a cluster can hold, each with its pool (a new column ``pool``, int64).

    On a cluster that has VCs a job without one gets a pool drawn from its id among those that could hold it. The jobs of a
    VC that is not in the cluster are left out or, with ``unknown_vc: impute``, get one drawn from its name, in proportion to
    their nodes (paper §4.2 has no rule; ours). Everything left out or imputed is counted. With
    ``speeds``, run times and users' limits become those on the fastest GPU type that could hold the job; a column
    ``recorded_run_s`` keeps the log's, and ``model`` names the model that it is assumed to train. With ``type_shares``, the GPU type of a job that names none is drawn
    among those on which its pool could hold it. With ``balance``, jobs are thinned to that offered load; the first
    ``known_share`` of them before thinning decide how many. Raises DataError when no job is left.
    """
    jobs = in_slots(jobs, cluster)
    layout = build_layout(cluster)
    audit = Audit(rows_read=len(jobs))
    keep = np.ones(len(jobs), dtype=bool)

    def leave_out(reason: str, wrong: np.ndarray) -> None:
        audit.leave_out(reason, int((keep & wrong).sum()))
        keep[wrong] = False

    gpus = jobs["gpus"].to_numpy(np.int64)
    asks_for_none = {"gpu": "asks for no GPU", "cpu": "asks for no CPU, or for GPUs"}[cluster.slots]
    leave_out(asks_for_none, (jobs["resource"] != cluster.slots).to_numpy() | (gpus < 1))
    if cluster.max_job_gpus is not None:
        leave_out(f"more GPUs than max_job_gpus ({cluster.max_job_gpus})", gpus > cluster.max_job_gpus)
    # a profile of speeds need not have what is left out already
    jobs, gpus, keep = jobs[keep], gpus[keep], keep[keep]
    kinds = _type_masks(jobs, cluster, layout)
    leave_out("GPU type not in the cluster", ~kinds.any(axis=1))
    cpu, mem = _per_gpu(jobs)
    asked = (gpus, cpu, mem)
    # which types of each pool could hold every job: [P, J, T]
    holds = np.stack([_cuts(layout, p, *asked, kinds)[1] >= 0 for p in range(len(layout.pools))])
    leave_out("larger than every pool", ~holds.any(axis=(0, 2)))
    pool, vc, nodes = np.zeros(len(jobs), dtype=np.int64), jobs["vc"], np.diff(layout.nodes.pool_start)
    missing = np.zeros(len(jobs), dtype=bool)
    if len(layout.pools) > 1:  # jobs are separated by virtual cluster
        served = vc.map({name: layout.serves(name) for name in vc.dropna().unique()})
        known, missing = served.notna().to_numpy(), vc.isna().to_numpy()
        unknown = ~known & ~missing
        if cluster.unknown_vc == "leave_out":
            leave_out("its VC is not in the cluster", unknown)
        audit.note("VC missing, pool drawn", int((keep & missing).sum()))
        audit.note("VC not in the cluster, pool drawn", int((keep & unknown).sum()))
        pool[known] = served[known].to_numpy(np.int64)
        pool[unknown] = _drawn(vc.astype(object).to_numpy()[unknown], "pool", np.tile(nodes, (unknown.sum(), 1)))
    could = np.where(missing[:, None], holds.any(axis=0), holds[pool, np.arange(len(jobs))])
    leave_out("larger than its pool", ~could.any(axis=1))
    may_get = could.copy()
    if cluster.type_shares is not None:
        may_get &= jobs["gpu_type"].notna().to_numpy()[:, None] | (_shares(cluster, layout) > 0)
    slow = _slowdowns(jobs, cluster, layout, may_get)
    if slow is not None:
        runs = np.isfinite(slow.consolidated)
        kinds, holds, could = kinds & runs, holds & runs, could & runs
        leave_out("model runs on no GPU type that could hold it", ~could.any(axis=1))
    draw = keep & missing  # by their nodes, among those that could hold the job
    pool[draw] = _drawn(jobs["job_id"].to_numpy()[draw], "pool", holds.any(axis=2).T[draw] * nodes)
    full = _draw_types(jobs, _cuts_in(layout, cluster, pool, *asked, kinds)[1], cluster, layout)
    if cluster.type_shares is not None:
        leave_out("no GPU type with a share could hold it", ~(full >= 0).any(axis=1))
        audit.note("GPU type missing, drawn by type_shares", int((keep & jobs["gpu_type"].isna().to_numpy()).sum()))
    if slow is not None:
        fastest = np.where(keep, slow.fastest(full >= 0), 1.0)
        at_fastest = {name: jobs[name] * fastest for name in ("run_s", "requested_s")}
        jobs = jobs.assign(recorded_run_s=jobs["run_s"], model=slow.model, **at_fastest)
        audit.note("run time on the fastest GPU type, by the cluster's speeds", int(keep.sum()))
    if cluster.balance is not None and keep.any():
        fitting = jobs[keep]
        first = max(1, int(len(fitting) * known_share))
        target, load = cluster.balance, offered_load(fitting.iloc[:first], cluster.gpus)
        if load > target:
            thinned = np.zeros(len(jobs), dtype=bool)
            thinned[keep] = ~within_load(fitting, cluster.gpus, target, first)
            leave_out(f"thinned to an offered load of {target:g}", thinned)
        else:
            audit.note(f"offered load {load:.3g}, not above {target:g}: none thinned", int(keep.sum()))
    if cluster.gpu_types == "ignore":
        audit.note("GPU type ignored", int((keep & jobs["gpu_type"].notna().to_numpy()).sum()))
    audit.note("CPUs follow the GPU share", int((keep & (cpu < 0)).sum()))
    audit.note("memory follows the GPU share", int((keep & (mem < 0)).sum()))
    fitted = jobs[keep].assign(pool=pool[keep]).reset_index(drop=True)
    audit.keep(len(fitted))
    if not len(fitted):
        raise DataError(
            f"{name or cluster.title}: no job of the trace fits the cluster ({audit.rows_read} read); left out: "
            + "; ".join(f"{n} {reason}" for reason, n in audit.left_out.items())
            + _types_in_words(jobs, layout, _type_masks(jobs, cluster, layout))
        )
    return fitted, audit


def _types_in_words(jobs: pd.DataFrame, layout: Layout, kinds: np.ndarray) -> str:
    """Which GPU types the jobs ask for that the cluster does not have, as a sentence."""
    asked = sorted(set(jobs.loc[~kinds.any(axis=1), "gpu_type"].dropna()))
    if not asked:
        return ""
    more = ", …" if len(asked) > 5 else ""
    return (
        f". The trace asks for GPU type {', '.join(asked[:5])}{more}; the cluster has {', '.join(layout.types)}: name them "
        "alike, or set `gpu_types: ignore` in the cluster's file"
    )


def compile_jobs(fitted: pd.DataFrame, estimate_s: np.ndarray, cluster: ClusterConfig) -> Jobs:
    """The fitted table as arrays for the simulator."""
    layout = build_layout(cluster)
    row = np.zeros(len(fitted), JOB)
    for name in ("submit_s", "run_s", "gpus", "pool", "sla"):
        row[name] = fitted[name].to_numpy()
    row["estimate_s"], row["qos"] = estimate_s, row["sla"]
    row["cpu_milli"], row["mem_mb"] = cpu, mem = _per_gpu(fitted)
    row["account"] = pd.factorize(fitted["user"].fillna(fitted["vc"]), sort=True, use_na_sentinel=False)[0]
    slow, kinds = _slowdowns(fitted, cluster, layout), _type_masks(fitted, cluster, layout)
    kinds = kinds if slow is None else kinds & np.isfinite(slow.consolidated)
    cut = np.zeros((len(fitted), len(layout.types)), CUT)
    cut["size"], cut["full"], cut["rem"] = _cuts_in(layout, cluster, row["pool"], row["gpus"], cpu, mem, kinds)
    cut["full"] = _draw_types(fitted, cut["full"], cluster, layout)
    row["shape"] = _alike(*(row[n] for n in ("pool", "gpus", "cpu_milli", "mem_mb")), cut["full"], cut["size"])
    cut["slow"], cut["spread"] = 1.0, 1.0
    return Jobs(row, cut) if slow is None else with_speeds(Jobs(row, cut), slow)


def with_speeds(jobs: Jobs, slow: Slowdowns) -> Jobs:
    """The jobs with their run time on each type; the present one becomes that on the fastest."""
    row, cut = jobs.row.copy(), jobs.cut.copy()
    runs = np.isfinite(slow.consolidated)
    cut["full"][~runs] = -1
    fastest = slow.fastest(cut["full"] >= 0)[:, None]
    cut["slow"] = np.where(runs, slow.consolidated / fastest, 1.0)
    cut["spread"][runs] = slow.spread[runs] / slow.consolidated[runs]
    cut["price"] = row["gpus"][:, None] * cut["slow"] * (slow.mean_speed / slow.mean_speed.mean())
    return _with_shapes(row, cut)


def with_wrong_speeds(jobs: Jobs, share: float, rng: np.random.Generator) -> Jobs:
    """The same jobs, where the run time that schedulers are given for each job and type is wrong by a factor drawn evenly
    from 1 − ``share`` to 1 + ``share`` (0 ≤ ``share`` < 1)."""
    factor = rng.uniform(1.0 - share, 1.0 + share, jobs.cut.shape)
    cut = jobs.cut.copy()
    cut["slow"] *= factor
    cut["price"] *= factor
    cut["off"] = (1.0 + cut["off"]) / factor - 1.0
    return _with_shapes(jobs.row.copy(), cut)


def with_unknown_speeds(jobs: Jobs, fastest_only: bool = False) -> Jobs:
    """The same jobs, where schedulers know no speeds: they expect each job to run as long on any type as on the slowest that can
    hold it. ``fastest_only``: each may only use the type on which it is fastest."""
    row, cut = jobs.row.copy(), jobs.cut.copy()
    able = cut["full"] >= 0
    row["estimate_s"] *= np.where(able, cut["slow"], 0.0).max(axis=1)
    if fastest_only:
        fastest = np.where(able, cut["slow"], np.inf).argmin(axis=1)
        cut["full"][np.arange(cut.shape[1]) != fastest[:, None]] = -1
    cut["off"], cut["slow"] = cut["slow"] * (1.0 + cut["off"]) - 1.0, 1.0
    return _with_shapes(row, cut)


def _with_shapes(row: np.ndarray, cut: np.ndarray) -> Jobs:
    """Jobs of one shape are alike to the scheduler on every type."""
    row["shape"] = _alike(row["shape"], *(cut[name] for name in ("full", "slow", "spread")))
    return Jobs(row, cut)


def _alike(*columns: np.ndarray) -> np.ndarray:
    """Numbers [J], equal for jobs that are alike in all columns."""
    return np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].reshape(-1)


def _per_gpu(jobs: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """(CPU thousandths, MB) per GPU of each job, −1 where the trace does not say; rounded down."""
    gpus = np.maximum(jobs["gpus"].to_numpy(np.float64), 1)
    cpu = jobs["cpus"].clip(upper=_MOST).to_numpy(dtype=np.float64, na_value=np.nan) * MILLI / gpus
    mem = jobs["mem_gb"].clip(upper=_MOST).to_numpy(dtype=np.float64, na_value=np.nan) * 1000 / gpus
    whole_cpu, whole_mem = (np.where(np.isnan(x), -1, np.floor(np.nan_to_num(x))).astype(np.int64) for x in (cpu, mem))
    return whole_cpu, whole_mem


def _type_masks(jobs: pd.DataFrame, cluster: ClusterConfig, layout: Layout) -> np.ndarray:
    """Which types each job asks for [J, T]: all where it names none; ``A|B`` names two."""
    if cluster.gpu_types != "match":
        return np.ones((len(jobs), len(layout.types)), bool)
    codes, names = pd.factorize(jobs["gpu_type"], use_na_sentinel=True)
    table = np.array([[t in str(n).split("|") for t in layout.types] for n in names], dtype=bool)
    table = np.vstack([table.reshape(-1, len(layout.types)), np.ones(len(layout.types), dtype=bool)])
    return table[codes]  # the sentinel −1 takes the last row


def _slowdowns(
    jobs: pd.DataFrame, cluster: ClusterConfig, layout: Layout, usable: np.ndarray | None = None
) -> Slowdowns | None:
    profile = speeds_of(cluster, layout)
    return None if profile is None else slowdowns(jobs, profile, layout.types, cluster.recorded_type, usable)


def speeds_of(cluster: ClusterConfig, layout: Layout) -> Profile | None:
    """The cluster's ``speeds``; None where it has none. Raises DataError where they cannot be read or lack one of its types."""
    if cluster.speeds is None:
        return None
    return read_speeds(cluster.speeds, (*layout.types, cluster.recorded_type), f"{cluster.title}: speeds")


def _shares(cluster: ClusterConfig, layout: Layout) -> np.ndarray:
    """``type_shares`` of each type [T]."""
    shares = cluster.type_shares or {}
    return np.array([shares.get(t, 0.0) for t in layout.types])


def _draw_types(jobs: pd.DataFrame, full: np.ndarray, cluster: ClusterConfig, layout: Layout) -> np.ndarray:
    """``full`` [J, T] with −1 but for the type drawn, of jobs that name none; the same for a job in every run."""
    if cluster.type_shares is None:
        return full
    weight = _shares(cluster, layout) * (full >= 0)
    drawn = _drawn(jobs["job_id"].to_numpy(), "gpu_type", weight)[:, None] == np.arange(len(layout.types))
    return np.where(jobs["gpu_type"].notna().to_numpy()[:, None] | drawn, full, -1)


def _cuts_in(layout: Layout, cluster: ClusterConfig, pool: np.ndarray, *asked: np.ndarray) -> tuple[np.ndarray, ...]:
    """(size, full, rem), each [J, T], of every job on the nodes of its own pool [J]; ``asked`` as :func:`_cuts` has it."""
    out = tuple(np.full(asked[-1].shape, value, np.int64) for value in (0, -1, 0))
    for p in range(len(layout.pools)):
        here = np.flatnonzero(pool == p)
        if len(here):
            for column, found in zip(out, _cuts(layout, p, *(of_all[here] for of_all in asked))):
                column[here] = found
    if cluster.fewest_nodes:
        _, full, rem = out
        nodes = np.where(full >= 0, full + (rem > 0), np.iinfo(np.int64).max)
        full[nodes > nodes.min(axis=1, keepdims=True)] = -1
    return out


def _cuts(
    layout: Layout, pool: int, gpus: np.ndarray, cpu: np.ndarray, mem: np.ndarray, kinds: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(size, full, rem), each [J, T], of every job on the nodes of one pool."""
    nodes = layout.nodes.row
    start, stop = layout.nodes.pool_start[pool : pool + 2]
    size, rem = np.zeros(kinds.shape, np.int64), np.zeros(kinds.shape, np.int64)
    full = np.full(kinds.shape, -1, np.int64)
    _, first, count = np.unique(nodes["group"][start:stop], return_index=True, return_counts=True)
    for t in range(kinds.shape[1]):
        # GPUs one node of each group of this type can give a job: [J, groups]
        mine = [(int(start + f), int(c)) for f, c in zip(first, count, strict=True) if nodes["type"][start + f] == t]
        if not mine:
            continue
        most = np.stack([_most(nodes[m], cpu, mem) for m, _ in mine], 1)
        largest = most.max(axis=1)
        usable = kinds[:, t] & (largest > 0)
        per = np.maximum(largest, 1)
        f, r = gpus // per, gpus % per
        number = np.array([c for _, c in mine])
        enough = (number * (most == largest[:, None])).sum(axis=1) >= f
        room_for_rest = (number * (most >= np.maximum(r, 1)[:, None])).sum(axis=1) >= f + (r > 0)
        equal = usable & enough & room_for_rest
        size[equal, t], full[equal, t], rem[equal, t] = per[equal], f[equal], r[equal]
        rest = np.flatnonzero(usable & ~equal)
        full[rest, t] = _fewest_nodes(gpus[rest], most[rest], number)
    return size, full, rem


def _fewest_nodes(gpus: np.ndarray, most: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Fewest nodes [J] whose GPUs add up to ``gpus`` [J], the roomiest first; −1 where all do not.

    ``most`` [J, groups]: GPUs that one node of a group can give each job; ``number`` [groups] of nodes.
    """
    nodes, left = np.zeros(len(gpus), np.int64), gpus.copy()
    order = np.argsort(-most, axis=1, kind="stable")
    for i in range(most.shape[1]):
        here = np.take_along_axis(most, order[:, i : i + 1], axis=1)[:, 0]
        used = np.minimum(number[order[:, i]], -(-np.maximum(left, 0) // np.maximum(here, 1))) * (here > 0)
        nodes += used
        left = left - used * here
    return np.where(left > 0, -1, nodes)


def _most(node: np.void, cpu: np.ndarray, mem: np.ndarray) -> np.ndarray:
    """GPUs [J] that an idle node (NODE) can give each job, by what it asks for per GPU."""
    most = np.full(cpu.shape, node["gpus"])
    most = np.where(cpu > 0, np.minimum(most, node["cpu_milli"] // np.maximum(cpu, 1)), most)
    return np.where(mem > 0, np.minimum(most, node["mem_mb"] // np.maximum(mem, 1)), most)


def _drawn(job_id: np.ndarray, key: str, weight: np.ndarray) -> np.ndarray:
    """A column of ``weight`` [J, N] for each job, by the weights; N where all are 0. The same for a job in every run."""
    cumulative = np.cumsum(weight, axis=1)
    target = job_uniform(job_id, key) * cumulative[:, -1]
    return (cumulative <= target[:, None]).sum(axis=1)
