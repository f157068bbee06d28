"""How good and how fast the search is that plans order and GPU types together (rltune.simulator.joint)."""

import time
from typing import Any

import numpy as np

from parts.heldout import Task, loaded
from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.ppo import PPO
from rltune.agent.rollout import ranker_of
from rltune.config import Preset
from rltune.environment.observation import width_of
from rltune.evaluation.studies.gpu_types import SPREAD
from rltune.placement.joint import is_proven, measure, questions
from rltune.simulator.batch import Simulation, simulate
from rltune.simulator.config import SchedulerConfig
from rltune.traces.split import disjoint_windows, spread

LENGTH = 256
QUEUED = 60
"""Jobs in the queue, at least, of the decisions that are timed."""


def search_quality(task: Task) -> dict[str, float | None]:
    """How good and how fast the search is from the validation windows on, and how many decisions a second a network ranks."""
    workload = loaded(task)
    scheduler = SchedulerConfig("saf", "conservative", locality=SPREAD, types="joint", gpu_price=0.1)
    first = spread(disjoint_windows(*workload.split.validation, LENGTH), 8)
    asked = questions(workload.jobs, workload.layout, first, LENGTH, scheduler)
    measured = measure(asked, most=60)
    policy = TrainedPolicy(PPO(Preset(), np.random.default_rng(1), width_of("rich")).weights(), {"features": "rich"})
    ranker = ranker_of(policy, workload.jobs, workload.layout)
    n = np.full(len(first), LENGTH)
    simulate(workload.jobs, workload.layout, first[:1], n[:1], scheduler, ranker)  # compiled
    began = time.perf_counter()
    state = simulate(workload.jobs, workload.layout, first, n, scheduler, ranker)
    rate = state.status["decisions"].sum() / (time.perf_counter() - began)
    each = []
    for begin in first[: len(first) // 2]:
        timed = Timed(workload.jobs, workload.layout, [begin], [4 * LENGTH], scheduler)
        timed.advance()
        each += timed.each
    long = [ms for ms, queued in each if queued >= QUEUED] or [float("nan")]
    figures = {
        "search_questions": float(len(measured)),
        "search_gap_p50": measured["gap"].median(),
        "search_gap_p95": measured["gap"].quantile(0.95),
        "search_proven": float(np.mean([is_proven(q) for q in asked])),
        "cvxpy_p50_ms": measured["program_ms"].median(),
        "program_p50_ms": float(np.median(long)),
        "program_p95_ms": float(np.percentile(long, 95)),
        "rollout_decisions_per_s": float(rate),
    }
    return {name: round(value, 4) if value == value else None for name, value in figures.items()}


class Timed(Simulation):
    """One sequence; keeps (ms, jobs queued) of each of its decisions."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.each: list[tuple[float, int]] = []

    def reserve(self) -> None:
        """As always, timed."""
        queued, began = int(self.state.queue["len"].sum()), time.perf_counter()
        super().reserve()
        self.each.append((1000 * (time.perf_counter() - began), queued))
