"""Train RLTune's agent: roll out, reward against the base policy, update, validate, keep the best."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.agent.checkpoint import Checkpoint, carry_out
from rltune.agent.credit import CREDITED, credit
from rltune.agent.decisions import Batch, relative
from rltune.agent.exercise import Exercise
from rltune.agent.learners import Progress, Training
from rltune.agent.logs import history_row, solver_columns
from rltune.agent.networks import set_up
from rltune.agent.policy_file import TrainedPolicy, shapes_of
from rltune.agent.ppo import PPO
from rltune.agent.rollout import AgentRanker
from rltune.agent.ways import difference
from rltune.environment.observation import Observer
from rltune.files import write_text
from rltune.placement.counts import Counts


def learn(
    exercise: Exercise,
    threads: int | None = None,
    progress: Progress | None = None,
    folder: Path | None = None,
    kind: type[Course] | None = None,
) -> Training:
    """Train by PPO; rltune.agent.learners says what the arguments are, ``kind`` whose course is taken (RLTune's).

    Every ``validate_every`` epochs, and at the last, the greedy policy runs on the validation windows; the weights with
    the best mean score there are kept. With ``folder`` the state is kept there after each validation, and a training
    that was interrupted goes on from it, to the same policy and history but for the times. ``progress`` is called with
    each epoch's row of the history, whose solver counts cover everything up to there: rollouts, base runs, validation.
    """
    runs_on = set_up(exercise.cell.seed, threads)
    if exercise.choice:
        print(f"of {len(exercise.choice)} ways tried, it goes by {exercise.way}", flush=True)
    course = (kind or Course)(exercise)
    if folder is not None and exercise.choice:
        write_text(folder / "choice.csv", pd.DataFrame(exercise.choice).to_csv(index=False))
    carry_out(course, exercise.identity, folder, progress)
    return Training(course.best(), pd.DataFrame(course.rows), runs_on)


class Course:
    """A training under way: everything that changes from epoch to epoch."""

    agent = "rltune"
    features: str | None = None
    """Feature set; None: the cell's."""

    def __init__(self, exercise: Exercise) -> None:
        self.exercise, self.preset, self.cell = exercise, exercise.preset, exercise.cell
        preset, cell = self.preset, self.cell
        self.rng = np.random.default_rng([cell.seed, int(cell.hash, 16)])
        self.features = self.features or cell.features
        self.observer = Observer(exercise.calibrated, exercise.layout, self.features)
        self.ppo = PPO(preset, self.rng, shapes_of(self.features, self.agent)["actor"][1])
        self.rows: list[dict[str, float]] = []
        self.stale = 0
        self.best_score, self.best_epoch, self.best_weights = math.inf, 0, self.ppo.kept_weights()
        self._before = Counts()
        self.start_scores: np.ndarray | None = None
        if preset.base_policy_bias > 0:  # the heuristic it starts from, which may turn out to be the best
            self.start_scores = self._validation()
            self.best_score = float(self.start_scores.mean())

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
        agent = exercise.run(np.repeat(begins, preset.rollouts), ranker, practice=True)
        rolled = time.perf_counter()
        gap = exercise.reward(base, agent)
        self.ppo.schedule(self.done / preset.epochs)
        batch = ranker.batch(relative(gap, preset.rollouts))
        log = self.ppo.update(batch, self._credit(batch))
        updated = time.perf_counter()
        row = history_row(self.done + 1, base, agent, gap, (began, rolling, rolled, updated), asdict(log))
        self.rows.append(row)
        if self.validated:
            self._validate(row)
        row["kept_epoch"] = self.best_epoch
        total = exercise.counts
        row |= solver_columns(total.since(self._before))
        self._before = total
        if self.validated:
            exercise.forget()  # as after an interruption
        return row

    def best(self) -> TrainedPolicy:
        """The best so far. It has learned if it beats both the base policy and a random order on validation."""
        start = None if self.start_scores is None else float(self.start_scores.mean())
        facts = self.exercise.facts(self.agent, self.features, self.best_score, start, self.best_epoch)
        return TrainedPolicy(self.best_weights, {**facts, **self.ppo.facts})

    def state(self) -> Checkpoint:
        """Everything that the rest of the training depends on."""
        arrays = {"network": [np.asarray(v) for v in self.ppo.state()], "best": list(self.best_weights)}
        facts = {
            "rng": [self.rng.bit_generator.state, self.exercise.stream.bit_generator.state],
            "stale": self.stale,
            "best_score": self.best_score,
            "best_epoch": self.best_epoch,
            "rows": self.rows,
        }
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
        exercise, held = self.exercise, self._validation()
        score = float(held.mean())
        row |= {
            "validation_rl": score,
            "validation_base": exercise.held_base,
            "validation_random": exercise.held_random,
        }
        self.stale += 1
        if score < self.best_score and self._beats_start(held):
            self.best_score, self.best_epoch, self.best_weights = score, self.done, self.ppo.kept_weights()
            self.stale = 0

    def _credit(self, batch: Batch) -> np.ndarray | None:
        """Advantages decision by decision, where the preset wants them and the metric has them."""
        preset, exercise = self.preset, self.exercise
        if preset.credit_horizon_s is None or self.cell.metric not in CREDITED:
            return None
        jobs, state = exercise.jobs, exercise.last
        assert state is not None
        return credit(
            self.cell.metric,
            state,
            jobs.run_s,
            jobs.submit_s,
            batch.now_s,
            batch.sequence,
            preset.rollouts,
            preset.credit_horizon_s,
        )

    def _validation(self) -> np.ndarray:
        """Scores of the greedy policy on the validation windows."""
        return self.exercise.run(self.exercise.held, self._ranker(self.ppo.kept_weights()))["score"].to_numpy()

    def _beats_start(self, held: np.ndarray) -> bool:
        """Whether these scores are better than those training started from by more than chance would have it."""
        if self.start_scores is None or self.preset.margin == 0:
            return True
        gain, error = difference(self.start_scores, held)
        return gain > self.preset.margin * error

    def _ranker(self, weights: tuple[np.ndarray, ...], rng: np.random.Generator | None = None) -> AgentRanker:
        return AgentRanker(
            TrainedPolicy(weights, self.ppo.facts).logits, self.observer, rng, self.preset.base_policy_bias
        )
