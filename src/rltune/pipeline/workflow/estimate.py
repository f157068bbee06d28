"""What a run will cost before it starts: time, downloads, disk; and the question whether to go on."""

from __future__ import annotations

import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rltune.config import Workspace
from rltune.pipeline.workflow.costs import TABLE, Costs
from rltune.pipeline.workflow.jobs import Job
from rltune.pipeline.workflow.live import cells_text
from rltune.traces.fetch.progress import size_text, time_text
from rltune.traces.listing import to_download

BUSY = 0.5
"""Processes more than cores, on average over a minute and with the run's own, from which on the machine is not idle."""
ASK_S, ASK_BYTES = 3600.0, 100e6
"""A run that takes longer than this, or downloads more, asks first."""


@dataclass(frozen=True)
class Estimate:
    """What is to do, and what it takes."""

    seconds: float
    """Until the report is there."""
    bytes: float
    """To download, as far as sizes are known."""
    text: str
    """All of it in words."""

    @property
    def large(self) -> bool:
        """Whether to ask first."""
        return self.seconds > ASK_S or self.bytes > ASK_BYTES


def estimate(workspace: Workspace, jobs: Sequence[Job], cores: int, scheduler: str = "") -> Estimate:
    """Time, downloads and disk of these jobs on so many cores, of this machine or of a scheduler's."""
    costs = Costs(workspace)
    seconds = costs.time(jobs, cores)
    lines = [f"{workspace.config_path}: {cells_text(workspace, list(jobs))}, {len(jobs)} stages to do"]
    lines += _work(workspace, jobs, costs)
    alone = sum(costs.left(job) for job in jobs)
    where, busy = f"{cores} cores of {scheduler}, its queue not counted", ""
    if not scheduler:
        tried = all(costs.measured(job) for job in jobs)  # then with whatever else ran here
        where, busy = (f"{cores} cores", "") if tried else (idle_text(cores), busy_text(cores))
    lines.append(f"time: about {time_text(seconds)} on {where} ({time_text(alone)} on one){busy}")
    downloads, size = _downloads(workspace, jobs)
    free = shutil.disk_usage(_existing(workspace)).free
    need = costs.disk_mb(jobs) * 1e6 + size
    lines += downloads
    short = "; THIS IS NOT ENOUGH" if free < need else ""
    lines.append(f"disk: about {size_text(need)} in all; {size_text(free)} are free in {workspace.base}{short}")
    return Estimate(seconds, size, "\n".join(lines))


def idle_text(cores: int) -> str:
    """`2 idle cores`, for which untried stages are estimated."""
    return f"{cores} idle core{'s' if cores != 1 else ''}"


def busy_text(cores: int) -> str:
    """A remark that this machine is not idle; "" where it is."""
    there, load = os.cpu_count() or 1, os.getloadavg()[0]
    return (
        f"; longer here and now, where the load is {load:.1f} on {there} cores" if load + cores > there + BUSY else ""
    )


def agreed(found: Estimate, yes: bool) -> bool:
    """Show the estimate; where the run is large, ask. Without a terminal only ``yes`` starts a large run."""
    print(found.text, flush=True)
    if yes or not found.large:
        return True
    if not sys.stdin.isatty():
        print("this is a long run, so it asks first; start it with --yes (make: YES=1)", file=sys.stderr)
        return False
    try:
        return input("Go on? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _work(workspace: Workspace, jobs: Sequence[Job], costs: Costs) -> list[str]:
    """A line a preset, and one for the stages that are no training."""
    presets: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        cell = job.cell(workspace.config)
        presets[cell.preset if cell is not None and job.rule == "train" else ""].append(job)
    others = presets.pop("", [])
    rows = [(f"train {len(trained)} × {name}", trained) for name, trained in sorted(presets.items())]
    if others:
        rows.append((f"{len(others)} other stages", others))
    width = max((len(what) for what, _ in rows), default=0)
    return [
        f"  {what:<{width}}  {time_text(sum(map(costs.left, some))):>12} of one core, {_source(some, costs)}"
        for what, some in rows
    ]


def _source(jobs: Sequence[Job], costs: Costs) -> str:
    measured = sum(costs.measured(job) > 0 for job in jobs)
    if measured == len(jobs):
        return "as measured in this run"
    return f"{measured} as measured in this run, others by {TABLE}" if measured else f"by {TABLE}"


def _downloads(workspace: Workspace, jobs: Sequence[Job]) -> tuple[list[str], float]:
    """A line that names what is still to download, and its bytes as far as known."""
    told, size = [], 0.0
    for name in sorted({job.wildcards["trace"] for job in jobs if job.rule == "clean"}):
        files = to_download(name, workspace.trace(name), workspace.cache)
        known = [item for _, item in files if item is not None]
        size += sum(known)
        if files:
            unknown = len(files) - len(known)
            words = [size_text(sum(known))] if known else []
            words += [f"{unknown} file{'s' if unknown > 1 else ''} of unknown size"] if unknown else []
            told.append(f"{name} {' and '.join(words)}")
    return ([f"downloads: {', '.join(told)}"] if told else []), size


def _existing(workspace: Workspace) -> str:
    """The folder of results, or what there is of the way to it."""
    return str(next(path for path in (workspace.base, *workspace.base.parents) if path.exists()))
