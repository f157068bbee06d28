"""A user's own cluster: from a job log and a list of nodes to the three files that a run of it needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import yaml
from pydantic import ValidationError

from rltune.cluster.fit import fit
from rltune.cluster.nodes import as_cluster, read_nodes
from rltune.config.cluster import ClusterConfig
from rltune.config.load import read_block
from rltune.config.run import RunConfig
from rltune.config.trace import TraceConfig
from rltune.errors import ConfigError, DataError
from rltune.files import write_text
from rltune.pipeline.own_today import MEANT, Today
from rltune.pipeline.own_told import counts, fit_lines, lacking, log_lines, nodes_lines, some, too_short
from rltune.traces.clean import CleanTrace, clean_trace
from rltune.traces.guess import guess_columns, quoted
from rltune.traces.inspect import suggested
from rltune.traces.sniff import Found

FEWEST_JOBS = 3000
"""Jobs on the cluster, at least: validation has a hundredth part less than a tenth of them, and a window takes 256."""
MARK = "# Written by `rltune init`"
"""First words of every file it writes, by which it knows its own again."""
NAME = re.compile(r"[A-Za-z0-9.]+([-_][A-Za-z0-9.]+)*")


@dataclass(frozen=True)
class Log:
    """A job log that can be read."""

    path: Path
    found: Found
    text: str
    """The lines of its config/traces/NAME.yaml."""
    clean: CleanTrace
    told: list[str]
    """What had to be assumed to read it."""


@dataclass(frozen=True)
class Examined:
    """A job log on a list of nodes."""

    name: str
    log: Log
    nodes_path: Path
    cluster: ClusterConfig
    fitted: pd.DataFrame
    """The jobs that the cluster can hold (rltune.cluster.fit.fit)."""
    estimate: str
    """What schedulers are told of run times."""
    understood: str
    """What was understood of the files, line by line."""
    voids: tuple[str, ...]
    """What of the log leaves the report without a verdict, or with a wrong one."""


@dataclass(frozen=True)
class Own:
    """What is to be written."""

    name: str
    texts: dict[str, str]
    """Path below the project's root → text."""


def check_name(name: str) -> str:
    """The name, if it can be one. Raises ConfigError."""
    if not NAME.fullmatch(name):
        raise ConfigError(f"name: found {name!r}; allowed: letters, digits, dots, and single - or _ between them")
    return name


def check_free(root: Path, name: str, force: bool) -> None:
    """Refuse a name whose files are there; with ``force`` only where `rltune init` has not written them.

    Raises ConfigError.
    """
    for path in paths(name):
        if (root / path).exists():
            own = (root / path).is_file() and (root / path).read_text(encoding="utf-8").startswith(MARK)
            if not own:
                raise ConfigError(f"{path}: is there, and not written by `rltune init`; choose another --name")
            if not force:
                raise ConfigError(f"{path}: is there already; choose another --name, or --force to write it anew")


def paths(name: str) -> tuple[str, str, str]:
    """The three files of a name, below the project's root."""
    return f"config/traces/{name}.yaml", f"config/clusters/{name}.yaml", f"config/{name}.yaml"


def read_log(path: Path, zone: str | None, looked: tuple[Found, str] | None = None) -> Log:
    """A job log, cleaned. ``zone``: of its wall clock; None: what the file says, else UTC. ``looked``: what
    :func:`rltune.traces.inspect.suggested` says of it, where it has been asked.

    Raises DataError or ConfigError where it cannot be read, or lacks what nothing can be said without.
    """
    found, text = looked or suggested(path)
    told = []
    if zone is not None:
        text = re.sub(r"^time_zone: .*$", f"time_zone: {zone}", text, count=1, flags=re.MULTILINE)
    if found.format == "csv":
        text, told = _complete(found, text, path)
    try:
        trace = TraceConfig(**yaml.safe_load(text))
    except ValidationError as error:
        raise ConfigError(f"{path}: {_first(error)}") from None
    source = path.resolve().parent if trace.format == "alibaba2020" else path
    return Log(path, found, text, clean_trace(path.name, trace, source), told)


