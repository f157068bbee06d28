"""What every learner of a cell practises on: sequences to train on, windows to choose a checkpoint by, runs of both."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rltune import COMPILED, sources_digest
from rltune.agent.policy_file import shapes_of
from rltune.agent.rollout import RandomRanker
from rltune.agent.trials import Trials
from rltune.agent.ways import Way, choose, way_of
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import Cell, LookaheadConfig, Preset, SimulationConfig
from rltune.config.metric import METRICS
from rltune.environment.reward import rewards, scores
from rltune.errors import ConfigError
from rltune.placement.counts import Counts
from rltune.placement.placers import placer_of
from rltune.simulator.batch import Ranker, SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table
from rltune.simulator.state import State
from rltune.traces.split import Split, disjoint_windows, spread

RANDOM_ORDERS = 5
"""Random runs of each window, whose mean an agent has to beat."""
GRID = 2000
"""Sequences of the training part, at most, that contention is measured on."""


class Exercise:
    """A cell's training and validation parts, and its rules; the test part is never touched.

    ``calibrated`` is the same jobs with other run-time estimates, that the agent may go by in what it sees, in
    reservations and in backfilling; None: there are none. The base policy and a random order always go by ``jobs``.
    ``folder``: where what was tried in choosing a way is kept, for a training that is interrupted; None: nowhere.

    Attributes:
        identity: what it is made of: of two that are equal in it, all runs are the same.
        setting: base policy, backfill, placement, locality and the other rules.
        own: the same of the agent, which may have chosen others (rltune.agent.ways).
        calibrated: the jobs as the agent goes by them.
        choice: a row a way it tried, the one it had first.
        held: first jobs of the validation windows, disjoint.
    """

    def __init__(
        self,
        cell: Cell,
        preset: Preset,
        lookahead: LookaheadConfig,
        jobs: Jobs,
        layout: Layout,
        split: Split,
        simulation: SimulationConfig = SimulationConfig(),
        calibrated: Jobs | None = None,
        folder: Path | None = None,
    ) -> None:
        self.cell, self.preset, self.jobs, self.layout, self.split = cell, preset, jobs, layout, split
        self.scheduler = SchedulerConfig(
            cell.policy, cell.backfill, cell.placement, cell.locality, **simulation.model_dump()
        )
        self.length = preset.sequence_jobs
        self.held = spread(disjoint_windows(*split.validation, self.length), preset.validation_windows)
        self.lookahead, self.simulation = lookahead, simulation
        self._placer = placer_of("lookahead", lookahead)
        self.last: State | None = None
        """State at the end of the agent's last run."""
        # the sequences are the same for cells that differ in features or placement
        same = cell.but(features="", placement="", preset="").hash
        self.stream = np.random.default_rng([cell.seed, int(same, 16)])
        """Draws the sequences, and nothing else."""
        self.identity = self._identity(calibrated)
        self.way, self.choice = self._choose(calibrated, folder)
        self.own = self.way.of(self.scheduler)
        self.calibrated = jobs if calibrated is None or not self.way.uses_calibrated else calibrated
        quicker = self.own.backfill == "conservative" != self.scheduler.backfill
        self.practised = replace(self.own, backfill="easy") if quicker else self.own
        """What sequences are run under to learn from: to plan every reservation takes ten times as long."""

    @property
    def counts(self) -> Counts:
        """How placement questions were answered so far, in all runs."""
        assert self._placer is not None
        return self._placer.counts.copy()

    @property
    def rules(self) -> dict[str, dict | None]:
        """What a policy file tells of the rules it was trained under."""
        asked = "lookahead" in (self.scheduler.placement, self.own.placement)
        return {
            "simulation": self.simulation.model_dump(),
            "lookahead": self.lookahead.model_dump() if asked else None,
            "way": asdict(self.way),
        }

    def facts(self, agent: str, features: str, score: float, start: float | None, epoch: int) -> dict[str, Any]:
        """What a policy file tells of a training on this: ``score`` on validation, after which ``epoch``.

        ``start``: score of the heuristic it started from, None where it started from nothing. It has learned if it beats
        the base policy, a random order and, where there was one, that heuristic.
        """
        learned = score < min(self.held_base, self.held_random) and (start is None or epoch > 0)
        return {
            "agent": agent,
            "cell": asdict(self.cell),
            "features": features,
            "shapes": shapes_of(features, agent),
            "preset": self.preset.model_dump(),
            **self.rules,
            "validation_metric": float(score),
            "validation_start": start,
            "validation_base": self.held_base,
            "validation_random": self.held_random,
            "learned": bool(learned),
            "best_epoch": epoch,
        }

    def forget(self) -> None:
        """Drop what the placer remembers of problems solved; the counts stay."""
        fresh, counts = placer_of("lookahead", self.lookahead), self.counts
        assert fresh is not None
        fresh.counts, self._placer = counts, fresh

    def draw(self) -> np.ndarray:
        """First jobs [trajectories] of an epoch's sequences; each call draws others.

        They start anywhere in the training part; a share of ``preset.contended`` near a start of the contended half.
        """
        start, last = self.split.train[0], self.split.train[1] - self.length
        first = self.stream.integers(start, last, size=self.preset.trajectories, endpoint=True)
        many = round(self.preset.contended * len(first))
        if many:
            at, step = self._contended
            beside = self.stream.integers(-(step // 2), step // 2, size=many, endpoint=True)
            first[:many] = np.clip(self.stream.choice(at, size=many) + beside, start, last)
        return first

    def run(self, first: np.ndarray, ranker: Ranker | None = None, practice: bool = False) -> pd.DataFrame:
        """A row a sequence (rltune.simulator.metrics.sequence_table) that starts at ``first`` [S].

        Without ``ranker`` the base policy orders the queue, by the cell's rules; with it, all goes by the agent's own,
        or by those of ``practice``. Column ``score`` is the cell's metric, to be minimised
        (rltune.environment.reward.scores).
        """
        if ranker is None:
            return self._scored(first, self._table(first, self.jobs, self.scheduler))
        own = self.practised if practice else self.own
        table = self._table(first, self.calibrated, own, ranker)
        self.last = self._state
        return self._scored(first, table)

    def reward(self, base: pd.DataFrame, agent: pd.DataFrame) -> np.ndarray:
        """Reward [S] of sequences, from their tables under the base policy and under the agent."""
        return rewards(self.cell.metric, base, agent)

    @cached_property
    def held_base(self) -> float:
        """Mean score of the base policy on the validation windows."""
        return float(self.run(self.held)["score"].mean())

    @cached_property
    def held_random(self) -> float:
        """Mean score of a random order on the validation windows."""
        ranker = RandomRanker(np.random.default_rng(self.cell.seed))
        first = np.repeat(self.held, RANDOM_ORDERS)
        return float(self._scored(first, self._table(first, self.jobs, self.scheduler, ranker))["score"].mean())

    @cached_property
    def _contended(self) -> tuple[np.ndarray, int]:
        """Starts whose sequences wait longer than the median under the base policy, strict, with best_fit, and EASY where
        anybody may pass the head; their distance."""
        start, last = self.split.train[0], self.split.train[1] - self.length
        step = max(self.length // 4, -(-(last - start + 1) // GRID), 1)
        at = np.arange(start, last + 1, step)
        backfill = "none" if self.scheduler.backfill == "none" else "easy"
        quick = SchedulerConfig(self.scheduler.policy, backfill, **self.simulation.model_dump())
        wait_s = np.concatenate(
            [
                sequence_table(
                    self.jobs,
                    simulate(self.jobs, self.layout, part, np.full(len(part), self.length), quick),
                    self.layout.gpus,
                )["wait_s"].to_numpy()
                for part in np.array_split(at, -(-len(at) // 250))
            ]
        )
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
        for table in (*(part[seen] for jobs in both for part in jobs), self.layout.nodes.row):
            for name in table.dtype.names:  # not whole rows: the bytes between their fields may hold anything
                digest.update(table[name].tobytes())
        return {
            "cell": self.cell.name,
            "preset": self.preset.model_dump(),
            "rules": repr(self.scheduler),
            "look-ahead": self.lookahead.model_dump(),
            "jobs": digest.hexdigest()[:16],
            "version": sources_digest("traces", *COMPILED),
        }

    def _choose(self, calibrated: Jobs | None, folder: Path | None) -> tuple[Way, list[dict[str, Any]]]:
        """The agent's way, and what was tried."""
        start = way_of(self.scheduler)
        if self.preset.chooses == "nothing":
            return start, []
        begin, stop = self.split.train  # windows may overlap by half: more of them, and the same rows
        starts = np.arange(begin, stop - self.length + 1, max(self.length // 2, 1))
        windows = spread(starts, self.preset.choice_windows)
        if len(windows) < 2:
            raise ConfigError(
                f"preset of {self.cell.name}: chooses {self.preset.chooses} by windows of {self.length} jobs of the "
                f"training part, found {stop - begin} jobs there, expected {2 * self.length} or more"
            )

        def scored(way: Way) -> np.ndarray:
            jobs = calibrated if calibrated is not None and way.uses_calibrated else self.jobs
            return self._scored(windows, self._table(windows, jobs, way.of(self.scheduler)))["score"].to_numpy()

        trials = Trials(scored, self.identity, folder)
        chosen = choose(start, self.preset.chooses, calibrated is not None, trials)
        trials.end()
        self._placer = placer_of("lookahead", self.lookahead)  # what was tried does not count
        return chosen

    def _scored(self, first: np.ndarray, table: pd.DataFrame) -> pd.DataFrame:
        metric = self.cell.metric
        return table.assign(score=scores(metric, table if metric in METRICS else self._base(first), table))

    def _table(
        self, first: np.ndarray, jobs: Jobs, scheduler: SchedulerConfig, ranker: Ranker | None = None
    ) -> pd.DataFrame:
        placer = self._placer if scheduler.placement == "lookahead" else None
        state = simulate(jobs, self.layout, first, np.full(len(first), self.length), scheduler, ranker, placer)
        self._state = state
        return sequence_table(jobs, state, self.layout.gpus)
