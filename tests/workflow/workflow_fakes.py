"""A run's configuration, jobs and events made by hand, for tests that start no Snakemake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rltune.config import Workspace
from rltune.pipeline.workflow.jobs import Job, Record


def cell_job(rule: str, workspace: Workspace, at: int = 0) -> Job:
    """A job of the run's cell at this place."""
    name = workspace.config.cells()[at].name
    return Job(rule, {"cell": name}, (f"results/{rule}-{name}.csv",), (f"results/smoke/notebooks/{rule}-{name}.ipynb",))


def clean_job(trace: str) -> Job:
    """The cleaning of a trace."""
    log = f"results/smoke/notebooks/clean-{trace}.ipynb"
    return Job("clean", {"trace": trace}, (f"results/{trace}.parquet",), (log,))


def told(job: Job, number: int) -> dict[str, Any]:
    """The event of a job that starts."""
    return {
        "event": "job",
        "id": number,
        "rule": job.rule,
        "wildcards": dict(job.wildcards),
        "output": list(job.output),
        "log": list(job.log),
        "forced": job.forced,
    }


def record_of(path: Path, *events: dict[str, Any], cores: int = 2) -> Record:
    """A record whose plan is all jobs that the events name, and whose events come a second apart from 1,000 s on."""
    jobs = {
        e["output"][0]: {k: e[k] for k in ("rule", "wildcards", "output", "log", "forced")}
        for e in events
        if e["event"] == "job"
    }
    first = {"event": "planned", "cores": cores, "jobs": list(jobs.values())}
    lines = [{"time": 1000.0 + i, **event} for i, event in enumerate([first, *events])]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Record(path)
