"""How long jobs take: as measured in this run, else as ``workflow/costs.yaml`` has it."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from rltune.config import Workspace
from rltune.config.preset import BUILT_IN, Preset
from rltune.errors import ConfigError
from rltune.pipeline.workflow.jobs import Job

TABLE = Path("workflow") / "costs.yaml"
SCALE = "paper"
"""Preset whose cost is scaled for those that the table does not have."""


class Costs:
    """Seconds of one core that jobs take.

    What Snakemake's benchmark files and :meth:`learn` tell of this run comes first: the mean of jobs of the same
    stage, preset and trace, then of the same stage and preset; then the table.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace, self.config = workspace, workspace.config
        self.table: dict[str, Any] = yaml.safe_load((workspace.root / TABLE).read_text(encoding="utf-8"))
        self._seconds: dict[tuple[str, ...], list[float]] = defaultdict(list)
        self._read(workspace.results / "benchmarks")

    def learn(self, job: Job, seconds: float) -> None:
        """Take in how long a job took."""
        for kind in self._kinds(job):
            self._seconds[kind].append(seconds)

    def took(self, job: Job, seconds: float) -> float:
        """How long a finished job took: as its benchmark file has it, which no queue lengthens, or ``seconds``."""
        measured = _benchmark(self.workspace.base / job.benchmark) if job.benchmark else None
        return seconds if measured is None else measured

    def minutes(self, job: Job) -> int:
        """Time limit that a scheduler is asked for."""
        asked = self.table["ask"]
        return max(asked["least_minutes"], round(asked["time_factor"] * self.seconds(job) / 60))

    def memory_mb(self, job: Job) -> int:
        """Memory that a scheduler is asked for, MB."""
        asked = self.table["ask"]
        memory = asked["memory_mb"].get(job.rule, asked["memory_mb"]["other"])
        return memory * (asked["full_trace_memory"] if self._trace(job) in self._full else 1)

    def seconds(self, job: Job) -> float:
        """What a whole job takes."""
        for kind in self._kinds(job):
            if kind in self._seconds:
                return statistics.fmean(self._seconds[kind])
        return self._tabled(job)

    def measured(self, job: Job) -> int:
        """How many jobs of this run that is the mean of; 0: it is the table's."""
        return next((len(self._seconds[kind]) for kind in self._kinds(job) if kind in self._seconds), 0)

    def left(self, job: Job, running_s: float = 0.0) -> float:
        """What is left of a job that has run for so long: of a training the epochs that are not done; one that should
        have ended is expected to run half as long again."""
        whole = self.seconds(job)
        if (done := self.epochs(job)) is not None and done[0]:
            return whole * (1 - done[0] / done[1])
        return whole - running_s if running_s < whole else running_s / 2

    def epochs(self, job: Job) -> tuple[int, int] | None:
        """(epochs done, epochs in all) of a training that was begun; None for other jobs."""
        cell = job.cell(self.config)
        if cell is None or job.rule != "train":
            return None
        path, epochs = self.workspace.training(cell) / "progress.csv", self.config.preset(cell.preset).epochs
        if not (path.parent / "checkpoint.npz").is_file() or not path.is_file():  # an ended training has no checkpoint
            return None
        rows = path.read_text(encoding="utf-8").splitlines()[1:]
        return min(sum(not row.startswith("0,") for row in rows), epochs), epochs

    def time(self, jobs: Sequence[Job], cores: int, running_s: Mapping[str, float] | None = None) -> float:
        """Seconds until all of these are done on so many cores: their sum over the cores, or the longest of each stage
        one after the other, whichever is longer. A job that is to be alone has all of the cores."""
        began = running_s or {}
        longest: dict[str, float] = defaultdict(float)
        total = 0.0
        for job in jobs:
            seconds = self.left(job, began.get(job.key, 0.0))
            longest[job.rule] = max(longest[job.rule], seconds)
            total += seconds * (cores if self._alone(job) else 1)
        return max(total / cores, sum(longest.values()))

    def disk_mb(self, jobs: Sequence[Job]) -> float:
        """MB that the results of these will take, without downloads."""
        table = self.table["disk_mb"]
        cells = {job.wildcards["cell"] for job in jobs if "cell" in job.wildcards}
        traces = {job.wildcards["trace"] for job in jobs if job.rule == "clean"}
        return table["cell"] * len(cells) + sum(table["full_trace" if t in self._full else "trace"] for t in traces)

    @cached_property
    def _full(self) -> set[str]:
        """Traces that are downloaded whole."""
        return {name for name in self.config.traces() if self.workspace.trace(name).downloads}

    def _kinds(self, job: Job) -> list[tuple[str, ...]]:
        """What a job is like others in, the closest likeness first."""
        cell = job.cell(self.config)
        trace, preset = (cell.trace, cell.preset) if cell else (job.wildcards.get("trace", ""), "")
        return [(job.rule, preset, trace), (job.rule, preset)]

    def _tabled(self, job: Job) -> float:
        cell = job.cell(self.config)
        if job.rule == "train" and cell is not None:
            return self._training(cell.preset)
        if job.rule == "deploy" and (asked := self.config.deployment) is not None:
            table = self.table["deploy"]
            return table["start_s"] + asked.jobs * table["simulated_s_a_job"] / asked.speed
        stages = self.table["stages_s"]
        seconds = stages.get(job.rule, stages["other"])
        return seconds * self.table["full_trace"] if self._trace(job) in self._full else seconds

    def _alone(self, job: Job) -> bool:
        """Whether nothing runs beside a job."""
        return job.rule == "deploy" and self.config.deployment is not None and self.config.deployment.alone

    def _trace(self, job: Job) -> str | None:
        """The trace that a job works on, where it is one."""
        cell = job.cell(self.config)
        return cell.trace if cell else job.wildcards.get("trace")

    def _training(self, name: str) -> float:
        """A cell's training by the table; presets that redefine a built-in one are scaled too."""
        preset, tabled = self.config.preset(name), self.table["training_s"]
        if name in tabled and preset == BUILT_IN.get(name):
            return tabled[name]
        return self.table["start_s"] + tabled[SCALE] * _size(preset) / _size(BUILT_IN[SCALE])

    def _read(self, folder: Path) -> None:
        """Learn from benchmark files: ``<rule>.tsv``, or a rule's folder with one a job."""
        for path in folder.rglob("*.tsv"):
            if (seconds := _benchmark(path)) is None:
                continue
            rule, name = (path.stem, "") if path.parent == folder else (path.parent.name, path.stem)
            if rule in ("train", "evaluate"):
                try:
                    self.config.cell(name)
                except ConfigError:
                    continue  # of a cell that the configuration had once
                wildcards = {"cell": name}
            else:
                wildcards = {"trace": name.split("__")[0]} if name else {}
            self.learn(Job(rule, wildcards, (str(path),)), seconds)


def _benchmark(path: Path) -> float | None:
    """Seconds in a benchmark file of Snakemake's; None where there is none, or it was cut off by a kill."""
    try:
        return float(path.read_text(encoding="utf-8").splitlines()[1].split("\t")[0])
    except (FileNotFoundError, IndexError, ValueError):
        return None


def _size(preset: Preset) -> int:
    return preset.epochs * preset.trajectories * preset.rollouts * preset.sequence_jobs
