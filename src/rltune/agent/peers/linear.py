"""A tuned linear score: twelve weights searched by CMA-ES (Hansen and Ostermeier 2001), the cheap learner that a
network has to justify itself against.

A generation's candidates all run the same sequences, other ones for each generation, and are compared by their mean
score. The search starts from the order by the smallest area, which is kept if nothing better comes.
"""

import math
import time
from dataclasses import asdict

import numpy as np

from rltune.agent.peers.linear_score import AREA, LinearRanker
from rltune.agent.ppo import UpdateLog
from rltune.agent.trainer import Trainer

SIGMA = 0.2
"""First step of the search, from weights of 1 (our choice)."""


class LinearTrainer(Trainer):
    """A search, generation by generation: ``preset.epochs`` of ``preset.trajectories`` sequences a candidate."""

    _starts_from_heuristic = True

    def _set_up(self, threads: int | None) -> str:
        import cma  # seconds that others need not wait for

        options = {"seed": math.nan, "randn": lambda *shape: self.rng.standard_normal(shape), "verbose": -9}
        self._search = cma.CMAEvolutionStrategy(AREA, SIGMA, options)
        self._scores_so_far: list[np.ndarray] = []
        return "one core"

    def collect(self) -> np.ndarray:
        """Run a generation; the mean score of each candidate."""
        self._candidates = np.array(self._search.ask())
        task = self.task
        ranker = LinearRanker(task.agent_jobs, task.layout, self._candidates)
        agent, _ = self._roll_out(ranker, len(self._candidates))
        return agent["score"].to_numpy().reshape(-1, len(self._candidates)).mean(axis=0)

    def advantages(self, scores: np.ndarray) -> np.ndarray:
        """The scores themselves: the search compares candidates by rank."""
        return scores

    def update(self, scores: np.ndarray, advantages: np.ndarray) -> None:
        """Move the search towards the better candidates."""
        start = time.perf_counter()
        self._search.tell(list(self._candidates), advantages.tolist())
        self._scores_so_far.append(scores)
        self._row |= asdict(UpdateLog(actor_iterations=1))
        self._row["update_seconds"] = time.perf_counter() - start

    def weights(self) -> tuple[np.ndarray, ...]:
        """The mean of the search, as a network of one layer: logits, the highest first."""
        mean = self._search.mean if self._scores_so_far else AREA
        return -mean[:, None], np.zeros(1)

    def _ranker(self, weights: tuple[np.ndarray, ...], rng: np.random.Generator | None = None) -> LinearRanker:
        return LinearRanker(self.task.agent_jobs, self.task.layout, -weights[0].T)

    def _state(self) -> list[np.ndarray]:
        return [np.array(self._scores_so_far)]

    def _restore(self, state: list[np.ndarray]) -> None:
        """Repeat the search with the scores it had."""
        for scores in state[0]:
            self._search.tell(self._search.ask(), scores.tolist())
            self._scores_so_far.append(scores)
