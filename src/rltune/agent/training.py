"""Train one cell's agent: roll out, reward against the base policy, update, validate, keep the best."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from rltune.agent.networks import set_up
from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.ppo import PPO
from rltune.agent.rollout import AgentRanker, RandomRanker
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import Cell, LookaheadConfig, Preset, SimulationConfig
from rltune.environment.observation import Observer
from rltune.environment.reward import METRIC_COLUMN, REWARD_FLOOR, reward
from rltune.placement.counts import Counts
from rltune.placement.placers import placer_of
from rltune.simulator.batch import Ranker, Setting, simulate
from rltune.simulator.metrics import sequence_table
from rltune.traces.split import Split, disjoint_windows, spread

RANDOM_ORDERS = 5
"""Random runs of each validation window that an agent has to beat."""


@dataclass(frozen=True)
class Training:
    """What came out."""

    policy: TrainedPolicy
    history: pd.DataFrame
    runs_on: str


def _solver_columns(counts: Counts) -> dict[str, float]:
    names = ("asked", "settled", "cached", "calls", "infeasible", "limit", "failure", "seconds")
    latency = {f"milp_{name}_ms": value for name, value in counts.latency_ms().items()}
    return {f"milp_{name}": getattr(counts, name) for name in names} | latency


def _group_mean(values: np.ndarray, size: int) -> np.ndarray:
    """Each value's mean over its consecutive group of ``size``."""
    return np.repeat(values.reshape(-1, size).mean(axis=1), size)


def train(
    cell: Cell,
    preset: Preset,
    lookahead: LookaheadConfig,
    jobs: Jobs,
    layout: Layout,
    split: Split,
    threads: int | None = None,
    progress: Callable[[dict[str, float]], None] | None = None,
    simulation: SimulationConfig = SimulationConfig(),
) -> Training:
    """Train on the training part, choose the checkpoint on the validation part; the test part is not touched.

    Sequences start anywhere in the training part. Every ``validate_every`` epochs, and at the last, the
    greedy policy runs on disjoint validation windows; the weights with the best mean metric there are kept.
    ``progress`` is called with each epoch's row of the history, whose solver counts cover everything up to
    there: rollouts, base runs, validation. An agent whose kept weights do not beat both its base policy and a
    random order on validation has not learned; its facts say so.
    """
    runs_on = set_up(cell.seed, threads)
    # one stream draws the sequences, the same for cells that differ in features or placement; others draw the rest
    same = cell.but(features="", placement="", preset="").hash
    draw = np.random.default_rng([cell.seed, int(same, 16)])
    rng = np.random.default_rng([cell.seed, int(cell.hash, 16)])
    ppo = PPO(preset, rng)
    placer = placer_of(cell.placement, lookahead)
    setting = Setting(cell.policy, cell.blocking, cell.placement, cell.locality, **simulation.model_dump())
    observer = Observer(jobs, layout, cell.features)
    column, floor = METRIC_COLUMN[cell.metric], REWARD_FLOOR[cell.metric]
    length = preset.sequence_jobs

    def run(first: np.ndarray, ranker: Ranker | None) -> pd.DataFrame:
        state = simulate(jobs, layout, first, np.full(len(first), length), setting, ranker, placer)
        return sequence_table(jobs, state, layout.gpus)

    before = Counts()
    held = spread(disjoint_windows(*split.validation, length), preset.validation_windows)
    held_base = run(held, None)[column].mean()
    held_random = run(np.repeat(held, RANDOM_ORDERS), RandomRanker(np.random.default_rng(cell.seed)))[column].mean()
    rows, best, best_weights = [], np.inf, None
    last_start = split.train[1] - length
    for epoch in range(1, preset.epochs + 1):
        began = time.perf_counter()
        begins = draw.integers(split.train[0], last_start, size=preset.trajectories, endpoint=True)
        first = np.repeat(begins, preset.rollouts)
        base = np.repeat(run(begins, None)[column].to_numpy(), preset.rollouts)
        ranker = AgentRanker(ppo.snapshot().logits, observer, rng)
        table = run(first, ranker)
        agent = table[column].to_numpy()
        gap = reward(base, agent, floor)
        batch = ranker.batch(gap if preset.rollouts == 1 else gap - _group_mean(gap, preset.rollouts))
        rolled = time.perf_counter()
        log = ppo.update(batch)
        updated = time.perf_counter()
        row = {
            "epoch": epoch, "reward": float(gap.mean()), "base_s": base.mean(), "rl_s": agent.mean(),
            "difference": (base - agent).mean(), **asdict(log), "decisions": int(table["decisions"].sum()),
            "choices": int(table["choices"].sum()), "mean_queue": float(table["mean_queue"].mean()),
            "rollout_seconds": rolled - began, "update_seconds": updated - rolled,
            "validation_rl": np.nan, "validation_base": np.nan, "validation_random": np.nan,
        }  # fmt: skip
        if epoch % preset.validate_every == 0 or epoch == preset.epochs:
            snapshot = ppo.snapshot()
            greedy = AgentRanker(snapshot.logits, observer)
            score = run(held, greedy)[column].mean()
            row |= {"validation_rl": score, "validation_base": held_base, "validation_random": held_random}
            if score < best:
                best, best_weights = score, snapshot.weights
        total = placer.counts.copy() if placer else Counts()
        row |= _solver_columns(total.since(before))
        before = total
        rows.append(row)
        if progress:
            progress(row)
    assert best_weights is not None
    learned = bool(best < held_base and best < held_random)
    history = pd.DataFrame(rows)
    facts = {
        "cell": asdict(cell), "features": cell.features, "preset": preset.model_dump(),
        "simulation": simulation.model_dump(),
        "lookahead": lookahead.model_dump() if placer else None, "validation_metric": float(best),
        "validation_base": float(held_base), "validation_random": float(held_random), "learned": learned,
        "best_epoch": int(history.loc[history["validation_rl"].idxmin(), "epoch"]),
    }  # fmt: skip
    return Training(TrainedPolicy(best_weights, facts), history, runs_on)
