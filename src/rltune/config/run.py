"""The configuration of a whole run: ``config/default.yaml`` and its like."""

import re
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from rltune.config.base import Block, EachOnce, Name, checked_by_context
from rltune.config.cells import Backfill, Cell, Experiment, OtherPlacement, TraceName, Workload
from rltune.config.deployment import CLUSTER, Deployment
from rltune.config.max_wait import MaxWait
from rltune.config.preset import BUILT_IN, Preset
from rltune.config.whatif import WhatIf
from rltune.errors import ConfigError

Overrun = Literal["double", "now"]
TRAIN_SHARE = 0.9


class LookaheadConfig(Block):
    """The placement model: it chooses a job's nodes jointly with which of the next jobs can start now."""

    jobs: int = Field(8, ge=2, le=16)
    """K: the job to place and the next K − 1 of the ranking (paper §5.7: 8–16)."""
    slots: int = Field(1, ge=1, le=8)
    """T: number of time slots in the model; slot 1 is now."""
    slot_s: float = Field(600.0, ge=1)
    """Seconds from one slot to the next; a start in slot t has weight (T + 1 − t) / T."""
    solver: Literal["glpk", "cvxpy"] = "glpk"
    """What solves the model: `glpk`, which is fast, or `cvxpy`, the readable model with HiGHS."""
    rank_decay: ClassVar[float] = 0.8
    """Weight of starting the next-ranked job relative to the one before."""
    whole_node: ClassVar[float] = 0.01
    """Gain of leaving an empty node of the largest size unused, in starts of the first of the next jobs."""
    tightness: ClassVar[float] = 0.01
    """Cost of one GPU left free on the node of the job's last chunk, in the same unit."""
    others: ClassVar[float] = 0.1
    """Weight of the next jobs' waiting relative to the job's own, where it may wait."""
    time_limit_s: ClassVar[float] = 5.0
    """Safety net for one solve; its use is counted, and a run that used it is not reproducible."""


class SimulationConfig(Block):
    """What every simulation of the run has in common, in training and in evaluation."""

    overrun: Overrun = "double"
    """When a job past its estimate is expected to end: `double`: after as long again as it has run; `now`: at once."""
    sticky_head: bool = False
    """Whether the first job of a ranking stays first until it starts; else the queue is ranked again at its pool's next
    event."""
    max_wait_h: MaxWait = {}
    """Hours after which a job goes before all others but those under an agreement, under every policy, the earlier submission
    first; by its size: most GPUs → hours, larger jobs have the hours of the largest size. The controller of a live cluster has such bounds; the paper has none."""


class EvaluationConfig(Block):
    """How trained agents are evaluated on the test part."""

    sequence_jobs: Annotated[list[Annotated[int, Field(ge=2)]], EachOnce] = Field([256, 1024], min_length=1)
    """Lengths of the disjoint test windows, each from an idle cluster (paper §4.1, §5.2)."""
    max_windows: int | None = Field(None, ge=1)
    """At most this many windows of each length, evenly spread; null: all that fit."""
    baseline_policies: Annotated[list[Annotated[str, checked_by_context("policy")]], EachOnce] = Field(
        ["fifo", "sjf", "saf", "smallest", "f1", "wfp3", "unicep", "multifactor"], min_length=1
    )
    """Heuristics to compare with: each of these policies, built in or from `plugins` …"""
    baseline_backfills: Annotated[list[Backfill], EachOnce] = Field(["none", "greedy", "easy"], min_length=1)
    """… under each of these, with best_fit; under conservative too where an agent may choose it or GPU types differ in
    speed."""
    also: Annotated[list[OtherPlacement], EachOnce] = []
    """Other placements and localities under which each agent and its base policy are also evaluated, on the same
    windows; where GPU types differ in speed, not placements that ignore it."""
    bootstrap: int = Field(5000, ge=200)
    """Resamples of a bootstrap interval."""
    seed: ClassVar[int] = 1
    """Seed of the resampling and of run-time estimates."""


