"""Train an agent: collect rollouts, estimate advantages, update, validate, keep the best."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pandas as pd

from rltune.agent.checkpoint import NAME, load_checkpoint, save_checkpoint
from rltune.agent.learners import LEARNERS
from rltune.agent.policy_file import TrainedPolicy, shapes_of
from rltune.agent.ppo import CREDITED, PPO, Advantages, gae, relative, set_up, waiting_saved
from rltune.agent.progress import HistoryLog, solver_columns
from rltune.agent.rollout import Batch
from rltune.agent.scheduler_choice import TRIALS, difference
from rltune.agent.task import TrainingTask
from rltune.environment.observation import Observer
from rltune.files import write_text
from rltune.placement.counts import Counts
from rltune.simulator.batch import Ranker


def fit(trainer: Trainer, progress: Callable[[dict[str, float]], None] = lambda row: None) -> TrainedPolicy:
    """Train to the end; ``progress`` takes each epoch's row of the history. The loop of notebooks/train.ipynb."""
    while not trainer.finished:
        batch = trainer.collect()
        advantages = trainer.advantages(batch)
        trainer.update(batch, advantages)
        if trainer.validation_due:
            trainer.keep_best(trainer.validate())
        row = trainer.log()
        progress(row)
        if trainer.validation_due:
            trainer.checkpoint()
    return trainer.policy()


def make_trainer(task: TrainingTask, folder: Path | str | None = None, threads: int | None = None) -> Trainer:
    """The trainer of the agent that the task's preset names; :class:`Trainer` says what the arguments are."""
    return resolve_name(LEARNERS[task.preset.agent].trainer)(task, folder, threads)


