"""The characterisation of a run's traces, as tables that the report draws."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.cluster.fit import compile_jobs
from rltune.cluster.layout import build_layout
from rltune.cluster.load import offered_load, scaled
from rltune.config import ClusterConfig
from rltune.config.context import Run
from rltune.config.trace import TraceConfig
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.traces.columns import TraceMeta
from rltune.traces.estimates import FALL_BACKS, REALISTIC, estimate_jobs
from rltune.traces.estimates.accuracy import accuracy
from rltune.traces.split import split_points
from rltune.traces.statistics import arrivals, batches, busiest_share, run_times, sizes, summary_row, workload_row

RECORDED = "recorded"
MOST = 0.9
"""Share of the jobs from which on something known of them stands for the trace."""
GENERATED = "generated, each by itself"
"""A synthetic trace's waits are drawn, not queued: right in the mean, without bursts."""
TARGET_LOAD = 0.9
"""Load that a simulated system has at most."""
SYSTEM = "FIFO + EASY"
"""What is simulated in the place of the system that a trace is from."""

Tables = Mapping[str, tuple[pd.DataFrame, TraceMeta]]
"""Trace → its cleaned jobs and what is known of it."""
Fitted = Mapping[tuple[str, str], pd.DataFrame]
"""(Trace, cluster) → the jobs that the cluster can hold, as it counts them."""


@dataclass(frozen=True)
class Characterisation:
    """Frames with a column ``trace`` (title), ``data`` (what rows they are) and ``type`` (GPU or CPU) each."""

    workloads: pd.DataFrame
    """Table 2, a row per trace: rltune.traces.statistics.workload_row, ``wait_is`` (recorded, or which simulation)."""
    summary: pd.DataFrame
    """Table 4, a row per trace: rltune.traces.statistics.summary_row, and what is published of its system."""
    loads: pd.DataFrame
    """A row per trace × cluster: gpus, load_all, load_test."""
    batches: pd.DataFrame
    """Figure 6, a row per batch of a trace, with ``wait_is``."""
    arrivals: pd.DataFrame
    """By hour and weekday, with ``busiest`` (share of the jobs in the busiest tenth of the hours)."""
    run_times: pd.DataFrame
    sizes: pd.DataFrame
    estimates: pd.DataFrame
    """A row per trace that is scheduled × estimate: accuracy on what is not the test part, ``jobs`` there, ``modelled`` (share of them the
    model itself made, not its fall-back)."""


def characterise(run: Run, tables: Tables, fitted: Fitted) -> Characterisation:
    """Everything about the run's traces and workloads.

    Where a trace records no wait, one is simulated (:func:`known_wait`). Only ``estimates`` is something to choose by,
    so only it leaves the test parts out.
    """
    frames: dict[str, list[pd.DataFrame]] = {name: [] for name in Characterisation.__annotations__}
    for name, title in run.trace_titles().items():
        jobs, meta = tables[name]
        on_clusters = {cluster: frame for (trace, cluster), frame in fitted.items() if trace == name}
        wait_s, wait_is = known_wait(run, name, jobs, on_clusters)
        row = workload_row(jobs.assign(wait_s=wait_s))
        about = {"trace": title, "data": meta.data, "type": row["type"].item()}
        found = {
            "workloads": row.drop(columns="type").assign(wait_is=wait_is),
            "summary": summary_row(jobs, run.traces[name].recorded_on),
            "loads": _loads(run, on_clusters),
            "run_times": run_times(jobs),
            "sizes": sizes(jobs),
            "estimates": _estimates(run, name, jobs, meta, on_clusters) if on_clusters else pd.DataFrame(),
        }
        if _has_hours(run.traces[name]):
            found["arrivals"] = arrivals(jobs, meta).assign(busiest=busiest_share(jobs))
        if wait_is:
            found["batches"] = batches(wait_s).assign(wait_is=wait_is)
        for key, frame in found.items():
            if not frame.empty:
                frames[key].append(frame.assign(**about)[[*about, *frame.columns]])
    return Characterisation(
        **{key: pd.concat(parts, ignore_index=True) if parts else pd.DataFrame() for key, parts in frames.items()}
    )


