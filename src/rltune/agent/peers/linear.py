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

from rltune.agent.exercise import Exercise
from rltune.agent.learners import Progress, Training
from rltune.agent.logs import Log, history_row, solver_columns
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

    ``preset.epochs`` generations of ``preset.trajectories`` sequences a candidate; one core; an interrupted search
    begins anew.
    """
    import cma  # seconds that others need not wait for

    preset, cell = exercise.preset, exercise.cell
    rng = np.random.default_rng([cell.seed, int(cell.hash, 16)])
    options = {"seed": math.nan, "randn": lambda *shape: rng.standard_normal(shape), "verbose": -9}
    search = cma.CMAEvolutionStrategy(AREA, SIGMA, options)
    best, best_score, best_epoch = AREA, _validation(exercise, AREA), 0
    start_score = best_score
    rows: list[dict[str, float]] = []
    log = Log(folder, rows)
    before = exercise.counts
    for epoch in range(1, preset.epochs + 1):
        began = time.perf_counter()
        first = exercise.draw()
        base = exercise.run(first)
        rolling = time.perf_counter()
        candidates = np.array(search.ask())
        ranker = LinearRanker(exercise.believed, exercise.layout, candidates)
        agent = exercise.run(np.repeat(first, len(candidates)), ranker, practice=True)
        rolled = time.perf_counter()
        search.tell(list(candidates), agent["score"].to_numpy().reshape(len(first), -1).mean(axis=0).tolist())
        base = base.iloc[np.repeat(np.arange(len(first)), len(candidates))]
        gap = exercise.reward(base, agent)
        told = {**dict.fromkeys(UNKNOWN, math.nan), "actor_iterations": 1}
        row = history_row(epoch, base, agent, gap, (began, rolling, rolled, time.perf_counter()), told)
        if epoch % preset.validate_every == 0 or epoch == preset.epochs:
            score = _validation(exercise, search.mean)
            row |= {
                "validation_rl": score, "validation_base": exercise.held_base,
                "validation_random": exercise.held_random,
            }  # fmt: skip
            if score < best_score:
                best, best_score, best_epoch = search.mean.copy(), score, epoch
        row |= solver_columns(exercise.counts.since(before))
        before = exercise.counts
        rows.append(row)
        log.epoch(rows)
        if progress:
            progress(row)
    log.close()
    facts = exercise.facts("linear", FEATURES, best_score, start_score, best_epoch)
    weights = (-best[:, None], np.zeros(1))  # logits: the highest first
    return Training(TrainedPolicy(weights, facts), pd.DataFrame(rows), "one core")


def _validation(exercise: Exercise, weights: np.ndarray) -> float:
    ranker = LinearRanker(exercise.believed, exercise.layout, weights[None])
    return float(exercise.run(exercise.held, ranker)["score"].mean())


def ranker(policy: TrainedPolicy, jobs: Jobs, layout: Layout) -> LinearRanker:
    """A trained policy as a ranker of runs on ``jobs``."""
    return LinearRanker(jobs, layout, -policy.weights[0].T)