def _complete(found: Found, text: str, path: Path) -> tuple[str, list[str]]:
    """The map of a CSV without submissions, with the starts in their place; what that costs."""
    columns = guess_columns(list(map(str, found.table.columns)))
    has_run = "run_s" in columns or {"start_s", "end_s"} <= columns.keys()
    has_time = "submit_s" in columns or "start_s" in columns
    lacks = [what for what, there in (("submission", has_time), ("run time", has_run)) if not there]
    if "gpus" not in columns and "cpus" not in columns:
        lacks.append("number of GPUs or CPUs")
    if lacks:
        raise DataError(
            f"{path}: no column of {' nor of '.join(lacks)} is known by its name; found "
            f"{', '.join(map(str, found.table.columns))}. Rename columns (submit_time, start_time, end_time, gpus, "
            "user, …), or write config/traces/NAME.yaml by hand (docs/data-dictionary.md, csv)"
        )
    told = []
    if "submit_s" not in columns:
        text = text.replace(
            "columns:\n", f"columns:\n  submit_s: {quoted(columns['start_s'])}  # no submissions in the log\n", 1
        )
        told.append(
            "no submission times: starts stand in for them, so what waited in the log is smoothed away, and "
            "all waits come out too short"
        )
    if "gpus" not in columns:
        text = text.replace("columns:\n", "columns:\n  resource: {constant: cpu}\n", 1)
    return re.sub(r"^  # (submit_s|gpus): COLUMN.*\n?", "", text, flags=re.MULTILINE), told


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def examine(log: Log, nodes_path: Path, name: str) -> Examined:
    """What can be told of the log on these nodes.

    Raises DataError or ConfigError where nothing could be made of them.
    """
    nodes = read_nodes(nodes_path)
    jobs = log.clean.jobs
    slots = "gpu" if (jobs["resource"] == "gpu").any() else "cpu"
    listed = int(nodes.table["gpus"].sum())
    if slots == "cpu" and listed:
        raise DataError(
            f"{log.path}: no job asks for a GPU, and {nodes_path} lists {listed:,}. Slurm tells a job's GPUs only where "
            "slurm.conf has AccountingStorageTRES=gres/gpu (docs/own-cluster.md, 1); from a log without them nothing can "
            "be said of these nodes. To look at the processors alone, give a list of nodes without GPUs"
        )
    cluster, told = as_cluster(nodes, name, slots)
    asked = set(jobs["gpu_type"].dropna())
    types = {g.gpu_type for p in cluster.pools for g in p.groups}
    if cluster.gpu_types == "match" and not {part for kind in asked for part in kind.split("|")} <= types:
        cluster = cluster.model_copy(update={"gpu_types": "ignore"})
        told.append(
            f"the log asks for GPU types ({some(asked)}) that the nodes do not name ({some(types)}): "
            "types are ignored; write them alike and `gpu_types: match` to have them count"
        )
    seen = [*log_lines(log.path, log.found, log.text, log.clean), *nodes_lines(nodes_path, nodes, cluster)]
    try:
        fitted, audit = fit(jobs, cluster, f"{name} on its cluster")
    except DataError as error:
        raise DataError("\n".join([*seen, f"{error}. {_unlike(jobs, cluster)}"])) from None
    if len(fitted) < FEWEST_JOBS:
        large = sum(n for why, n in audit.left_out.items() if "larger than" in why or "VC" in why)
        mend = f"check the list of nodes: {_unlike(jobs, cluster)}" if large > len(fitted) / 2 else "give a longer log"
        raise DataError(
            "\n".join(
                [
                    *seen,
                    (
                        f"{log.path}: {len(fitted):,} jobs fit the cluster, at least {FEWEST_JOBS:,} are needed to train and to judge; "
                        f"{mend} (left out: {counts(audit.left_out)})"
                    ),
                ]
            )
        )
    limits = float(fitted["requested_s"].notna().mean())
    understood = [*seen, *fit_lines(fitted, audit.left_out, cluster)]
    short = too_short(fitted, log.clean.meta)
    notes = [*log.told, *told, *lacking(jobs, fitted, limits), *([short] if short else [])]
    return Examined(
        name,
        log,
        nodes_path,
        cluster,
        fitted,
        "requested" if limits > 0 else "history-rolling",
        "\n".join([*understood, *(["to know:"] if notes else []), *(f"  - {n}" for n in notes)]),
        (*log.told, *([short] if short else [])),
    )