def known_wait(run: Run, name: str, jobs: pd.DataFrame, fitted: Mapping[str, pd.DataFrame]) -> tuple[pd.Series, str]:
    """(Wait of each job in s, where it is from): as recorded or generated; else as simulated; else unknown and "".

    Waits recorded of fewer than nine jobs in ten do not stand for the trace. Of the run's clusters (``fitted``: those
    of the trace), the one nearest to the system the trace is from is simulated: one that gets all arrivals and, if
    there is one, on which hardly any virtual cluster had to be drawn; then the largest. See :func:`simulated_wait`.
    """
    if jobs["wait_s"].notna().mean() >= MOST:
        return jobs["wait_s"], GENERATED if run.traces[name].synthetic else RECORDED
    if not fitted:
        return jobs["wait_s"], ""

    def drawn(cluster: ClusterConfig) -> float:
        return float(jobs["vc"].isna().mean()) if len(cluster.pools) > 1 else 0.0

    def nearness(name: str) -> tuple[bool, bool, int]:
        cluster = run.clusters[name]
        return cluster.balance is None, drawn(cluster) <= 1 - MOST, cluster.gpus

    nearest = max(fitted, key=nearness)
    cluster = run.clusters[nearest]
    waits, times = simulated_wait(jobs, fitted[nearest], cluster)
    where = f"simulated: {SYSTEM} on {cluster.title}"
    if times > 1:
        where += f" with {times} times its nodes"
    if drawn(cluster) > 1 - MOST:
        where += f", VC drawn for {drawn(cluster):.0%} of the jobs"
    return waits, where


def simulated_wait(jobs: pd.DataFrame, fitted: pd.DataFrame, cluster: ClusterConfig) -> tuple[pd.Series, int]:
    """(Wait of each job in s under FIFO with EASY backfilling by true run times, best fit, the whole trace from an idle
    cluster; how many times the cluster's nodes there were).

    NaN for jobs that the cluster cannot hold. A slice that is offered more work than it can do has queues that grow from
    the first job to the last, which says nothing about the trace: it gets so many times its nodes that the load is at
    most TARGET_LOAD. Without backfilling nodes would idle behind every large job, as in no system in production.
    """
    load = offered_load(fitted, cluster.gpus)
    times = max(1, math.ceil(load / TARGET_LOAD)) if math.isfinite(load) else 1
    larger, n = scaled(cluster, times), np.array([len(fitted)])
    compiled = compile_jobs(fitted, fitted["run_s"].to_numpy(np.float64), larger)
    state = simulate(
        compiled, build_layout(larger), np.array([0]), n, SchedulerConfig("fifo", "easy", **cluster.slowdowns)
    )
    wait = pd.Series(state.start[0, : len(fitted)] - compiled.submit_s, index=fitted["job_id"])
    return wait.reindex(jobs["job_id"]).set_axis(jobs.index), times


def before_test(run: Run, jobs: pd.DataFrame, fitted: Mapping[str, pd.DataFrame]) -> int:
    """How many of a trace's jobs, from the first, are before every test part there is of it."""

    def test_begins(rows: pd.DataFrame) -> float:
        return float(rows["submit_s"].iloc[split_points(len(rows), run.config.train_share).test[0]])

    return int(np.searchsorted(jobs["submit_s"], min(map(test_begins, [jobs, *fitted.values()])), side="left"))


def _has_hours(trace: TraceConfig) -> bool:
    """Whether a trace's clock goes as its cluster's: not scaled, and not counted from an arbitrary beginning."""
    submit = trace.columns.submit_s if trace.columns else None
    return trace.format != "alibaba2023" and (submit is None or submit.factor == 1)


def _estimates(
    run: Run, name: str, jobs: pd.DataFrame, meta: TraceMeta, fitted: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    jobs = jobs.iloc[: before_test(run, jobs, fitted)]
    has_limits = jobs["requested_s"].notna().any()
    cells = [c for c in run.config.cells() if c.estimate != "published" or c.trace == name]
    used = sorted({cell.estimate for cell in cells if cell.estimate not in ("exact", *REALISTIC)})
    rows = []
    for estimate in [*used, *(h for h in REALISTIC if has_limits or h != "requested")]:
        seed, predictions = run.config.evaluation.seed, run.traces[name].predictions
        made = estimate_jobs(jobs, meta, estimate, seed, predictions, run.root)
        errors = accuracy(made["estimate_s"].to_numpy(), jobs["run_s"].to_numpy(np.float64))
        modelled = 1 - made["source"].isin(FALL_BACKS).mean()
        rows.append({"estimate": estimate, "jobs": len(jobs), "modelled": modelled, **errors})
    return pd.DataFrame(rows)


def _loads(run: Run, fitted: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    rows = []
    for name, jobs in fitted.items():
        cluster = run.clusters[name]
        test = slice(*split_points(len(jobs), run.config.train_share).test)
        loads = {"load_all": offered_load(jobs, cluster.gpus), "load_test": offered_load(jobs.iloc[test], cluster.gpus)}
        rows.append({"cluster": cluster.title, "gpus": cluster.gpus, **loads})
    return pd.DataFrame(rows)
