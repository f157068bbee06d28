"""An operator's job log on a list of nodes: what was understood of both, and what the log lacks for a what-if analysis."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from pydantic import ValidationError

from rltune.cluster.fit import fit, in_slots
from rltune.cluster.layout import build_layout
from rltune.cluster.load import gpus_in_use, offered_load
from rltune.cluster.nodes import NodeList, as_cluster, read_nodes
from rltune.config.cluster import ClusterConfig, NodeGroup
from rltune.config.messages import explain, first_error
from rltune.config.trace import TraceConfig
from rltune.errors import ConfigError, DataError
from rltune.evaluation.intervals import FEWEST
from rltune.evaluation.studies.hours_waited import TOO_FEW, days_needed
from rltune.traces.clean import CleanTrace, clean_trace
from rltune.traces.guess import entry, guess_columns
from rltune.traces.inspect import suggested
from rltune.traces.raw import slurm_fields as slurm
from rltune.traces.readers import sacct
from rltune.traces.sniff import Found

FEWEST_JOBS = 3000
"""Jobs on the cluster, at least: validation has a hundredth less than a tenth of them, and a window takes 256."""

FEWEST_LEARNED = 5700
"""Jobs on the cluster from which validation has two such windows, the least for a gain with an error."""

MOST_MISSING = 0.1
"""Of the jobs that name a GPU type, the largest share whose type no node has; these are left out. Where there are more, types
are ignored."""


@dataclass(frozen=True)
class Log:
    """A job log that can be read."""

    path: Path
    found: Found
    text: str
    """The lines of its config/traces/NAME.yaml."""
    clean: CleanTrace
    assumed: list[str]
    """What had to be assumed to read it."""


@dataclass(frozen=True)
class Examined:
    """A job log on a list of nodes."""

    log: Log
    cluster: ClusterConfig
    fitted: pd.DataFrame
    """The jobs that the cluster can hold (rltune.cluster.fit.fit)."""
    estimate: str
    """The run-time estimates that schedulers are given."""
    understood: str
    """What was understood of the files, line by line."""
    defects: tuple[str, ...]
    """What of the log leaves the report without a verdict, or with a wrong one."""
    too_few_nodes: bool
    """Whether the log cannot have run on these nodes."""


def read_log(path: Path, zone: str | None, suggestion: tuple[Found, str] | None) -> Log:
    """A job log, cleaned. ``zone``: of its wall clock; None: what the file says, else UTC.

    ``suggestion``: what rltune.traces.inspect.suggested says of it, if known. Raises DataError or ConfigError if it cannot
    be read, or lacks what no analysis can do without.
    """
    found, text = suggestion or suggested(path)
    assumed: list[str] = []
    if zone is not None:
        text = re.sub(r"^time_zone: .*$", f"time_zone: {zone}", text, count=1, flags=re.MULTILINE)
    if found.format == "csv":
        text, assumed = _complete(found, text, path)
    try:
        trace = TraceConfig(**yaml.safe_load(text))
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_error(error)}") from None
    return Log(path, found, text, clean_trace(path.name, trace, path), assumed)


def _complete(found: Found, text: str, path: Path) -> tuple[str, list[str]]:
    """(The map of a CSV, with starts for submissions if it has none; what that assumes)."""
    columns, assumed = guess_columns(list(map(str, found.table.columns))), []
    known = {
        "submission": "submit_s" in columns or "start_s" in columns,
        "run time": "run_s" in columns or {"start_s", "end_s"} <= columns.keys(),
        "number of GPUs or CPUs": "gpus" in columns or "cpus" in columns,
    }
    if lacks := [what for what, there in known.items() if not there]:
        raise DataError(
            f"{path}: no column of {' nor of '.join(lacks)} is known by its name; found "
            f"{', '.join(map(str, found.table.columns))}. Rename columns (submit_time, start_time, end_time, gpus, "
            "user, …), or write config/traces/NAME.yaml manually (docs/reference/traces.md, csv)"
        )
    if "submit_s" not in columns:
        (line,) = entry("submit_s", columns["start_s"], found.table[columns["start_s"]])
        text = text.replace("columns:\n", f"columns:\n{line}  # no submissions in the log\n", 1)
        assumed.append(
            "no submission times: the starts replace them, which removes the waits in the log, and makes all waits too short"
        )
    if "gpus" not in columns:
        text = text.replace("columns:\n", "columns:\n  resource: {constant: cpu}\n", 1)
    return re.sub(r"^  # (submit_s|gpus): COLUMN.*\n?", "", text, flags=re.MULTILINE), assumed


def examine(log: Log, nodes_path: Path, name: str, speeds: str | dict[str, float] | None) -> Examined:
    """What the log and the nodes say, with the cluster's ``speeds``. Raises DataError or ConfigError if no analysis can be
    made of them."""
    nodes, jobs = read_nodes(nodes_path), log.clean.jobs
    slots = "gpu" if (jobs["resource"] == "gpu").any() else "cpu"
    listed = int(nodes.table["gpus"].sum())
    if slots == "cpu" and listed:
        raise DataError(
            f"{log.path}: no job asks for a GPU, and {nodes_path} lists {listed:,}. Slurm records a job's GPUs only if "
            "slurm.conf has AccountingStorageTRES=gres/gpu (docs/how-to/own-cluster.md, 1); a log without them says nothing about "
            "these nodes. To analyse the processors only, give a list of nodes without GPUs"
        )
    try:
        cluster, notes = as_cluster(nodes, name, slots)
    except ValidationError as error:
        raise DataError(f"{nodes_path}: {explain(error.errors(), NodeGroup, plugins=False)[0][1]}") from None
    served = jobs[_served(jobs["vc"], cluster)]
    asked, types = set(served["gpu_type"].dropna()), {g.gpu_type for p in cluster.pools for g in p.groups}
    missing = {kind for kind in asked if not set(kind.split("|")) & types}
    if (
        cluster.gpu_types == "match"
        and served["gpu_type"].isin(missing).sum() > MOST_MISSING * served["gpu_type"].count()
    ):
        cluster = cluster.model_copy(update={"gpu_types": "ignore"})
        notes.append(
            f"the log asks for GPU types ({_some(missing)}) that the nodes do not name ({_some(types)}): types are ignored; "
            "to use them, write them alike and set `gpu_types: match`"
        )
    elif slots == "gpu" and cluster.gpu_types == "ignore" and missing:
        notes.append(
            f"the log asks for GPU types ({_some(missing)}), the nodes have one ({_some(types)}): types are ignored"
        )
    if speeds is not None:
        if cluster.gpu_types == "ignore":
            few = "processors" if slots == "cpu" else f"one GPU type, {_some(types)}"
            unlike = f"GPU types in the log ({_some(missing)}) that the nodes do not name ({_some(types)})"
            raise DataError(
                f"--speeds: found {few if slots == 'cpu' or len(types) == 1 else unlike}; expected several GPU types, named alike in "
                f"the log and in {nodes_path}"
            )
        cluster = cluster.model_copy(update={"speeds": speeds, "recorded_on": cluster.recorded_type})
        notes.append(f"jobs that name no GPU type count as recorded on the most frequent, {cluster.recorded_on}")
    seen = [*_log_lines(log), *_nodes_lines(nodes_path, nodes, cluster)]
    try:
        fitted, audit = fit(jobs, cluster, f"{name} on its cluster")
    except DataError as error:
        raise DataError("\n".join([*seen, f"{error}. {_differences(jobs, cluster)}"])) from None
    if len(fitted) < FEWEST_JOBS:
        large = sum(n for why, n in audit.left_out.items() if "larger than" in why or "VC" in why)
        remedy = (
            f"check the list of nodes: {_differences(jobs, cluster)}"
            if large > len(fitted) / 2
            else "give a longer log"
        )
        few = f"{log.path}: {len(fitted):,} jobs fit the cluster, at least {FEWEST_JOBS:,} are needed to train and to evaluate"
        raise DataError("\n".join([*seen, f"{few}; {remedy} (left out: {_counts(audit.left_out)})"]))
    end = fitted.iloc[int(0.9 * len(fitted)) :]
    seen += [
        f"on this cluster: {len(fitted):,} jobs; left out: {_counts(audit.left_out)}",
        f"  offered load: {offered_load(fitted, cluster.gpus):.2f}; of the last tenth, which is measured: "
        f"{offered_load(end, cluster.gpus):.2f} ({len(end):,} jobs in {_days(end):,.1f} days)",
    ]
    few = _too_few_nodes(in_slots(served[served["resource"] == slots], cluster), cluster)
    defects = [*few, *log.assumed, *_too_short(fitted, log.clean)]
    notes = [*few, *log.assumed, *notes, *_lacking(jobs, fitted), *_too_short(fitted, log.clean)]
    if len(fitted) < FEWEST_LEARNED:
        notes.append(
            f"{len(fitted):,} jobs leave one validation window, so nothing that an agent learns is kept; from "
            f"{FEWEST_LEARNED:,} jobs on there are two"
        )
    seen += ["to know:", *(f"  - {note}" for note in notes)] if notes else []
    estimate = "requested" if fitted["requested_s"].notna().any() else "history-rolling"
    return Examined(log, cluster, fitted, estimate, "\n".join(seen), tuple(defects), bool(few))


def _served(vcs: pd.Series, cluster: ClusterConfig) -> pd.Series:
    """Jobs whose partition has nodes in the list; a single pool takes all."""
    layout = build_layout(cluster)
    return vcs.isna() | (vcs.map(layout.serves, na_action="ignore").notna() if len(cluster.pools) > 1 else True)


def _too_few_nodes(jobs: pd.DataFrame, cluster: ClusterConfig) -> list[str]:
    """That the log used more than the nodes have."""
    used = gpus_in_use(jobs)
    if used <= TOO_FEW * cluster.gpus:
        return []
    unit = "GPUs" if cluster.slots == "gpu" else "processors"
    load = offered_load(jobs, cluster.gpus)
    return [
        f"the log used about {used:,.0f} {unit} at once, the list of nodes has {cluster.gpus:,} (offered load {load:.2f}): it "
        "cannot have run there, and the report gives no verdict; complete the list of nodes"
    ]


def _differences(jobs: pd.DataFrame, cluster: ClusterConfig) -> str:
    """The partitions that the log and the list of nodes name, and their largest job and pool, by memory only where that job is
    larger."""
    jobs = in_slots(jobs[jobs["resource"] == cluster.slots], cluster)
    pools = {v for p in cluster.pools for v in (p.vcs if p.vcs is not None else [p.name])}
    largest = max(sum(g.nodes * g.gpus for g in p.groups) for p in cluster.pools)
    largest_gb = max(sum(g.nodes * g.mem_gb for g in p.groups) for p in cluster.pools)
    memory = f"; memory: {jobs['mem_gb'].max():,.0f} GB (is it in MB?) and {largest_gb:,.0f} GB"
    return (
        f"partitions in the log: {_some(set(jobs['vc'].dropna()))}, in the list of nodes: {_some(pools)}; GPUs of the "
        f"largest job: {int(jobs['gpus'].max()):,}, of the largest pool: {largest:,}"
        f"{memory if jobs['mem_gb'].max() > largest_gb else ''}"
    )


def _log_lines(log: Log) -> list[str]:
    """What was understood of the job log."""
    jobs, audit = log.clean.jobs, log.clean.audit
    kinds = ", ".join(f"{n:,} {kind.upper()}" for kind, n in jobs["resource"].value_counts().items())
    known, times = jobs["requested_s"].dropna(), f"median run time: {jobs['run_s'].median():,.0f} s"
    if len(known):  # next to it, since a wrong unit shows there
        times += f"; median time limit: {known.median():,.0f} s (of {len(known) / len(jobs):.0%} of the jobs)"
    names = [str(c) for c in log.found.table.columns]
    unused = []
    if log.found.format == "sacct":
        unused = [n for n in names if n.strip() not in sacct.KNOWN and not n.startswith("Unnamed")]
    elif log.found.format == "csv":
        unused = [n for n in names if n not in guess_columns(names).values()]
    return [
        f"{log.path}: {log.found.name}",
        f"  jobs: {len(jobs):,} ({kinds}), submitted {log.clean.span}",
        f"  left out: {_counts(audit.left_out)}",
        f"  noted: {_counts(audit.noted)}",
        f"  states: {_states(log)}",
        f"  {times}",
        *([f"  columns not used: {', '.join(unused)}"] if unused else []),
    ]


def _states(log: Log) -> str:
    """The meaning given to each state of the log; unknown ones are named."""
    table, known = log.found.table, {}
    if log.found.format == "sacct":
        state = slurm.state(table["State"].astype(str)).str.upper()
        known = dict.fromkeys(slurm.WAITING, "not started") | dict.fromkeys(slurm.RUNNING, "not ended") | sacct.STATUS
    elif log.found.format == "csv" and "status" in (columns := guess_columns(list(map(str, table.columns)))):
        state = slurm.state(table[columns["status"]].dropna().astype(str))
        known = yaml.safe_load(log.text)["columns"]["status"]["map"]
    else:
        return ", ".join(f"{n:,} {status}" for status, n in log.clean.jobs["status"].value_counts().items())
    meaning = {name: (n, known.get(name, "unknown")) for name, n in state.value_counts().items()}
    text = ", ".join(f"{name} → {status}" for name, (_, status) in meaning.items() if status != "unknown")
    unknown = [f"{name} ({n:,})" for name, (n, status) in meaning.items() if status == "unknown"]
    return (text or "none known") + (f"; NOT KNOWN: {', '.join(unknown)}" if unknown else "")


def _nodes_lines(path: Path, nodes: NodeList, cluster: ClusterConfig) -> list[str]:
    """What was understood of the list of nodes."""
    count, unit = len(nodes.table), "GPU" if cluster.slots == "gpu" else "processor"
    lines = [
        f"{path}: {nodes.source}, {count:,} node{'s' * (count != 1)}, {cluster.gpus:,} {unit}{'s' * (cluster.gpus != 1)}"
    ]
    for pool in cluster.pools:
        groups = [f"{g.nodes:,} × {g.gpus} {g.gpu_type} ({g.cpus:g} CPUs, {g.mem_gb:,.4g} GB)" for g in pool.groups]
        lines.append(f"  pool {pool.name}: {', '.join(groups)}")
    return lines + ([f"  columns not used: {', '.join(nodes.unused)}"] if nodes.unused else [])


def _lacking(jobs: pd.DataFrame, fitted: pd.DataFrame) -> list[str]:
    """What the log lacks, and what that costs the analysis."""
    unrecorded, limits = fitted["wait_s"].isna().mean(), fitted["requested_s"].notna().mean()
    known = fitted[fitted["requested_s"].notna()]
    over, cpu = float((known["run_s"] > known["requested_s"]).mean()), jobs["resource"] == "cpu"
    without_users, has_vcs = fitted["user"].isna().all(), fitted["vc"].notna().any()
    notes = [
        (
            unrecorded == 1,
            "no recorded waits (no starts): the current rule can only be simulated, not compared with what happened",
        ),
        (
            0.01 < unrecorded < 1,
            f"{unrecorded:.0%} of the jobs have no recorded wait; only the others are compared with the simulation",
        ),
        (
            limits == 0,
            "no time limits: all schedulers are given run times predicted from a user's earlier jobs (history-rolling)",
        ),
        (0 < limits < 0.9, f"{1 - limits:.0%} of the jobs have no time limit: theirs is predicted from earlier jobs"),
        (
            over > 0.5,
            f"{over:.0%} of the jobs with a time limit ran longer than it: is it in another unit? Write "
            "`requested_s: {column: NAME, unit: min}` (or h) in the trace's file",
        ),
        (without_users and has_vcs, "no users: predictions, fair shares and groups use virtual clusters"),
        (without_users and not has_vcs, "no users and no partitions: no fair shares, groups or predictions by user"),
        (jobs["resource"].nunique() > 1, f"{cpu.sum():,} jobs without GPUs are not simulated, nor the CPUs they hold"),
    ]
    return [note for applies, note in notes if applies]


def _too_short(fitted: pd.DataFrame, clean: CleanTrace) -> list[str]:
    """Whether the log's last tenth has too few days for a verdict, and which length of log would do."""
    at = pd.Timestamp(clean.meta.t0).tz_convert(clean.meta.time_zone) + pd.to_timedelta(fitted["submit_s"], unit="s")
    days = at.iloc[int(0.9 * len(fitted)) :].dt.date.nunique()
    if days >= FEWEST:
        return []
    needed = days_needed(_days(fitted), days)
    return [f"the last tenth has arrivals on {days} days; a verdict needs {FEWEST}, a log of about {needed:,} days"]


def _days(jobs: pd.DataFrame) -> float:
    return float(jobs["submit_s"].iloc[-1] - jobs["submit_s"].iloc[0]) / 86_400


def _counts(of: Any) -> str:
    """`12 of this; 3 of that`, or none."""
    return "; ".join(f"{n:,} {what}" for what, n in of.items()) or "none"


def _some(names: set[str]) -> str:
    """The first five of some names."""
    return ", ".join(sorted(names)[:5]) + (", …" if len(names) > 5 else "")
