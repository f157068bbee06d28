"""What `rltune init` understood of a job log, a list of nodes and the one on the other, line by line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
import yaml

from rltune.cluster.load import offered_load
from rltune.cluster.nodes import NodeList
from rltune.config.cluster import ClusterConfig
from rltune.evaluation.intervals import FEWEST
from rltune.evaluation.studies.hours_waited import days_needed
from rltune.traces.clean import CleanTrace
from rltune.traces.columns import TraceMeta
from rltune.traces.guess import guess_columns
from rltune.traces.readers import sacct
from rltune.traces.raw import slurm_fields as slurm
from rltune.traces.sniff import Found


def log_lines(path: Path, found: Found, text: str, clean: CleanTrace) -> list[str]:
    """What was understood of the job log."""
    jobs, audit, meta = clean.jobs, clean.audit, clean.meta
    first = pd.Timestamp(meta.t0)
    last = first + pd.Timedelta(seconds=float(jobs["submit_s"].iloc[-1]))
    kinds = ", ".join(f"{n:,} {kind.upper()}" for kind, n in jobs["resource"].value_counts().items())
    lines = [
        f"{path}: {found.name}",
        f"  jobs: {len(jobs):,} ({kinds}), submitted {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} "
        f"({meta.time_zone}), {jobs['submit_s'].iloc[-1] / 86_400:,.1f} days",
        f"  left out: {counts(audit.left_out)}",
        f"  noted: {counts(audit.noted)}",
        f"  states: {_states(found, text, clean)}",
        f"  {_times(jobs)}",
    ]
    if unused := _unused(found):
        lines.append(f"  columns not used: {', '.join(unused)}")
    return lines


def _times(jobs: pd.DataFrame) -> str:
    """Median run time and, beside it, median time limit, where a wrong unit shows."""
    told = f"median run time: {jobs['run_s'].median():,.0f} s"
    known = jobs["requested_s"].notna()
    if not known.any():
        return told
    limit = jobs.loc[known, "requested_s"].median()
    return f"{told}; median time limit: {limit:,.0f} s (of {known.mean():.0%} of the jobs)"


def _states(found: Found, text: str, clean: CleanTrace) -> str:
    """What each state of the log is taken for, those that are not known named."""
    table = found.table
    if found.format == "sacct":
        state = slurm.state(table["State"].astype(str)).str.upper()
        known = {
            **sacct.STATUS,
            **dict.fromkeys(sacct.WAITING, "not started"),
            **dict.fromkeys(sacct.RUNNING, "not ended"),
        }
    elif found.format == "csv" and "status" in (columns := guess_columns(list(map(str, table.columns)))):
        state = slurm.state(table[columns["status"]].dropna().astype(str))
        known = yaml.safe_load(text)["columns"]["status"]["map"]
    else:
        return ", ".join(f"{n:,} {status}" for status, n in clean.jobs["status"].value_counts().items())
    counted = state.value_counts()
    told = ", ".join(f"{name} → {known[name]}" for name in counted.index if known.get(name, "unknown") != "unknown")
    unknown = [f"{name} ({n:,})" for name, n in counted.items() if known.get(name, "unknown") == "unknown"]
    return (told or "none known") + (f"; NOT KNOWN: {', '.join(unknown)}" if unknown else "")


def _unused(found: Found) -> list[str]:
    """Columns of the file that nothing is made of."""
    names = [str(c) for c in found.table.columns]
    if found.format == "sacct":
        return [n for n in names if n.strip() not in sacct.KNOWN and not n.startswith("Unnamed")]
    if found.format == "csv":
        used = set(guess_columns(names).values())
        return [n for n in names if n not in used]
    return []


def nodes_lines(path: Path, nodes: NodeList, cluster: ClusterConfig) -> list[str]:
    """What was understood of the list of nodes."""
    unit = "GPU" if cluster.slots == "gpu" else "processor"
    nodes_, units = (f"{n:,} {what}{'s' * (n != 1)}" for n, what in ((len(nodes.table), "node"), (cluster.gpus, unit)))
    lines = [f"{path}: {nodes.source}, {nodes_}, {units}"]
    for pool in cluster.pools:
        groups = ", ".join(
            f"{g.nodes:,} × {g.gpus} {g.gpu_type} ({g.cpus:g} CPUs, {g.mem_gb:,.4g} GB)" for g in pool.groups
        )
        lines.append(f"  pool {pool.name}: {groups}")
    return lines


def fit_lines(fitted: pd.DataFrame, left_out: dict[str, int], cluster: ClusterConfig) -> list[str]:
    """Which jobs the cluster holds, and what they ask of it."""
    end = fitted.iloc[int(0.9 * len(fitted)) :]
    days = (end["submit_s"].iloc[-1] - end["submit_s"].iloc[0]) / 86_400
    return [
        f"on this cluster: {len(fitted):,} jobs; left out: {counts(left_out)}",
        f"  offered load: {offered_load(fitted, cluster.gpus):.2f}; of the last tenth, which is measured: "
        f"{offered_load(end, cluster.gpus):.2f} ({len(end):,} jobs in {days:,.1f} days)",
    ]


def lacking(jobs: pd.DataFrame, fitted: pd.DataFrame, limits: float) -> list[str]:
    """What the log lacks, and what that costs the analysis."""
    told = []
    if fitted["wait_s"].isna().all():
        told.append("no recorded waits (no starts): today can only be simulated, not held against what happened")
    elif (share := fitted["wait_s"].isna().mean()) > 0.01:
        told.append(f"{share:.0%} of the jobs have no recorded wait; the others are held against the simulation")
    if limits == 0:
        told.append(
            "no time limits: all schedulers are told run times predicted from a user's earlier jobs (history-rolling)"
        )
    elif limits < 0.9:
        told.append(f"{1 - limits:.0%} of the jobs have no time limit: theirs is predicted from earlier jobs")
    known = fitted[fitted["requested_s"].notna()]
    if len(known) and (over := float((known["run_s"] > known["requested_s"]).mean())) > 0.5:
        told.append(
            f"{over:.0%} of the jobs with a time limit ran longer than it: is it in another unit? Write "
            "`requested_s: {column: NAME, unit: min}` (or h) in the trace's file"
        )
    if fitted["user"].isna().all():
        told.append("no users: predictions, fair shares and groups go by virtual cluster")
    if len({*jobs["resource"]}) > 1:
        told.append(
            f"{(jobs['resource'] == 'cpu').sum():,} jobs without GPUs are not simulated, nor the CPUs they hold"
        )
    return told


def too_short(fitted: pd.DataFrame, meta: TraceMeta) -> str:
    """That the log's last tenth has too few days for a verdict, and how long a log would do; "" where it has enough."""
    at = pd.Timestamp(meta.t0).tz_convert(meta.time_zone) + pd.to_timedelta(fitted["submit_s"], unit="s")
    days = at.iloc[int(0.9 * len(fitted)) :].dt.floor("D").nunique()
    if days >= FEWEST:
        return ""
    return (
        f"the last tenth has arrivals on {days} days; a verdict needs {FEWEST}, a log of some "
        f"{days_needed((at.iloc[-1] - at.iloc[0]) / pd.Timedelta(days=1), days):,} days"
    )


def counts(of: dict[str, int] | Counter[str]) -> str:
    """`12 of this; 3 of that`, or none."""
    return "; ".join(f"{n:,} {what}" for what, n in of.items()) or "none"


def some(names: set[str]) -> str:
    """The first five of some names."""
    return ", ".join(sorted(names)[:5]) + (", …" if len(names) > 5 else "")
