"""Jobs of the workflow as Snakemake tells them, and the record of a run: a file of events, a line each."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rltune.config import Cell, Workspace
from rltune.config.cells import AXES
from rltune.config.run import RunConfig


@dataclass(frozen=True)
class Job:
    """One job: a rule with its wildcards. Files are relative to the workspace's base."""

    rule: str
    wildcards: Mapping[str, str]
    output: tuple[str, ...]
    log: tuple[str, ...] = ()
    forced: bool = False
    benchmark: str | None = None
    """Where Snakemake writes how long it took, waiting in a scheduler's queue not counted."""
    reason: str = field(default="", compare=False)
    """Why it has to be done, in Snakemake's words."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Job:
        """From the plugin's event, or from :func:`dataclasses.asdict`."""
        return cls(
            told["rule"],
            told["wildcards"],
            tuple(told["output"]),
            tuple(told["log"]),
            told["forced"],
            told.get("benchmark"),
            told.get("reason", ""),
        )

    @property
    def key(self) -> str:
        """Its first file, which no other job makes."""
        return self.output[0]

    def cell(self, config: RunConfig) -> Cell | None:
        """The cell it is of, if it is of one."""
        return config.cell(self.wildcards["cell"]) if self.wildcards.get("cell") else None

    def axes(self, config: RunConfig) -> dict[str, str]:
        """What tells it from the rule's other jobs: a cell's axes and id, or the wildcards."""
        cell = self.cell(config)
        if cell is None:
            return dict(self.wildcards)
        return {**{k: str(v) for k, v in asdict(cell).items()}, "cell": cell.hash}

    def label(self, config: RunConfig) -> str:
        """The stage and what it works on, in words short enough for a line."""
        return label(config, self.rule, self.wildcards)


def label(config: RunConfig, stage: str, wildcards: Mapping[str, str]) -> str:
    """The stage, and its wildcards; of a cell trace, policy and the axes in which it differs from the run's others."""
    if not wildcards.get("cell"):
        return " ".join([stage, *filter(None, wildcards.values())])
    cell = config.cell(wildcards["cell"])
    told = {"trace", "policy"} | {a for a in AXES if len({getattr(other, a) for other in config.cells()}) > 1}
    return " ".join([stage, *(str(getattr(cell, axis)) for axis in AXES if axis in told)])


def runs_folder(workspace: Workspace) -> Path:
    """Where each run leaves its record and Snakemake's whole output."""
    return workspace.results / "logs" / "runs"


@dataclass
class Record:
    """What a run has done so far, as the events in its file tell; :meth:`read` takes in what is new."""

    path: Path
    began: float = 0.0
    """When it started, in seconds since 1970, as all times here."""
    process: int = 0
    """Snakemake's process id."""
    cores: int = 1
    """Cores that it may use at once, here or at a scheduler."""
    scheduler: str = ""
    """Profile of the scheduler that its jobs are sent to; none: they run on this machine."""
    host: str = ""
    """Machine on which its Snakemake runs."""
    planned: dict[str, Job] = field(default_factory=dict)
    """Jobs that were to do, by key."""
    running: dict[str, float] = field(default_factory=dict)
    """When each running job started, or was sent to the scheduler."""
    finished: dict[str, float] = field(default_factory=dict)
    """Seconds that each finished job took."""
    failed: dict[str, float] = field(default_factory=dict)
    """When each failed job started."""
    scheduler_logs: dict[str, list[str]] = field(default_factory=dict)
    """What a scheduler left of each failed job."""
    ended: float | None = None
    """When it ended; None while it is at work, and for good if it was killed."""
    status: int | None = None
    last: float = 0.0
    """When something was last heard of it."""

    def __post_init__(self) -> None:
        self._read = 0
        self._ids: dict[int, str] = {}

    @property
    def log(self) -> Path:
        """All that Snakemake and the stages said."""
        return self.path.with_suffix(".log")

    @property
    def left(self) -> list[Job]:
        """Jobs that are not finished, those that run among them."""
        return [job for key, job in self.planned.items() if key not in self.finished]

    def add(self, event: str, **facts: Any) -> None:
        """Write an event down."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"time": time.time(), "event": event, **facts}) + "\n")

    def read(self) -> list[tuple[str, Job]]:
        """Take in what was written since the last time; jobs that since then "finished" or "failed", or are tried
        "again"."""
        news = []
        with open(self.path, encoding="utf-8") as file:
            file.seek(self._read)
            for line in iter(file.readline, ""):
                if not line.endswith("\n"):
                    break  # still being written
                self._read = file.tell()
                if told := self._take(json.loads(line)):
                    news.append(told)
        return news

    def _take(self, told: dict[str, Any]) -> tuple[str, Job] | None:
        self.last = told["time"]
        match told["event"]:
            case "planned":
                self.began, self.cores, self.scheduler = told["time"], told["cores"], told.get("scheduler", "")
                self.planned = {job.key: job for job in map(Job.of, told["jobs"])}
            case "process":
                self.process, self.host = told["id"], told.get("host", "")
            case "ended":
                self.ended, self.status = told["time"], told["status"]
            case "job" if told["output"]:  # the target `all` makes nothing
                job = Job.of(told)
                self._ids[told["id"]] = job.key
                self.planned.setdefault(job.key, job)
                self.running[job.key] = told["time"]
                if self.failed.pop(job.key, None) is not None:
                    return "again", job
            case "finished" | "failed" as event if told["id"] in self._ids:
                key = self._ids[told["id"]]
                if (started := self.running.pop(key, None)) is not None:
                    if event == "finished":
                        self.finished[key] = told["time"] - started
                    else:
                        self.failed[key] = started
                        self.scheduler_logs[key] = told.get("logs", [])
                    return event, self.planned[key]
        return None


def last_record(workspace: Workspace) -> Record | None:
    """The record of the run that started last; None where there was none."""
    paths = sorted(runs_folder(workspace).glob("*.jsonl"))
    if not paths:
        return None
    record = Record(paths[-1])
    record.read()
    return record
