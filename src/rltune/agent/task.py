"""What an agent is trained on: sequences of the training part, windows of the validation part, and runs of both."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rltune import sources
from rltune.agent.policy_file import shapes_of
from rltune.agent.rollout import RandomRanker
from rltune.agent.scheduler_choice import MAX_WINDOWS, AgentScheduler, Trials, choose
from rltune.cluster.fit import Jobs
from rltune.config import Cell, LookaheadConfig, Preset, SimulationConfig
from rltune.config.cells import PLANNED_TYPES
from rltune.config.metric import METRICS
from rltune.environment.reward import rewards, scores
from rltune.errors import ConfigError
from rltune.placement.counts import Counts
from rltune.placement.placers import placer_of
from rltune.simulator.batch import Ranker, simulate
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.metrics import sequence_table
from rltune.simulator.state import State
from rltune.traces.split import disjoint_windows, spread

if TYPE_CHECKING:
    from rltune.cluster.workload import Workload

RANDOM_ORDERS = 5
"""Random runs of each window, whose mean an agent has to beat."""
GRID = 2000
"""Sequences of the training part, at most, that contention is measured on."""


class TrainingTask:
    """A cell's training and validation parts, and its rules; the test part is never touched.

    Where the workload has calibrated estimates, the agent may use them in what it sees, in reservations and in
    backfilling. The base policy and a random order always use the given ones. ``folder``: where the scores of
    schedulers tried are kept, for a training that is interrupted; None: nowhere.

    Attributes:
        identity: two tasks with the same identity have the same runs.
        jobs: with the estimates that training uses (``preset.estimates``): those of the workload.
        scheduler: base policy, backfill, placement, locality and the other rules.
        agent_scheduler: the agent's scheduler, which it may have chosen itself (rltune.agent.scheduler_choice).
        trials: a row per scheduler that was tried; the first is the cell's.
        rollout_scheduler: what sequences are run under to learn from: EASY for conservative backfilling, which takes ten
            times as long, unless GPU types differ in speed, among which it chooses otherwise.
        agent_jobs: the jobs with the estimates that the agent uses.
        validation: first jobs of the validation windows, disjoint.
        last: state at the end of the last run.
    """

    def __init__(
        self,
        cell: Cell,
        preset: Preset,
        workload: Workload,
        lookahead: LookaheadConfig = LookaheadConfig(),
        simulation: SimulationConfig = SimulationConfig(),
        folder: Path | str | None = None,
    ) -> None:
        self.cell, self.preset, self.lookahead, self.simulation = cell, preset, lookahead, simulation
        self.jobs, self.layout, self.split = workload.jobs, workload.layout, workload.split
        last_s = float(self.jobs.submit_s[self.split.train[1] - 1])
        self.jobs_until = (pd.Timestamp(workload.meta.t0) + pd.Timedelta(seconds=last_s)).isoformat(timespec="seconds")
        """When the last job of the training part was submitted."""
        self.scheduler = SchedulerConfig.of(cell, simulation, **workload.slowdowns)
        self.length = preset.sequence_jobs
        if (jobs_n := self.split.validation[1] - self.split.validation[0]) < self.length:
            raise ConfigError(
                f"preset of {cell.name}: sequence_jobs: found {self.length}, but the validation part has only {jobs_n} jobs; "
                "give a preset with shorter sequences or a longer trace"
            )
        self.validation = spread(disjoint_windows(*self.split.validation, self.length), preset.validation_windows)
        self._placer = placer_of("lookahead", lookahead)
        self.last: State | None = None
        # the sequences are the same for cells that differ in features or placement
        same = cell.but(features="", placement="", preset="").hash
        self.stream = np.random.default_rng([cell.seed, int(same, 16)])
        """Draws the sequences, and nothing else."""
        calibrated = workload.calibrated
        self.identity = self._identity(calibrated)
        self.agent_scheduler, self.trials = self._choose(calibrated, Path(folder) if folder else None)
        self.agent_jobs = calibrated if self.agent_scheduler.uses_calibrated else self.jobs
        self.rollout_scheduler = self.agent_scheduler.config
        slow = self.rollout_scheduler.backfill == "conservative" != self.scheduler.backfill
        if slow and not self._has_price(self.rollout_scheduler):
            self.rollout_scheduler = replace(self.rollout_scheduler, backfill="easy")

    @property
    def counts(self) -> Counts:
        """How placement questions were answered so far, in all runs."""
        return self._placer.counts.copy()

    def facts(self, features: str, score: float, start: float | None, epoch: int) -> dict[str, Any]:
        """The facts a policy file has of a training on this: ``score`` on validation, after which ``epoch``.

        ``start``: score of the heuristic it started from, None where it started from nothing. It has learned if it beats
        the base policy, a random order and, where there was one, that heuristic.
        """
        learned = score < min(self.base_score, self.random_score) and (start is None or epoch > 0)
        asked = "lookahead" in (self.scheduler.placement, self.agent_scheduler.config.placement)
        return {
            "agent": self.preset.agent,
            "cell": asdict(self.cell),
            "jobs_until": self.jobs_until,
            "features": features,
            "shapes": shapes_of(features, self.preset.agent),
            "preset": self.preset.model_dump(),
            "base_policy_bias": self.preset.base_policy_bias,
            "simulation": self.simulation.model_dump(),
            "lookahead": self.lookahead.model_dump() if asked else None,
            "scheduler": self.agent_scheduler.facts(),
            "validation_metric": float(score),
            "validation_start": start,
            "validation_base": self.base_score,
            "validation_random": self.random_score,
            "learned": bool(learned),
            "best_epoch": epoch,
        }

    def forget_solutions(self) -> None:
        """Drop the placement problems solved so far, as an interruption does; the counts stay."""
        counts = self.counts
        self._placer = placer_of("lookahead", self.lookahead)
        self._placer.counts = counts

    def draw(self) -> np.ndarray:
        """First jobs [trajectories] of an epoch's sequences; each call draws others.

        They start anywhere in the training part; a share of ``preset.contended`` near a start of the contended half.
        """
        start, last = self.split.train[0], self.split.train[1] - self.length
        first = self.stream.integers(start, last, size=self.preset.trajectories, endpoint=True)
        many = round(self.preset.contended * len(first))
        if many:
            at, step = self._contended
            shift = self.stream.integers(-(step // 2), step // 2, size=many, endpoint=True)
            first[:many] = np.clip(self.stream.choice(at, size=many) + shift, start, last)
        return first

    def run(self, first: np.ndarray, ranker: Ranker | None = None, rollout: bool = False) -> pd.DataFrame:
        """A row per sequence (rltune.simulator.metrics.sequence_table) that starts at ``first`` [S].

        Without ``ranker`` the base policy orders the queue, under the cell's scheduler; with it, the agent's own
        scheduler is used, or that of a ``rollout``. Column ``score`` is the cell's metric, to be minimised
        (rltune.environment.reward.scores).
        """
        if ranker is None:
            return self._scored(first, self._table(first, self.jobs, self.scheduler))
        scheduler = self.rollout_scheduler if rollout else self.agent_scheduler.config
        return self._scored(first, self._table(first, self.agent_jobs, scheduler, ranker))

    def reward(self, base: pd.DataFrame, agent: pd.DataFrame) -> np.ndarray:
        """Reward [S] of sequences, from their tables under the base policy and under the agent."""
        return rewards(self.cell.metric, base, agent)

    @cached_property
    def base_score(self) -> float:
        """Mean score of the base policy on the validation windows."""
        return float(self.run(self.validation)["score"].mean())

    @cached_property
    def random_score(self) -> float:
        """Mean score of a random order on the validation windows."""
        ranker = RandomRanker(np.random.default_rng(self.cell.seed))
        first = np.repeat(self.validation, RANDOM_ORDERS)
        return float(self._scored(first, self._table(first, self.jobs, self.scheduler, ranker))["score"].mean())

    @cached_property
    def _contended(self) -> tuple[np.ndarray, int]:
        """Starts whose sequences wait longer than the median under the base policy, strict, with best_fit, and EASY
        where backfilling is allowed; and the distance between starts."""
        start, last = self.split.train[0], self.split.train[1] - self.length
        step = max(self.length // 4, -(-(last - start + 1) // GRID), 1)
        at = np.arange(start, last + 1, step)
        backfill = "none" if self.scheduler.backfill == "none" else "easy"
        easy = {"backfill": backfill, "placement": "best_fit", "locality": "strict"}
        quick = replace(self.scheduler, **easy)
        parts = np.array_split(at, -(-len(at) // 250))
        wait_s = np.concatenate([self._table(part, self.jobs, quick)["wait_s"] for part in parts])
        return at[wait_s >= np.median(wait_s)], step

    def _base(self, first: np.ndarray) -> pd.DataFrame:
        """The base policy's table of these sequences, of which several may be the same."""
        once, where = np.unique(first, return_inverse=True)
        return self._table(once, self.jobs, self.scheduler).iloc[where].reset_index(drop=True)

    def _identity(self, calibrated: Jobs | None) -> dict[str, Any]:
        """Of the jobs, those of the training and the validation part count, which are all that training sees."""
        seen = slice(0, self.split.validation[1])
        digest = hashlib.sha256(repr(self.split).encode())
        both = self.jobs, self.jobs if calibrated is None else calibrated
        for table in (*(part[seen] for jobs in both for part in jobs), self.layout.nodes.row, self.layout.nodes.pool):
            for name in table.dtype.names:  # not whole rows: the bytes between their fields may hold anything
                digest.update(table[name].tobytes())
        return {
            "cell": self.cell.name,
            "preset": self.preset.model_dump(),
            "rules": repr(self.scheduler),
            "look-ahead": self.lookahead.model_dump(),
            "jobs": digest.hexdigest()[:16],
            "version": sources.digest(*Path(__file__).parent.rglob("*.py")),
        }

    def _choose(self, calibrated: Jobs | None, folder: Path | None) -> tuple[AgentScheduler, list[dict[str, Any]]]:
        """The agent's scheduler, and what was tried."""
        start = AgentScheduler(self.scheduler)
        if self.preset.tunes == "nothing":
            return start, []
        begin, stop = self.split.train  # windows may overlap by half: more of them, and the same rows
        starts = np.arange(begin, stop - self.length + 1, max(self.length // 2, 1))
        windows = spread(starts, min(max(self.preset.sequences, 2), MAX_WINDOWS))
        if len(windows) < 2:
            raise ConfigError(
                f"preset of {self.cell.name}: tunes {self.preset.tunes} on windows of {self.length} jobs of the "
                f"training part, found {stop - begin} jobs there, expected {2 * self.length} or more"
            )

        def scored(candidate: AgentScheduler) -> np.ndarray:
            jobs = calibrated if candidate.uses_calibrated else self.jobs
            return self._scored(windows, self._table(windows, jobs, candidate.config))["score"].to_numpy()

        trials = Trials(scored, self.identity, folder)
        chosen, rows = choose(start, self.preset.tunes, calibrated is not None, self._has_price, trials)
        trials.report()
        self._placer = placer_of("lookahead", self.lookahead)  # what was tried does not count
        return chosen, rows

    def _has_price(self, scheduler: SchedulerConfig) -> bool:
        """Whether jobs may wait for a GPU type, so that a price of GPU time counts."""
        return scheduler.on(self.jobs).types in PLANNED_TYPES

    def _scored(self, first: np.ndarray, table: pd.DataFrame) -> pd.DataFrame:
        metric = self.cell.metric
        return table.assign(score=scores(metric, table if metric in METRICS else self._base(first), table))

    def _table(
        self, first: np.ndarray, jobs: Jobs, scheduler: SchedulerConfig, ranker: Ranker | None = None
    ) -> pd.DataFrame:
        placer = self._placer if scheduler.placement == "lookahead" else None
        n = np.full(len(first), self.length)
        self.last = simulate(jobs, self.layout, first, n, scheduler, ranker, placer)
        return sequence_table(jobs, self.last, self.layout.gpus)
