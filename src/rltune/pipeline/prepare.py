"""From raw files to what a simulation needs: cleaned jobs, their pools on a cluster, their run-time estimates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow

from rltune.cluster.fit import Jobs, compile_jobs, fit
from rltune.cluster.layout import Layout, build_layout
from rltune.cluster.load import offered_load
from rltune.config import ClusterConfig, Workspace, parse_estimate
from rltune.errors import DataError
from rltune.files import aside, write_json
from rltune.traces.audit import Audit
from rltune.traces.clean import CleanTrace, clean_trace
from rltune.traces.estimates import estimate_run_s
from rltune.traces.fetch import obtain
from rltune.traces.split import Split, split_points
from rltune.traces.statistics import summary_row, workload_row
from rltune.traces.table import TraceMeta, read_table, write_table


@dataclass(frozen=True)
class Workload:
    """A trace on a cluster, ready to be simulated."""

    jobs: Jobs
    job_ids: np.ndarray  # [J] str
    layout: Layout
    split: Split
    meta: TraceMeta


def clean(workspace: Workspace, name: str) -> CleanTrace:
    """Obtain a trace's raw files and write its cleaned job table and audit."""
    trace = workspace.trace(name)
    raw = obtain(name, trace, workspace.cache, workspace.root)
    result = clean_trace(name, trace, raw)
    write_table(result.jobs, result.meta, workspace.jobs(name))
    write_json(workspace.clean_audit(name), result.audit.to_dict())
    return result


def ensure_clean(workspace: Workspace, name: str) -> tuple[pd.DataFrame, TraceMeta]:
    """A trace's cleaned jobs, cleaned now if they are not there."""
    if not (workspace.jobs(name).is_file() and workspace.clean_audit(name).is_file()):
        clean(workspace, name)
    return read_table(workspace.jobs(name))


def fit_workload(workspace: Workspace, trace: str, cluster: str) -> Audit:
    """Fit a trace to a cluster: write job_id and pool of the jobs it can hold, and the audit of the rest."""
    jobs, _ = ensure_clean(workspace, trace)
    fitted, audit = fit(jobs, workspace.cluster(cluster), f"{trace} on {cluster}", workspace.config.split.train)
    with aside(workspace.fitted(trace, cluster)) as temporary:
        fitted[["job_id", "pool"]].to_parquet(temporary, index=False)
    write_json(workspace.fit_audit(trace, cluster), audit.to_dict())
    return audit


def ensure_fitted(workspace: Workspace, trace: str, cluster: str) -> tuple[pd.DataFrame, TraceMeta]:
    """The jobs of a trace that a cluster can hold, with their column ``pool``."""
    if not (workspace.fitted(trace, cluster).is_file() and workspace.fit_audit(trace, cluster).is_file()):
        fit_workload(workspace, trace, cluster)
    jobs, meta = ensure_clean(workspace, trace)
    return _in_step(jobs, workspace.fitted(trace, cluster)), meta


def write_estimates(workspace: Workspace, trace: str, cluster: str, estimate: str) -> None:
    """Write the run-time estimates every policy gets for a workload."""
    jobs, meta = ensure_fitted(workspace, trace, cluster)
    seconds = _estimate_s(workspace, jobs, meta, estimate)
    with aside(workspace.estimates(trace, cluster, estimate)) as temporary:
        pd.DataFrame({"job_id": jobs["job_id"], "estimate_s": seconds}).to_parquet(temporary, index=False)


def ensure_workload(workspace: Workspace, trace: str, cluster: str, estimate: str) -> Workload:
    """Everything simulations need, from what earlier stages left or made now."""
    jobs, meta = ensure_fitted(workspace, trace, cluster)
    path = workspace.estimates(trace, cluster, estimate)
    if not path.is_file():
        write_estimates(workspace, trace, cluster, estimate)
    jobs = _in_step(jobs, path)
    return _workload(workspace, jobs, jobs["estimate_s"].to_numpy(), workspace.cluster(cluster), meta)


def make_workload(workspace: Workspace, trace: str, cluster: str, estimate: str) -> Workload:
    """The same, fitted and estimated now and in memory; only the cleaned trace is found, or made."""
    settings = workspace.cluster(cluster)
    jobs, meta = ensure_clean(workspace, trace)
    fitted, _ = fit(jobs, settings, f"{trace} on {cluster}", workspace.config.split.train)
    return _workload(workspace, fitted, _estimate_s(workspace, fitted, meta, estimate), settings, meta)


def _estimate_s(workspace: Workspace, jobs: pd.DataFrame, meta: TraceMeta, estimate: str) -> np.ndarray:
    kind, sigma = parse_estimate(estimate)
    return estimate_run_s(jobs, kind, sigma, meta.name, workspace.config.evaluation.seed)


def _workload(
    workspace: Workspace, jobs: pd.DataFrame, estimate_s: np.ndarray, cluster: ClusterConfig, meta: TraceMeta
) -> Workload:
    split = workspace.config.split
    return Workload(
        compile_jobs(jobs, estimate_s, cluster), jobs["job_id"].to_numpy(str), build_layout(cluster),
        split_points(len(jobs), split.train, split.validation), meta,
    )  # fmt: skip


def characterise(workspace: Workspace) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """(rows of Table 2, rows of Table 4, offered loads) of the run's traces and workloads."""
    tables = {name: ensure_clean(workspace, name) for name in workspace.config.traces()}
    table2 = pd.concat([workload_row(*t) for t in tables.values()], ignore_index=True)
    table4 = pd.concat([_summary(workspace, name, *t) for name, t in tables.items()], ignore_index=True)
    loads = []
    for workload in workspace.config.all_workloads():
        jobs, meta = ensure_fitted(workspace, workload.trace, workload.cluster)
        cluster = workspace.cluster(workload.cluster)
        split = split_points(len(jobs), workspace.config.split.train, workspace.config.split.validation)
        loads.append({
            "trace": meta.title, "cluster": cluster.title, "gpus": cluster.gpus,
            "load_all": offered_load(jobs, cluster.gpus),
            "load_test": offered_load(jobs.iloc[slice(*split.test)], cluster.gpus), "data": meta.data,
        })  # fmt: skip
    return table2, table4, pd.DataFrame(loads)


def _summary(workspace: Workspace, name: str, jobs: pd.DataFrame, meta: TraceMeta) -> pd.DataFrame:
    system = workspace.trace(name).recorded_on
    if system is None:
        return summary_row(jobs, meta)
    row = summary_row(jobs, meta, system.gpus, system.nodes, system.gpu_types or None)
    return row.assign(scheduler=system.scheduler, network=system.network)


def _in_step(jobs: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The jobs that the table at ``path`` names, with its columns.

    Raises DataError when it cannot be read or names jobs that are not there.
    """
    try:
        more = pd.read_parquet(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: not readable as parquet ({error}); delete it and run the stage again") from None
    joined = jobs.merge(more, on="job_id", how="inner", validate="one_to_one")
    if len(joined) != len(more):
        raise DataError(f"{path}: names jobs that the cleaned trace does not have; delete it and run the stage again")
    return joined
