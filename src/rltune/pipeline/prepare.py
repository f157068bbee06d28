"""From raw files to what a simulation needs: cleaned jobs, their pools on a cluster, their run-time estimates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow

from rltune.cluster.fit import Jobs, compile_jobs, fit, in_slots
from rltune.cluster.layout import Layout, build_layout
from rltune.config import ClusterConfig, Workspace
from rltune.errors import DataError
from rltune.files import atomic_write, read_json, write_json
from rltune.traces.audit import Audit
from rltune.traces.clean import CleanTrace, clean_trace
from rltune.traces.columns import TraceMeta
from rltune.traces.estimates import estimate_jobs as by_name
from rltune.traces.estimates.calibrated import calibrated
from rltune.traces.fetch import fingerprint, obtain
from rltune.traces.split import Split, split_points
from rltune.traces.table import read_table, write_table


@dataclass(frozen=True)
class Workload:
    """A trace on a cluster, ready to be simulated."""

    jobs: Jobs
    job_ids: np.ndarray  # [J] str
    layout: Layout
    split: Split
    meta: TraceMeta
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason → rows of the trace that are not simulated: what cleaning and the fit left out, where they were done now."""
    calibrated_s: np.ndarray | None = None
    """[J] what to believe of each run time, given its estimate and the jobs before (rltune.traces.estimates.calibrated), s; None
    where none were made."""

    @property
    def calibrated(self) -> Jobs | None:
        """The jobs with beliefs in the place of their estimates (a copy); None where none were made."""
        if self.calibrated_s is None:
            return None
        row = self.jobs.row.copy()
        row["estimate_s"] = self.calibrated_s
        return self.jobs._replace(row=row)


MADE_OF = "made-of.json"
"""Beside a cleaned trace: the configuration and the file it was made of."""


def clean(workspace: Workspace, name: str) -> CleanTrace:
    """Obtain a trace's raw files and write its cleaned job table and audit."""
    trace = workspace.trace(name)
    raw = obtain(name, trace, workspace.cache, workspace.root)
    result = clean_trace(name, trace, raw)
    write_table(result.jobs, result.meta, workspace.jobs(name))
    write_json(workspace.clean_audit(name), result.audit.to_dict())
    write_json(workspace.jobs(name).with_name(MADE_OF), _made_of(workspace, name))
    return result


def _made_of(workspace: Workspace, name: str) -> dict[str, str]:
    trace = workspace.trace(name)
    return {"trace": trace.model_dump_json(), "file": fingerprint(trace.path, workspace.root)}


def current_clean(workspace: Workspace, name: str) -> tuple[pd.DataFrame, TraceMeta]:
    """The same as :func:`ensure_clean`, but cleaned again, and said so, where the trace's configuration or file is not
    what it was. For commands by hand; in a run of the workflow, Snakemake sees to it."""
    path = workspace.jobs(name).with_name(MADE_OF)
    if workspace.jobs(name).is_file() and not (path.is_file() and read_json(path) == _made_of(workspace, name)):
        print(
            f"trace {name}: its configuration or file has changed since it was cleaned; cleaning it again", flush=True
        )
        clean(workspace, name)
    return ensure_clean(workspace, name)


def ensure_clean(workspace: Workspace, name: str) -> tuple[pd.DataFrame, TraceMeta]:
    """A trace's cleaned jobs, cleaned now if they are not there."""
    if not (workspace.jobs(name).is_file() and workspace.clean_audit(name).is_file()):
        clean(workspace, name)
    return read_table(workspace.jobs(name))


def fit_workload(workspace: Workspace, trace: str, cluster: str) -> Audit:
    """Fit a trace to a cluster: write job_id and pool of the jobs it can hold, and the audit of the rest."""
    jobs, _ = ensure_clean(workspace, trace)
    fitted, audit = fit(jobs, workspace.cluster(cluster), f"{trace} on {cluster}", workspace.config.split.train)
    with atomic_write(workspace.fitted(trace, cluster)) as temporary:
        fitted[["job_id", "pool"]].to_parquet(temporary, index=False)
    write_json(workspace.fit_audit(trace, cluster), audit.to_dict())
    return audit


