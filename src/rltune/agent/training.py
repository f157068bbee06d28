"""Train RLTune's agent: roll out, reward against the base policy, update, validate, keep the best."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rltune.agent.checkpoint import Checkpoint, identity, load_checkpoint, save_checkpoint
from rltune.agent.decisions import relative
from rltune.agent.exercise import Exercise
from rltune.agent.learners import Progress, Training
from rltune.agent.logs import Log
from rltune.agent.networks import set_up
from rltune.agent.policy_file import TrainedPolicy, shapes_of
from rltune.agent.ppo import PPO
from rltune.agent.rollout import AgentRanker
from rltune.config import Cell, Preset
from rltune.placement.counts import Counts


def learn(
    exercise: Exercise,
    preset: Preset,
    cell: Cell,
    threads: int | None = None,
    progress: Progress | None = None,
    folder: Path | None = None,
) -> Training:
    """Train by PPO; rltune.agent.learners says what the arguments are.

    Every ``validate_every`` epochs, and at the last, the greedy policy runs on the validation windows; the weights with
    the best mean score there are kept. With ``folder`` the state is kept there after each validation, and a training
    that was interrupted goes on from it, to the same policy and history but for the times. ``progress`` is called with
    each epoch's row of the history, whose solver counts cover everything up to there: rollouts, base runs, validation.
    """
    runs_on = set_up(cell.seed, threads)
    course = Course(exercise, preset, cell)
    of = identity(exercise)
    if folder is not None:
        found, why = load_checkpoint(folder, of)
        if found is not None:
            course.restore(found)
            print(f"going on after epoch {course.done} of {preset.epochs}: an earlier training was stopped", flush=True)
        elif why:
            print(f"{why}; training from the beginning", flush=True)
    log = Log(folder, course.rows)
    while not course.over:
        row = course.epoch()
        log.epoch(course.rows)
        if progress:
            progress(row)
        if folder is not None and course.validated:
            save_checkpoint(folder, of, course.state())
    log.close()
    return Training(course.best(), pd.DataFrame(course.rows), runs_on)


class Course:
    """A training under way: everything that changes from epoch to epoch."""

    def __init__(self, exercise: Exercise, preset: Preset, cell: Cell) -> None:
        self.exercise, self.preset, self.cell = exercise, preset, cell
        self.rng = np.random.default_rng([cell.seed, int(cell.hash, 16)])
        self.observer = exercise.observer()
        self.ppo = PPO(preset, self.rng, self.observer.width)
        self.rows: list[dict[str, float]] = []
        self.stale = 0
        self.best_score, self.best_epoch, self.best_weights = math.inf, 0, self.ppo.kept_weights()
        self._before = Counts()
        if preset.residual > 0:  # the base policy itself, which may turn out to be the best
            self.best_score = self._validation()

    @property
    def done(self) -> int:
        """Epochs so far."""
        return len(self.rows)

    @property
    def over(self) -> bool:
        """Whether all epochs are done, or nothing better has come for as long as the preset waits."""
        return self.done >= self.preset.epochs or (self.preset.patience or math.inf) <= self.stale

    @property
    def validated(self) -> bool:
        """Whether the last epoch was followed by a validation."""
        return self.done % self.preset.validate_every == 0 or self.done >= self.preset.epochs

    def epoch(self) -> dict[str, float]:
        """One epoch; its row of the history."""
        preset, exercise = self.preset, self.exercise
        began = time.perf_counter()
        begins = exercise.draw()
        base = exercise.run(begins).iloc[np.repeat(np.arange(len(begins)), preset.rollouts)]
        rolling = time.perf_counter()
        ranker = self._ranker(self.ppo.weights(), self.rng)
        agent = exercise.run(np.repeat(begins, preset.rollouts), ranker)
        rolled = time.perf_counter()
        gap = exercise.reward(base, agent)
        self.ppo.schedule(self.done / preset.epochs)
        log = self.ppo.update(ranker.batch(relative(gap, preset.rollouts)))
        updated = time.perf_counter()
        choices = int(agent["choices"].sum())
        row = {
            "epoch": self.done + 1, "reward": float(gap.mean()), "base": float(base["score"].mean()),
            "rl": float(agent["score"].mean()),
            "difference": float(base["score"].mean() - agent["score"].mean()), **asdict(log),
            "decisions": int(agent["decisions"].sum()), "choices": choices,
            "mean_queue": float(agent["mean_queue"].mean()), "rollout_seconds": rolled - began,
            "update_seconds": updated - rolled, "choices_per_second": choices / (rolled - rolling),
            "validation_rl": math.nan, "validation_base": math.nan, "validation_random": math.nan,
        }  # fmt: skip
        self.rows.append(row)
        if self.validated:
            self._validate(row)
        total = exercise.counts
        row |= _solver_columns(total.since(self._before))
        self._before = total
        if self.validated:
            exercise.forget()  # as after an interruption
        return row

    def best(self) -> TrainedPolicy:
        """The best so far. It has learned if it beats both the base policy and a random order on validation."""
        exercise, cell = self.exercise, self.cell
        learned = bool(self.best_score < exercise.held_base and self.best_score < exercise.held_random)
        facts: dict[str, Any] = {
            "agent": "rltune", "cell": asdict(cell), "features": cell.features, "shapes": shapes_of(cell.features),
            "residual": self.preset.residual, "preset": self.preset.model_dump(),
            **exercise.rules, "validation_metric": float(self.best_score), "validation_base": exercise.held_base,
            "validation_random": exercise.held_random, "learned": learned, "best_epoch": self.best_epoch,
        }  # fmt: skip
        return TrainedPolicy(self.best_weights, facts)

    def state(self) -> Checkpoint:
        """Everything that the rest of the training depends on."""
        arrays = {
            "network": [np.asarray(v) for v in self.ppo.state()], "best": list(self.best_weights),
        }  # fmt: skip
        facts = {
            "rng": [self.rng.bit_generator.state, self.exercise.stream.bit_generator.state], "stale": self.stale,
            "best_score": self.best_score, "best_epoch": self.best_epoch, "rows": self.rows,
        }  # fmt: skip
        return Checkpoint(arrays, facts)

    def restore(self, found: Checkpoint) -> None:
        """Go back to a state."""
        for variable, value in zip(self.ppo.state(), found.arrays["network"], strict=True):
            variable.assign(value)
        self.best_weights = tuple(found.arrays["best"])
        facts = found.facts
        self.rng.bit_generator.state, self.exercise.stream.bit_generator.state = facts["rng"]
        self.stale, self.rows = facts["stale"], facts["rows"]
        self.best_score, self.best_epoch = facts["best_score"], facts["best_epoch"]
        _ = self.exercise.held_base, self.exercise.held_random  # their placements were counted in an epoch before
        self._before = self.exercise.counts
        self.exercise.forget()

    def _validate(self, row: dict[str, float]) -> None:
        exercise, score = self.exercise, self._validation()
        row |= {
            "validation_rl": score, "validation_base": exercise.held_base, "validation_random": exercise.held_random
        }  # fmt: skip
        self.stale += 1
        if score < self.best_score:
            self.best_score, self.best_epoch, self.best_weights = score, self.done, self.ppo.kept_weights()
            self.stale = 0

    def _validation(self) -> float:
        """Mean score of the greedy policy on the validation windows."""
        return float(self.exercise.run(self.exercise.held, self._ranker(self.ppo.kept_weights()))["score"].mean())

    def _ranker(self, weights: tuple[np.ndarray, ...], rng: np.random.Generator | None = None) -> AgentRanker:
        return AgentRanker(TrainedPolicy(weights, {}).logits, self.observer, rng, self.preset.residual)


def _solver_columns(counts: Counts) -> dict[str, float]:
    names = ("asked", "settled", "cached", "calls", "infeasible", "limit", "failure", "seconds")
    latency = {f"milp_{name}_ms": value for name, value in counts.latency_ms().items()}
    return {f"milp_{name}": getattr(counts, name) for name in names} | latency