class Trainer:
    """A training by PPO, epoch by epoch; :func:`fit` shows the order of its methods.

    With ``folder`` the history and TensorBoard events are written there, and the whole state at each checkpoint. A
    trainer of the same task (its ``identity``) made on that folder goes on from there, to the same policy, byte by
    byte, and the same history but for the times. ``threads``: of TensorFlow, None: its default.

    Attributes:
        epoch: the epoch under way, or the last one; 0 before the first.
        rows: the history, a dict per epoch.
        best_score, best_epoch, best_weights: of the policy kept so far, by its mean score on validation.
        start_scores: of the heuristic it starts from on the validation windows; None where it starts from nothing.
        device: what it runs on.
    """

    def __init__(self, task: TrainingTask, folder: Path | str | None = None, threads: int | None = None) -> None:
        self.task, self.preset, self.cell = task, task.preset, task.cell
        self.folder = Path(folder) if folder else None
        self.epoch = 0
        self.rows: list[dict[str, float]] = []
        self._row: dict[str, float] = {}
        self.rng = np.random.default_rng([self.cell.seed, int(self.cell.hash, 16)])
        self.features = LEARNERS[self.preset.agent].features or self.cell.features
        self.device = self._set_up(threads)
        self.best_score, self.best_epoch, self.best_weights = math.inf, 0, self.weights()
        self.start_scores: np.ndarray | None = None
        self._before = Counts()
        if self._starts_from_heuristic:  # which may turn out to be the best
            self.start_scores = self._scores()
            self.best_score = float(self.start_scores.mean())
        if task.trials:
            print(f"of {len(task.trials)} schedulers tried, it takes {task.agent_scheduler.facts()}", flush=True)
        if self.start_scores is not None and self.preset.margin > 0 and len(task.validation) < 2:
            print(f"one validation window: nothing that it learns is kept (margin {self.preset.margin:g})", flush=True)
        if self.folder:
            if task.trials:
                write_text(self.folder / "trials.csv", pd.DataFrame(task.trials).to_csv(index=False))
            self._resume()
        self._log = HistoryLog(self.folder, self.rows)

    @property
    def finished(self) -> bool:
        """Whether all epochs are done."""
        return self.epoch >= self.preset.epochs

    @property
    def validation_due(self) -> bool:
        """Whether this epoch ends with a validation, and a checkpoint."""
        return self.epoch % self.preset.validate_every == 0 or self.finished

    @property
    def history(self) -> pd.DataFrame:
        """A row per epoch; its solver counts cover rollouts, base runs and validation."""
        return pd.DataFrame(self.rows)

    def collect(self) -> Batch:
        """Begin an epoch: run the base policy and the sampling agent on sequences of the training part."""
        ranker = self._ranker(self.weights(), self.rng)
        _, gap = self._roll_out(ranker, self.preset.rollouts)
        return ranker.memory.batch(relative(gap, self.preset.rollouts))

    def advantages(self, batch: Batch) -> Advantages:
        """Estimate how much better each decision was than expected: by the critic, or against the mean of its sequence's rollouts."""
        preset, task, metric = self.preset, self.task, self.cell.metric
        values = self.ppo.values(batch)
        # without a critic all values are 0: nothing that rewards at the end could be estimated by
        decay = preset.gae_lambda if preset.has_critic else 1.0
        advantage, returns = gae(values, batch.sequence, batch.reward, decay)
        if preset.credit_horizon_s is not None and metric in CREDITED:
            advantage = waiting_saved(metric, task.last, task.jobs, batch, preset.rollouts, preset.credit_horizon_s)
        return Advantages(advantage, returns, values)

    def update(self, batch: Batch, advantages: Advantages) -> None:
        """Improve actor and critic by the clipped loss."""
        start = time.perf_counter()
        self._row |= asdict(self.ppo.update(batch, advantages, (self.epoch - 1) / self.preset.epochs))
        self._row["update_seconds"] = time.perf_counter() - start

    def validate(self) -> np.ndarray:
        """Run the greedy agent on the validation windows; its score on each, lower is better."""
        scores, task = self._scores(), self.task
        self._row |= {
            "validation_rl": float(scores.mean()),
            "validation_base": task.base_score,
            "validation_random": task.random_score,
        }
        return scores

    def keep_best(self, scores: np.ndarray) -> None:
        """Keep the present weights where these validation scores are the best so far.

        They have to beat the heuristic that training started from by the preset's margin of standard errors.
        """
        score = float(scores.mean())
        if score < self.best_score and self._beats_start(scores):
            self.best_score, self.best_epoch, self.best_weights = score, self.epoch, self.weights()

    def log(self) -> dict[str, float]:
        """End the epoch: write and return its row of the history."""
        counts = self.task.counts
        row = {**self._row, "kept_epoch": self.best_epoch, **solver_columns(counts.since(self._before))}
        self._before = counts
        self.rows.append(row)
        self._log.add(self.rows)
        if self.validation_due:
            self.task.forget_solutions()  # as after an interruption
        return row

    def checkpoint(self) -> None:
        """Write everything that the rest of the training depends on; after a validation."""
        if self.folder:
            arrays = {"learner": self._state(), "best": list(self.best_weights)}
            facts = {
                "generators": [rng.bit_generator.state for rng in self._generators],
                "best": [self.best_score, self.best_epoch],
                "rows": self.rows,
            }
            save_checkpoint(self.folder, self.task.identity, arrays, facts)

    def discard_checkpoint(self) -> None:
        """Delete what an interrupted training goes on from: this one is over."""
        if self.folder:
            for name in (NAME, TRIALS):
                (self.folder / name).unlink(missing_ok=True)

    def policy(self) -> TrainedPolicy:
        """The best so far, with the facts of its training (TrainingTask.facts)."""
        start = None if self.start_scores is None else float(self.start_scores.mean())
        return TrainedPolicy(self.best_weights, self.task.facts(self.features, self.best_score, start, self.best_epoch))

    def weights(self) -> tuple[np.ndarray, ...]:
        """The present weights, in the form of a TrainedPolicy."""
        return self.ppo.weights()

    # what a learner other than PPO replaces

    def _set_up(self, threads: int | None) -> str:
        device = set_up(self.cell.seed, threads)
        self.observer = Observer(self.task.agent_jobs, self.task.layout, self.features)
        self.ppo = PPO(self.preset, self.rng, shapes_of(self.features, self.preset.agent)["actor"][1])
        return device

    @property
    def _starts_from_heuristic(self) -> bool:
        return self.preset.base_policy_bias > 0

    def _ranker(self, weights: tuple[np.ndarray, ...], rng: np.random.Generator | None = None) -> Any:
        kind = resolve_name(LEARNERS[self.preset.agent].ranker)
        return kind(TrainedPolicy(weights, {}).logits, self.observer, rng, self.preset.base_policy_bias)

    def _state(self) -> list[np.ndarray]:
        return [np.asarray(variable) for variable in self.ppo.variables()]

    def _restore(self, state: list[np.ndarray]) -> None:
        for variable, value in zip(self.ppo.variables(), state, strict=True):
            variable.assign(value)

    # what all learners share

    @property
    def _generators(self) -> tuple[np.random.Generator, ...]:
        return self.rng, self.task.stream

    def _scores(self) -> np.ndarray:
        return self.task.run(self.task.validation, self._ranker(self.weights()))["score"].to_numpy()

    def _beats_start(self, scores: np.ndarray) -> bool:
        if self.start_scores is None or self.preset.margin == 0:
            return True
        gain, error = difference(self.start_scores, scores)
        return gain > self.preset.margin * error

    def _roll_out(self, ranker: Ranker, copies: int) -> tuple[pd.DataFrame, np.ndarray]:
        """(The agent's table, rewards) of an epoch's sequences, ``copies`` of each one after another."""
        self.epoch, task = self.epoch + 1, self.task
        start = time.perf_counter()
        first = task.draw()
        base = task.run(first).iloc[np.repeat(np.arange(len(first)), copies)]
        rolling = time.perf_counter()
        agent = task.run(np.repeat(first, copies), ranker, rollout=True)
        end = time.perf_counter()
        gap, choices = task.reward(base, agent), int(agent["choices"].sum())
        means = [float(side["score"].mean()) for side in (base, agent)]
        self._row = {
            "epoch": self.epoch,
            "reward": float(gap.mean()),
            "base": means[0],
            "rl": means[1],
            "difference": means[0] - means[1],
            "decisions": int(agent["decisions"].sum()),
            "choices": choices,
            "mean_queue": float(agent["mean_queue"].mean()),
            "rollout_seconds": end - start,
            "choices_per_second": choices / (end - rolling),
            **dict.fromkeys(("validation_rl", "validation_base", "validation_random"), math.nan),
        }
        return agent, gap

    def _resume(self) -> None:
        """Go back to the state kept in the folder, if there is one of this training."""
        found, reason = load_checkpoint(self.folder, self.task.identity)
        if found is None:
            if reason:
                print(f"{reason}; training from the beginning", flush=True)
            return
        arrays, facts = found
        self._restore(arrays["learner"])
        for rng, state in zip(self._generators, facts["generators"], strict=True):
            rng.bit_generator.state = state
        self.best_weights, (self.best_score, self.best_epoch) = tuple(arrays["best"]), facts["best"]
        self.rows, self.epoch = facts["rows"], len(facts["rows"])
        _ = self.task.base_score, self.task.random_score  # their placements were counted in an epoch before
        self._before = self.task.counts
        self.task.forget_solutions()
        print(f"going on after epoch {self.epoch} of {self.preset.epochs}: an earlier training was stopped", flush=True)
