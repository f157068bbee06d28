"""What a run's traces look like, in frames: the report draws them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.cluster.fit import compile_jobs
from rltune.cluster.layout import build_layout
from rltune.cluster.load import offered_load
from rltune.config import Workspace
from rltune.pipeline.prepare import ensure_clean, ensure_fitted, estimate_jobs
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.traces.columns import TraceMeta
from rltune.traces.estimates import FALL_BACKS, HISTORY
from rltune.traces.estimates_accuracy import accuracy
from rltune.traces.estimates_published import PUBLISHED
from rltune.traces.split import split_points
from rltune.traces.statistics import summary_row, workload_row
from rltune.traces.statistics_shape import arrivals, batches, busiest_share, run_times, sizes

RECORDED = "recorded"
MOST = 0.9
"""Share of the jobs from which on something known of them stands for the trace."""
GENERATED = "generated, each by itself"
"""A synthetic trace's waits are drawn, not queued: right in the mean, without bursts."""
COPES = 0.9
"""Load that a simulated system has at most."""
SYSTEM = "FIFO + EASY"
"""What is simulated in the place of the system that a trace is from."""
NONE = pd.DataFrame()


@dataclass(frozen=True)
class Characterisation:
    """Frames with a column ``trace`` (title), ``data`` (what rows they are) and ``type`` (GPU or CPU) each."""

    workloads: pd.DataFrame
    """Table 2, a row a trace: rltune.traces.statistics.workload_row, ``wait_is`` (recorded, or which simulation)."""
    summary: pd.DataFrame
    """Table 4, a row a trace: rltune.traces.statistics.summary_row, and what is published of its system."""
    loads: pd.DataFrame
    """A row a trace × cluster: gpus, load_all, load_test."""
    batches: pd.DataFrame
    """Figure 6, a row a batch of a GPU trace, with ``wait_is``."""
    arrivals: pd.DataFrame
    """By hour and weekday, with ``busiest`` (share of the jobs in the busiest tenth of the hours)."""
    run_times: pd.DataFrame
    sizes: pd.DataFrame
    estimates: pd.DataFrame
    """A row a trace × estimate: accuracy on what is not the test part, ``jobs`` there, ``modelled`` (share of them the
    model itself made, not its fall-back)."""


def characterise(workspace: Workspace) -> Characterisation:
    """Everything about the run's traces and workloads, from what earlier stages left or made now.

    Where a trace records no wait, one is simulated (`simulated_wait`). Only ``estimates`` is something to choose by, so
    only it leaves the test parts out.
    """
    frames: dict[str, list[pd.DataFrame]] = {name: [] for name in Characterisation.__annotations__}
    for name, title in workspace.trace_titles().items():
        jobs, meta = ensure_clean(workspace, name)
        wait_s, wait_is = known_wait(workspace, name, jobs)
        row = workload_row(jobs.assign(wait_s=wait_s), meta).drop(columns=["title"])
        who = {"trace": title, "data": meta.data, "type": row["type"].item()}
        found = {
            "workloads": row.drop(columns=["data", "type"]).assign(wait_is=wait_is),
            "summary": _summary(workspace, name, jobs, meta).drop(columns=["title", "data"]),
            "loads": _loads(workspace, name),
            "arrivals": arrivals(jobs, meta).assign(busiest=busiest_share(jobs))
            if _has_hours(workspace, name)
            else NONE,
            "run_times": run_times(jobs),
            "sizes": sizes(jobs),
            "estimates": _estimates(workspace, name, jobs, meta),
        }
        if wait_is and who["type"] == "GPU":
            found["batches"] = batches(wait_s).assign(wait_is=wait_is)
        for key, frame in found.items():
            if frame.empty:
                continue
            for at, (column, value) in enumerate(who.items()):
                frame.insert(at, column, value)
            frames[key].append(frame)
    return Characterisation(**{key: _stack(parts) for key, parts in frames.items()})


def known_wait(workspace: Workspace, name: str, jobs: pd.DataFrame) -> tuple[pd.Series, str]:
    """(Wait of each job in s, where it is from): as recorded or generated; else as simulated; else unknown and "".

    Waits recorded of fewer than nine jobs in ten do not stand for the trace. Of the run's clusters, the one nearest to
    the system the trace is from is simulated: one that gets all arrivals and, if there is, one on which hardly any
    virtual cluster had to be drawn; then the largest. See :func:`simulated_wait`.
    """
    if jobs["wait_s"].notna().mean() >= MOST:
        return jobs["wait_s"], GENERATED if workspace.trace(name).synthetic else RECORDED
    clusters = [w.cluster for w in workspace.config.all_workloads() if w.trace == name]
    if not clusters:
        return jobs["wait_s"], ""

    def drawn(cluster: str) -> float:
        return float(jobs["vc"].isna().mean()) if len(workspace.cluster(cluster).pools) > 1 else 0.0

    def nearness(cluster: str) -> tuple[bool, bool, int]:
        settings = workspace.cluster(cluster)
        return settings.balance is None, drawn(cluster) <= 1 - MOST, settings.gpus

    cluster = max(clusters, key=nearness)
    waits, times = simulated_wait(workspace, name, cluster, jobs)
    where = f"simulated: {SYSTEM} on {workspace.cluster(cluster).title}"
    if times > 1:
        where += f" with {times} times its nodes"
    if drawn(cluster) > 1 - MOST:
        where += f", VC drawn for {drawn(cluster):.0%} of the jobs"
    return waits, where