def make(seen: Examined, today: Today) -> Own:
    """The three files. Raises ConfigError where the configuration's model refuses one."""
    texts = dict(
        zip(
            paths(seen.name),
            (
                _trace_text(seen.log, seen.name),
                _cluster_text(seen.cluster, seen.nodes_path),
                _run_text(seen.name, seen.estimate, today, len(seen.fitted)),
            ),
            strict=True,
        )
    )
    try:
        for model, text in zip((TraceConfig, ClusterConfig, RunConfig), texts.values(), strict=True):
            model.model_validate(yaml.safe_load(text))
    except ValidationError as error:
        raise ConfigError(f"{seen.name}: {_first(error)}") from None
    return Own(seen.name, texts)


def _unlike(jobs: pd.DataFrame, cluster: ClusterConfig) -> str:
    """The partitions that the log and the list of nodes name, and their largest job and pool, side by side."""
    pools = {v for p in cluster.pools for v in (p.vcs if p.vcs is not None else [p.name])}
    largest = max(sum(g.nodes * g.gpus for g in p.groups) for p in cluster.pools)
    return (
        f"partitions in the log: {some(set(jobs['vc'].dropna()))}, in the list of nodes: {some(pools)}; GPUs of the "
        f"largest job: {int(jobs['gpus'].max()):,}, of the largest pool: {largest:,}"
    )


def write(root: Path, own: Own, force: bool) -> list[Path]:
    """Write the files, none of which is there (with ``force``: none that others wrote), and read them back."""
    check_free(root, own.name, force)
    for path, text in own.texts.items():
        write_text(root / path, text)
    models = (TraceConfig, ClusterConfig, RunConfig)
    for path, model in zip(own.texts, models, strict=True):
        read_block(root / path, model, root)
    return [root / path for path in own.texts]


def _trace_text(log: Log, name: str) -> str:
    body = log.text.replace("title: My cluster", f"title: {quoted(name)}", 1)
    return (
        f"{MARK}: the job log. `rltune trace inspect` looks at it, docs/data-dictionary.md has every column.\n{body}\n"
    )


def _cluster_text(cluster: ClusterConfig, path: Path) -> str:
    held = cluster.model_dump(exclude_defaults=True)
    body = yaml.safe_dump(held, sort_keys=False, allow_unicode=True, width=120)
    return f"{MARK} from {path.name}. Pools are partitions with nodes of their own.\n{body}"


def _run_text(name: str, estimate: str, today: Today, jobs: int) -> str:
    length = 256 if jobs >= 6000 else 64
    return f"""{MARK}: today's order against others on the last tenth of the log. docs/own-cluster.md explains it.
title: {quoted(f"{name}, what if")}
description: >-
  Today's order of the queue against simple rules, predictions from history and RLTune, on the log's last tenth.
results: {quoted(f"results/{name}")}

experiments:
  - name: the agent
    workloads: [{{trace: {quoted(name)}, cluster: {quoted(name)}}}]
    policy: [saf]
    backfill: [easy]
    placement: [best_fit]
    features: [rich]
    estimate: [{estimate}]
    preset: [tuned]
    seed: [1]  # more seeds, wider and more honest intervals: [1, 2, 3]

whatif:
  # How the cluster is scheduled today, {today.why}.
  # backfill: {MEANT}
  current: {{policy: {today.rule.policy}, backfill: {today.rule.backfill}}}

evaluation:
  sequence_jobs: [{length}]
"""
