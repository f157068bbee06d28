"""A tuned linear score: twelve weights searched by CMA-ES (Hansen and Ostermeier 2001), the cheap learner that a
network has to justify itself against.

A generation's candidates all run the same sequences, drawn anew for each generation, and are judged by their mean score
there. The search starts from the order by the smallest area. Its mean is validated now and then, and what was best on
the validation windows is kept, be it the start itself.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.agent.checkpoint import Checkpoint, carry_out
from rltune.agent.exercise import Exercise
from rltune.agent.learners import Progress, Training
from rltune.agent.logs import history_row, solver_columns
from rltune.agent.peers.linear_score import AREA, LinearRanker
from rltune.agent.policy_file import TrainedPolicy
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout

SIGMA = 0.2
"""First step of the search, beside weights of 1 (our choice)."""
FEATURES = "rich"
"""Feature set that has the like of what the score is made of."""
UNKNOWN = ("kl", "entropy", "clip_fraction", "value_loss", "explained_variance")
"""Columns of RLTune's history that such a search has no figures for."""


def learn(
    exercise: Exercise, threads: int | None = None, progress: Progress | None = None, folder: Path | None = None
) -> Training:
    """Search the weights; rltune.agent.learners says what the arguments are.

    ``preset.epochs`` generations of ``preset.trajectories`` sequences a candidate, on one core. With ``folder`` the
    state is kept there after each validation, and an interrupted search goes on from it, to the same weights.
    """
    search = Search(exercise)
    carry_out(search, exercise.identity, folder, progress)
    facts = exercise.facts("linear", FEATURES, search.best_score, search.start_score, search.best_epoch)
    weights = (-search.best[:, None], np.zeros(1))  # logits: the highest first
    return Training(TrainedPolicy(weights, facts), pd.DataFrame(search.rows), "one core")


class Search:
    """A search under way: everything that changes from generation to generation."""

    def __init__(self, exercise: Exercise) -> None:
        import cma  # seconds that others need not wait for

        self.exercise, self.preset, cell = exercise, exercise.preset, exercise.cell
        rng = np.random.default_rng([cell.seed, int(cell.hash, 16)])
        options = {"seed": math.nan, "randn": lambda *shape: rng.standard_normal(shape), "verbose": -9}
        self._search = cma.CMAEvolutionStrategy(AREA, SIGMA, options)
        self.best, self.best_score, self.best_epoch = AREA, self._validation(AREA), 0
        self.start_score = self.best_score
        self.rows: list[dict[str, float]] = []
        self._told: list[np.ndarray] = []
        self._before = exercise.counts

    @property
    def done(self) -> int:
        """Generations so far."""
        return len(self.rows)

    @property
    def over(self) -> bool:
        """Whether all generations are done."""
        return self.done >= self.preset.epochs

    @property
    def validated(self) -> bool:
        """Whether the last generation was followed by a validation."""
        return self.done % self.preset.validate_every == 0 or self.over

    def epoch(self) -> dict[str, float]:
        """One generation; its row of the history."""
        exercise = self.exercise
        began = time.perf_counter()
        first = exercise.draw()
        base = exercise.run(first)
        rolling = time.perf_counter()
        candidates = np.array(self._search.ask())
        ranker = LinearRanker(exercise.calibrated, exercise.layout, candidates)
        agent = exercise.run(np.repeat(first, len(candidates)), ranker, practice=True)
        rolled = time.perf_counter()
        scores = agent["score"].to_numpy().reshape(len(first), -1).mean(axis=0)
        self._search.tell(list(candidates), scores.tolist())
        self._told.append(scores)
        base = base.iloc[np.repeat(np.arange(len(first)), len(candidates))]
        gap = exercise.reward(base, agent)
        told = {**dict.fromkeys(UNKNOWN, math.nan), "actor_iterations": 1}
        row = history_row(self.done + 1, base, agent, gap, (began, rolling, rolled, time.perf_counter()), told)
        self.rows.append(row)
        if self.validated:
            self._validate(row)
        row["kept_epoch"] = self.best_epoch
        row |= solver_columns(exercise.counts.since(self._before))
        self._before = exercise.counts
        if self.validated:
            exercise.forget()  # as after an interruption
        return row

    def state(self) -> Checkpoint:
        """What the rest of the search depends on; the search itself is what it was told."""
        facts = {
            "stream": self.exercise.stream.bit_generator.state,
            "best_score": self.best_score,
            "best_epoch": self.best_epoch,
            "rows": self.rows,
        }
        return Checkpoint({"best": [self.best], "told": [np.array(self._told)]}, facts)

    def restore(self, found: Checkpoint) -> None:
        """Go back to a state, telling the search all that it was told."""
        for scores in found.arrays["told"][0]:
            self._search.tell(self._search.ask(), scores.tolist())
            self._told.append(scores)
        facts = found.facts
        self.exercise.stream.bit_generator.state = facts["stream"]
        (self.best,) = found.arrays["best"]
        self.best_score, self.best_epoch, self.rows = facts["best_score"], facts["best_epoch"], facts["rows"]
        _ = self.exercise.held_base, self.exercise.held_random  # their placements were counted before
        self._before = self.exercise.counts
        self.exercise.forget()

    def _validate(self, row: dict[str, float]) -> None:
        exercise, score = self.exercise, self._validation(self._search.mean)
        row |= {
            "validation_rl": score,
            "validation_base": exercise.held_base,
            "validation_random": exercise.held_random,
        }
        if score < self.best_score:
            self.best, self.best_score, self.best_epoch = self._search.mean.copy(), score, self.done

    def _validation(self, weights: np.ndarray) -> float:
        ranker = LinearRanker(self.exercise.calibrated, self.exercise.layout, weights[None])
        return float(self.exercise.run(self.exercise.held, ranker)["score"].mean())


def ranker(policy: TrainedPolicy, jobs: Jobs, layout: Layout) -> LinearRanker:
    """A trained policy as a ranker of runs on ``jobs``."""
    return LinearRanker(jobs, layout, -policy.weights[0].T)