def _has_hours(workspace: Workspace, name: str) -> bool:
    """Whether a trace's clock goes as its cluster's: not scaled, and not counted from a beginning of its own."""
    trace = workspace.trace(name)
    submit = trace.columns.submit_s if trace.columns else None
    return trace.format != "alibaba2023" and (submit is None or submit.factor == 1)


def simulated_wait(workspace: Workspace, name: str, cluster: str, jobs: pd.DataFrame) -> tuple[pd.Series, int]:
    """(Wait of each job in s under FIFO with EASY backfilling by true run times, best fit, the whole trace from an idle
    cluster; how many times the cluster's nodes there were).

    NaN for jobs that the cluster cannot hold. A slice that is offered more work than it can do has queues that grow from
    the first job to the last, which tells nothing of the trace: it gets so many times its nodes that the load is COPES
    at most. Without backfilling nodes would idle behind every large job, as in no system in production.
    """
    fitted, _ = ensure_fitted(workspace, name, cluster)
    settings = workspace.cluster(cluster)
    load = offered_load(fitted, settings.gpus)
    times = max(1, math.ceil(load / COPES)) if math.isfinite(load) else 1
    pools = [
        pool.model_copy(update={"groups": [g.model_copy(update={"nodes": times * g.nodes}) for g in pool.groups]})
        for pool in settings.pools
    ]
    settings = settings.model_copy(update={"pools": pools})
    compiled = compile_jobs(fitted, fitted["run_s"].to_numpy(np.float64), settings)
    count = len(fitted)
    state = simulate(
        compiled, build_layout(settings), np.array([0]), np.array([count]), SchedulerConfig("fifo", "easy")
    )
    wait = pd.Series(state.start[0, :count] - compiled.submit_s, index=fitted["job_id"])
    return wait.reindex(jobs["job_id"]).set_axis(jobs.index), times


def before_test(workspace: Workspace, name: str, jobs: pd.DataFrame) -> int:
    """How many of a trace's jobs, from the first, are before every test part there is of it."""
    split = workspace.config.split

    def test_begins(rows: pd.DataFrame) -> float:
        return float(rows["submit_s"].iloc[split_points(len(rows), split.train, split.validation).test[0]])

    clusters = [w.cluster for w in workspace.config.all_workloads() if w.trace == name]
    fitted = [ensure_fitted(workspace, name, cluster)[0] for cluster in clusters]
    return int(np.searchsorted(jobs["submit_s"], min(map(test_begins, [jobs, *fitted])), side="left"))


def _estimates(workspace: Workspace, name: str, jobs: pd.DataFrame, meta: TraceMeta) -> pd.DataFrame:
    jobs = jobs.iloc[: before_test(workspace, name, jobs)]
    asked = jobs["requested_s"].notna().any()
    cells = [c for c in workspace.config.cells() if c.estimate != PUBLISHED or c.trace == name]
    used = sorted({cell.estimate for cell in cells if cell.estimate not in ("exact", *HISTORY)})
    rows = []
    for estimate in [*used, *(h for h in HISTORY if asked or h != "requested")]:
        made = estimate_jobs(workspace, jobs, meta, estimate)
        rows.append(
            {
                "estimate": estimate,
                "jobs": len(jobs),
                "modelled": 1 - made["source"].isin(FALL_BACKS).mean(),
                **accuracy(made["estimate_s"].to_numpy(), jobs["run_s"].to_numpy(np.float64)),
            }
        )
    return pd.DataFrame(rows)


def _loads(workspace: Workspace, name: str) -> pd.DataFrame:
    rows = []
    for workload in workspace.config.all_workloads():
        if workload.trace != name:
            continue
        jobs, _ = ensure_fitted(workspace, name, workload.cluster)
        cluster = workspace.cluster(workload.cluster)
        split = split_points(len(jobs), workspace.config.split.train, workspace.config.split.validation)
        rows.append(
            {
                "cluster": cluster.title,
                "gpus": cluster.gpus,
                "load_all": offered_load(jobs, cluster.gpus),
                "load_test": offered_load(jobs.iloc[slice(*split.test)], cluster.gpus),
            }
        )
    return pd.DataFrame(rows, columns=["cluster", "gpus", "load_all", "load_test"])


def _summary(workspace: Workspace, name: str, jobs: pd.DataFrame, meta: TraceMeta) -> pd.DataFrame:
    system = workspace.trace(name).recorded_on
    if system is None:
        return summary_row(jobs, meta)
    row = summary_row(jobs, meta, system.gpus, system.nodes, system.gpu_types or None)
    return row.assign(scheduler=system.scheduler, network=system.network)


def _stack(parts: list[pd.DataFrame]) -> pd.DataFrame:
    parts = [part for part in parts if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