def ensure_fitted(workspace: Workspace, trace: str, cluster: str) -> tuple[pd.DataFrame, TraceMeta]:
    """The jobs of a trace that a cluster can hold, as it counts them (rltune.cluster.fit.in_slots), with their column
    ``pool``."""
    if not (workspace.fitted(trace, cluster).is_file() and workspace.fit_audit(trace, cluster).is_file()):
        fit_workload(workspace, trace, cluster)
    jobs, meta = ensure_clean(workspace, trace)
    return in_slots(_in_step(jobs, workspace.fitted(trace, cluster)), workspace.cluster(cluster)), meta


def write_estimates(workspace: Workspace, trace: str, cluster: str, estimate: str) -> None:
    """Write the run-time estimates every policy gets for a workload, a row a job: job_id, estimate_s, source; and what
    an agent may believe instead: calibrated_s."""
    jobs, meta = ensure_fitted(workspace, trace, cluster)
    made = estimate_jobs(workspace, jobs, meta, estimate)
    made.insert(0, "job_id", jobs["job_id"])
    made["calibrated_s"] = calibrated(jobs, meta, made["estimate_s"].to_numpy())["calibrated_s"]
    with atomic_write(workspace.estimates(trace, cluster, estimate)) as temporary:
        made.to_parquet(temporary, index=False)


def ensure_workload(workspace: Workspace, trace: str, cluster: str, estimate: str) -> Workload:
    """Everything simulations need, from what earlier stages left or made now."""
    jobs, meta = ensure_fitted(workspace, trace, cluster)
    path = workspace.estimates(trace, cluster, estimate)
    if not path.is_file():
        write_estimates(workspace, trace, cluster, estimate)
    told = _in_step(jobs, path)
    if "calibrated_s" not in told:  # written before there were beliefs
        write_estimates(workspace, trace, cluster, estimate)
        told = _in_step(jobs, path)
    workload = _workload(workspace, told, told["estimate_s"].to_numpy(), workspace.cluster(cluster), meta)
    return replace(workload, calibrated_s=told["calibrated_s"].to_numpy())


def make_workload(workspace: Workspace, trace: str, cluster: str, estimate: str) -> Workload:
    """The same, fitted and estimated now and in memory, without beliefs; only the cleaned trace is found, or made."""
    settings = workspace.cluster(cluster)
    jobs, meta = current_clean(workspace, trace)
    fitted, audit = fit(jobs, settings, f"{trace} on {cluster}", workspace.config.split.train)
    made = estimate_jobs(workspace, fitted, meta, estimate)
    cleaned = Audit.from_dict(read_json(workspace.clean_audit(trace)))
    workload = _workload(workspace, fitted, made["estimate_s"].to_numpy(), settings, meta)
    return replace(workload, left_out=Counter(cleaned.left_out) + Counter(audit.left_out))


def estimate_jobs(workspace: Workspace, jobs: pd.DataFrame, meta: TraceMeta, estimate: str) -> pd.DataFrame:
    """Run-time estimates of jobs by an estimate's name (rltune.traces.estimates), a row a job."""
    predictions = workspace.trace(meta.name).predictions
    return by_name(jobs, meta, estimate, workspace.config.evaluation.seed, predictions, workspace.root)


def _workload(
    workspace: Workspace, jobs: pd.DataFrame, estimate_s: np.ndarray, cluster: ClusterConfig, meta: TraceMeta
) -> Workload:
    split = workspace.config.split
    return Workload(
        compile_jobs(jobs, estimate_s, cluster),
        jobs["job_id"].to_numpy(str),
        build_layout(cluster),
        split_points(len(jobs), split.train, split.validation),
        meta,
    )


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
