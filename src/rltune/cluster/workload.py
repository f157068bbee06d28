"""A workload: a trace on a cluster, with the run-time estimates that schedulers are given, ready to be simulated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs, compile_jobs, fit
from rltune.cluster.layout import Layout, build_layout
from rltune.config import CACHE, ClusterConfig, load_cluster, load_trace
from rltune.config.context import Run
from rltune.errors import DataError
from rltune.traces.clean import clean_trace, without_names
from rltune.traces.columns import TraceMeta
from rltune.traces.estimates import estimate_jobs
from rltune.traces.estimates.calibrated import calibrated
from rltune.traces.fetch import obtain
from rltune.traces.split import Split, split_points
from rltune.traces.table import read_parquet


@dataclass(frozen=True)
class Workload:
    """What a simulation of a trace on a cluster needs."""

    table: pd.DataFrame
    """The job table as the cluster counts it, with ``pool``, ``estimate_s`` and, where made, ``calibrated_s``."""
    jobs: Jobs
    layout: Layout
    split: Split
    meta: TraceMeta
    slowdowns: Mapping[str, float] = field(default_factory=dict)
    """Factors on run times on this cluster, fields of rltune.simulator.config.SchedulerConfig."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason → rows of the trace that are not simulated, where the caller has just cleaned and fitted it."""

    @property
    def job_ids(self) -> np.ndarray:
        """[J] str."""
        return self.table["job_id"].to_numpy(str)

    @property
    def calibrated(self) -> Jobs | None:
        """The jobs with calibrated estimates in the place of the given ones (a copy); None where there are none."""
        return self.with_estimates(self.table["calibrated_s"]) if "calibrated_s" in self.table else None

    def with_exact_estimates(self) -> Workload:
        """The same workload with true run times as estimates (a copy)."""
        table = self.table.assign(estimate_s=self.jobs.run_s).drop(columns="calibrated_s", errors="ignore")
        return replace(self, table=table, jobs=self.with_estimates(self.jobs.run_s))

    def with_estimates(self, estimate_s: pd.Series | np.ndarray) -> Jobs:
        """A copy of the jobs with these estimates [J], s."""
        row = self.jobs.row.copy()
        row["estimate_s"] = np.asarray(estimate_s)
        return self.jobs._replace(row=row)


def make_workload(
    fitted: pd.DataFrame,
    meta: TraceMeta,
    estimates: pd.DataFrame,
    cluster: ClusterConfig,
    train_share: float,
    left_out: Mapping[str, int] | None = None,
) -> Workload:
    """A workload from fitted jobs (rltune.cluster.fit.fit) and a row of estimates each, in the same order."""
    more = estimates[[c for c in ("estimate_s", "calibrated_s") if c in estimates]]
    table = pd.concat([fitted.reset_index(drop=True), more.reset_index(drop=True)], axis=1)
    return Workload(
        table,
        compile_jobs(table, table["estimate_s"].to_numpy(), cluster),
        build_layout(cluster),
        split_points(len(table), train_share),
        meta,
        cluster.slowdowns,
        left_out or {},
    )


def add_calibrated(fitted: pd.DataFrame, meta: TraceMeta, estimates: pd.DataFrame) -> pd.DataFrame:
    """The estimates with ``job_id`` and ``calibrated_s`` (rltune.traces.estimates.calibrated), a row a job."""
    corrected = calibrated(fitted, meta, estimates["estimate_s"].to_numpy())["calibrated_s"]
    return estimates.assign(job_id=fitted["job_id"].to_numpy(), calibrated_s=corrected.to_numpy())


def read_fitted(path: Path | str) -> tuple[pd.DataFrame, TraceMeta]:
    """Read fitted jobs and their trace's metadata. Raises DataError where the file is missing or is something else."""
    fitted, meta = read_parquet(path, "fit")
    if meta is None or "pool" not in fitted:
        raise DataError(f"{path}: not a table of fitted jobs; delete it and run the stage fit again")
    return fitted, meta


def load_workload(jobs: Path | str, estimates: Path | str, cluster: ClusterConfig, train_share: float) -> Workload:
    """Read the files of the stages fit and estimate.

    Raises DataError where one is missing, is something else, or the two are not of the same jobs.
    """
    fitted, meta = read_fitted(jobs)
    given, _ = read_parquet(estimates, "estimate")
    if not np.array_equal(given["job_id"].to_numpy(), fitted["job_id"].to_numpy()):
        raise DataError(f"{estimates}: not of the same jobs as {jobs}; delete it and run the stage estimate again")
    return make_workload(fitted, meta, given, cluster, train_share)


def load_workloads(run: Run, jobs: Iterable[str], estimates: Iterable[str]) -> dict[tuple[str, str, str], Workload]:
    """Every workload of a run's cells by (trace, cluster, estimate).

    Args:
        run: their configuration.
        jobs: paths ``…/<trace>__<cluster>/jobs.parquet``.
        estimates: paths ``…/<trace>__<cluster>/estimate-<estimate>.parquet``.
    """
    tables = {Path(path).parent.name: path for path in jobs}
    found = {}
    for path in map(Path, estimates):
        trace, cluster = path.parent.name.split("__")
        kind = path.stem.removeprefix("estimate-")
        found[trace, cluster, kind] = load_workload(
            tables[path.parent.name], path, run.clusters[cluster], run.config.train_share
        )
    return found


def build_workload(
    run: Run, trace: str, cluster: str, estimate: str, calibrate: bool = False, **changes: object
) -> Workload:
    """A workload made now and in memory: raw files obtained, cleaned, fitted, with estimates.

    For single simulations and benchmarks; the workflow keeps what each step makes. ``trace`` and ``cluster`` are names
    of files in config/, those of the run or others. ``changes``: fields of the cluster.
    """
    root = run.root
    settings, nodes = load_trace(trace, root), load_cluster(cluster, root).model_copy(update=changes)
    cleaned = clean_trace(trace, settings, obtain(trace, settings, root / CACHE, root))
    jobs = without_names(cleaned.jobs) if settings.data == "own" else cleaned.jobs
    fitted, audit = fit(jobs, nodes, f"{trace} on {cluster}", run.config.train_share)
    seed = run.config.evaluation.seed
    made = estimate_jobs(fitted, cleaned.meta, estimate, seed, settings.predictions, root)
    if calibrate:
        made = add_calibrated(fitted, cleaned.meta, made)
    left_out = Counter(cleaned.audit.left_out) + Counter(audit.left_out)
    return make_workload(fitted, cleaned.meta, made, nodes, run.config.train_share, left_out)