class RunConfig(Block):
    """One run of the workflow."""

    title: str
    """Heading of the report."""
    description: str = ""
    """One paragraph for the report's first page."""
    results: str = "results"
    """Folder of everything the run makes: results, or a folder in it."""
    workloads: list[Workload] = []
    """Traces on clusters to prepare and characterise besides those the experiments name."""
    gpu_types: list[Workload] = []
    """Traces on clusters with `speeds` for which rules that choose a job's GPU type are compared, with the first cell's
    estimates, and RLTune where it was trained on them for jct."""
    characterise: Annotated[list[TraceName], EachOnce] = []
    """Traces to characterise without a cluster: CPU traces, for Table 2 and Figure 5."""
    experiments: list[Experiment] = Field(min_length=1)
    """What is trained and evaluated: every combination of an experiment's lists is a cell."""
    plugins: Annotated[list[Annotated[str, checked_by_context("plugin")]], EachOnce] = []
    """Python files with your own policies or placements; relative to the project's root."""
    train_share: float = Field(TRAIN_SHARE, gt=0, lt=1)
    """Share of the jobs, from the start, for training and validation together (the last tenth of it); the rest is the test
    part, which only the evaluation reads (paper §3.1.1)."""
    lookahead: LookaheadConfig = LookaheadConfig()
    """MILP placement."""
    simulation: SimulationConfig = SimulationConfig()
    """Rules of the simulator that every policy shares."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """How agents are evaluated."""
    whatif: WhatIf | None = None
    """What-if analysis: other rules on the last part of your cluster's log, with a recommendation; null: none."""
    example_schedules: Literal["simulator", "slurm"] = "simulator"
    """What produces Figures 1 to 4; `slurm`: real Slurm daemons, or the simulator where Slurm's packages are
    missing."""
    deployment: Deployment | None = None
    """The agent's controller on an emulated Slurm cluster, compared with Slurm itself (paper §5.6); null: none."""
    presets: dict[Name, Preset] = {}
    """Your own presets, or built-in ones redefined."""

    @field_validator("results")
    @classmethod
    def _stays_inside(cls, value: str) -> str:
        if not re.fullmatch(r"results(/[A-Za-z0-9][A-Za-z0-9._-]*)*", value):
            raise ValueError(f"found {value!r}, expected results or a folder in it, such as results/mine")
        return value

    @model_validator(mode="after")
    def _has_what_is_deployed(self) -> Self:
        if self.deployment is not None:
            self.deployed_cell()
        return self

    def deployed_cell(self) -> Cell:
        """The cell whose agent the block ``deployment`` deploys; without the block, as by its defaults.

        Raises ConfigError where there is none.
        """
        name = self.deployment.cell if self.deployment is not None else None
        if name is not None:
            return self.cell(name, "deployment.cell")
        for cell in self.cells():
            if cell.cluster == CLUSTER:
                return cell
        raise ConfigError(
            f"deployment: found no experiment on cluster {CLUSTER}, expected one, such as "
            "{workloads: [{trace: finetuning-synthetic, cluster: deployment}], …}, or a `cell`"
        )

    def cells(self) -> list[Cell]:
        """Every cell of the matrix once, in the order of the experiments."""
        return list(dict.fromkeys(c for e in self.experiments for c in e.cells()))

    def cell(self, name: str, key: str = "cell") -> Cell:
        """The cell of this name or hash; an empty name is the first one.

        Raises ConfigError when the matrix has none of that name.
        """
        if not name:
            return self.cells()[0]
        if name not in self.named_cells:
            raise ConfigError(f"{key}: found {name!r}; the run has: {', '.join(c.name for c in self.cells())}")
        return self.named_cells[name]

    def first_cells(self) -> list[Cell]:
        """The first cell with every seed it has: the agent of the what-if analysis."""
        cells = self.cells()
        return [cell for cell in cells if cell.but(seed=0) == cells[0].but(seed=0)]

    def cells_of(self, trace: str) -> list[Cell]:
        """The cells of a trace; an empty name is the first cell's. Raises ConfigError when it has none."""
        cells = self.cells()
        if not (found := [cell for cell in cells if cell.trace == (trace or cells[0].trace)]):
            named = ", ".join(dict.fromkeys(cell.trace for cell in cells))
            raise ConfigError(f"trace: found {trace!r}; the run has agents of: {named}")
        return found

    @cached_property
    def named_cells(self) -> dict[str, Cell]:
        """Every cell by its name, and by its hash."""
        return {name: cell for cell in self.cells() for name in (cell.name, cell.hash)}

    def all_workloads(self) -> list[Workload]:
        """Every trace × cluster once."""
        named = [w for e in self.experiments for w in e.workloads] + self.workloads + self.gpu_types
        return [Workload(trace=t, cluster=c) for t, c in dict.fromkeys((w.trace, w.cluster) for w in named)]

    def localities(self, trace: str, cluster: str, estimate: str) -> list[str]:
        """Localities of the cells of a workload with an estimate, each once; strict where there is no such cell."""
        return list(dict.fromkeys(c.locality for c in self._cells_on(trace, cluster, estimate))) or ["strict"]

    def tuned_on(self, trace: str, cluster: str, estimate: str) -> bool:
        """Whether an agent on a workload with an estimate chooses a scheduler before it learns an order."""
        return any(self.preset(c.preset).tunes != "nothing" for c in self._cells_on(trace, cluster, estimate))

    def _cells_on(self, trace: str, cluster: str, estimate: str) -> list[Cell]:
        return [c for c in self.cells() if (c.trace, c.cluster, c.estimate) == (trace, cluster, estimate)]

    def traces(self) -> list[str]:
        """Names of the traces, each once: those of the workloads, then those that are only characterised."""
        return list(dict.fromkeys([w.trace for w in self.all_workloads()] + self.characterise))

    def preset(self, name: str) -> Preset:
        """The preset of this name: the run's own, or else a built-in one."""
        presets: dict[str, Preset] = {**BUILT_IN, **self.presets}
        return presets[name]
