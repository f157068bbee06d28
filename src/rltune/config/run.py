"""The configuration of a whole run: ``config/default.yaml`` and its like."""

from __future__ import annotations

import re

from pydantic import Field, field_validator, model_validator

from rltune.config.base import Block
from rltune.config.cells import BLOCKINGS, POLICIES, Blocking, Cell, Experiment, Policy, Workload
from rltune.config.preset import BUILT_IN, Preset
from rltune.errors import ConfigError

ESTIMATE = re.compile(r"exact|lognormal-(\d+(?:\.\d+)?)")


class SplitConfig(Block):
    """Chronological split (paper §3.1.1): test rows are read only by the evaluation."""

    train: float = Field(0.9, gt=0, lt=1)
    """Share of the jobs, from the start, for training and validation together; the rest is the test part."""
    validation: float = Field(0.1, gt=0, lt=1)
    """Share of that first part, at its end, for choosing the checkpoint."""


class LookaheadConfig(Block):
    """The placement model: the chosen job's nodes, jointly with which of the next jobs can start now."""

    jobs: int = Field(8, ge=2, le=16)
    """K: the chosen job and the K − 1 next of the ranking (paper §5.7: 8–16)."""
    slots: int = Field(1, ge=1, le=1)
    """T: time slots looked at; the present is slot 1, and so far the only one."""
    rank_decay: float = Field(0.8, gt=0, le=1)
    """Weight of starting the next-ranked job relative to the one before."""
    whole_node: float = Field(0.01, ge=0)
    """Worth of leaving a wholly free node of the largest size untouched, in starts of the first of the next jobs."""
    tightness: float = Field(0.01, ge=0)
    """Cost of one GPU left free on the node of the chosen job's remainder, in the same units."""
    time_limit_s: float = Field(5.0, gt=0)
    """Safety net for one solve; its use is counted, and a run that used it is not reproducible."""


class EvaluationConfig(Block):
    """How trained agents are judged on the test part."""

    sequence_jobs: list[int] = Field([256, 1024], min_length=1)
    """Lengths of the disjoint test windows, each from an idle cluster (paper §4.1, §5.2)."""
    max_windows: int | None = Field(None, ge=1)
    """At most this many windows of each length, evenly spread; null: all that fit."""
    baseline_policies: list[Policy] = list(POLICIES)
    """Strong baselines: each of these …"""
    baseline_blockings: list[Blocking] = list(BLOCKINGS)
    """… under each of these, with best_fit."""
    bootstrap: int = Field(5000, ge=200)
    """Resamples of a bootstrap interval."""
    confidence: float = Field(0.95, gt=0.5, lt=1)
    """Level of an interval."""
    seed: int = Field(1, ge=0)
    """Seed of the resampling and of run-time estimates."""


class RunConfig(Block):
    """One run of the workflow."""

    title: str
    """Heading of the report."""
    description: str = ""
    """One paragraph for the report's first page."""
    results: str = "results"
    """Folder of everything the run makes, relative to the project's root."""
    cache: str = ".cache/traces"
    """Folder of raw traces, relative to the project's root."""
    workloads: list[Workload] = []
    """Traces on clusters to prepare and characterise besides those the experiments name."""
    experiments: list[Experiment] = Field(min_length=1)
    """The matrix."""
    split: SplitConfig = SplitConfig()
    """Training, validation and test parts."""
    lookahead: LookaheadConfig = LookaheadConfig()
    """MILP placement."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Judging."""
    presets: dict[str, Preset] = {}
    """Presets of your own, or the built-in ones (paper, quick) redefined."""

    @field_validator("results", "cache")
    @classmethod
    def _stays_inside(cls, value: str) -> str:
        if not value or value.startswith(("/", "~")) or ".." in value.split("/"):
            raise ValueError(f"found {value!r}, expected a folder below the project's root, such as results/mine")
        return value

    @model_validator(mode="after")
    def _names_are_known(self) -> RunConfig:
        presets = {**BUILT_IN, **self.presets}
        for i, experiment in enumerate(self.experiments):
            for name in experiment.preset:
                if name not in presets:
                    raise ValueError(
                        f"experiments[{i}].preset: found {name!r}, expected one of {', '.join(presets)}"
                    )
            for name in experiment.estimate:
                if not ESTIMATE.fullmatch(name):
                    raise ValueError(
                        f"experiments[{i}].estimate: found {name!r}, expected exact or lognormal-SIGMA "
                        "(lognormal-1, lognormal-0.5, …)"
                    )
        return self

    def cells(self) -> list[Cell]:
        """Every cell of the matrix once, in the order of the experiments."""
        return list(dict.fromkeys(c for e in self.experiments for c in e.cells()))

    def cell(self, name: str) -> Cell:
        """The cell of this name; an empty name is the first one.

        Raises ConfigError when the matrix has none of that name.
        """
        cells = self.cells()
        if not name:
            return cells[0]
        for cell in cells:
            if cell.name == name:
                return cell
        raise ConfigError(f"cell: found {name!r}; the run has: {', '.join(c.name for c in cells)}")

    def all_workloads(self) -> list[Workload]:
        """Every trace × cluster once."""
        named = [w for e in self.experiments for w in e.workloads] + self.workloads
        return [Workload(trace=t, cluster=c) for t, c in dict.fromkeys((w.trace, w.cluster) for w in named)]

    def traces(self) -> list[str]:
        """Names of the traces, each once."""
        return list(dict.fromkeys(w.trace for w in self.all_workloads()))

    def preset(self, name: str) -> Preset:
        """The preset of this name."""
        return {**BUILT_IN, **self.presets}[name]


def parse_estimate(name: str) -> tuple[str, float]:
    """(kind, sigma) of an estimate's name: ``lognormal-1`` → ("lognormal", 1.0), ``exact`` → ("exact", 0.0)."""
    match = ESTIMATE.fullmatch(name)
    if match is None:
        raise ValueError(f"found {name!r}, expected exact or lognormal-SIGMA")
    return ("exact", 0.0) if match[1] is None else ("lognormal", float(match[1]))
