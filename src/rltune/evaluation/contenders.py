"""Schedulers on sequences of jobs: heuristics, trained agents with the scheduler configuration they chose, and orders
drawn at random."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product

import numpy as np
import pandas as pd

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.rollout import RandomRanker, ranker_of
from rltune.agent.task import RANDOM_ORDERS
from rltune.cluster.fit import Jobs
from rltune.cluster.types import differ
from rltune.cluster.workload import Workload
from rltune.config import Cell, LookaheadConfig, RunConfig
from rltune.errors import DataError
from rltune.placement.counts import CountingPlacer
from rltune.placement.placers import placer_of
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table
from rltune.simulator.state import State

Workloads = Mapping[tuple[str, str, str], Workload]
"""By trace, cluster and estimate."""
Policies = Mapping[Cell, TrainedPolicy]


@dataclass(frozen=True)
class Contender:
    """A scheduler: without ``policy`` and ``random`` the heuristic of its configuration."""

    scheduler: SchedulerConfig
    policy: TrainedPolicy | None = None
    """A trained agent that orders the queue."""
    lookahead: LookaheadConfig = field(kw_only=True)
    """Of the placement model, where the scheduler uses it."""
    random: int | None = None
    """Seed of an order that is drawn at random at every decision."""


def contender_of(config: RunConfig, cell: Cell, agent: TrainedPolicy | None = None, /, **changes: object) -> Contender:
    """A cell's trained agent, or without ``agent`` its base policy, under the rules of the run and the cell.

    ``changes``: fields of SchedulerConfig that differ from the cell's.
    """
    scheduler = SchedulerConfig.of(cell, config.simulation, **changes)
    return Contender(scheduler, agent, lookahead=config.lookahead)


def rule_of(config: RunConfig, policy: str, backfill: str, locality: str, **changes: object) -> Contender:
    """A heuristic with best_fit under the rules of the run, but for ``changes`` of them."""
    rules = {**config.simulation.model_dump(), **changes}
    return Contender(SchedulerConfig(policy, backfill, "best_fit", locality, **rules), lookahead=config.lookahead)


def workload_of(cell: Cell, workloads: Workloads) -> Workload:
    """A cell's workload."""
    return workloads[cell.trace, cell.cluster, cell.estimate]


def heuristics(
    config: RunConfig, workload: Workload, locality: str = "strict", tuned: bool = False
) -> dict[str, Contender]:
    """``policy backfill`` → every policy of the baselines under each of their backfill rules, with best_fit.

    Also under conservative backfilling where an agent may choose it (``tuned``: RunConfig.tuned_on), and where GPU types
    differ in speed: each job on the type on which it completes first.
    """
    backfills = config.evaluation.baseline_backfills + ["conservative"] * (tuned or differ(workload.jobs))
    return {
        f"{policy} {backfill}": rule_of(config, policy, backfill, locality)
        for policy, backfill in product(config.evaluation.baseline_policies, dict.fromkeys(backfills))
    }


def scheduler_used(
    workload: Workload, contender: Contender, who: str = "trained policy"
) -> tuple[SchedulerConfig, Jobs]:
    """(The scheduler configuration, with the cluster's slowdowns; the jobs with the estimates) that a contender uses: an agent
    those that it chose, but its rule for the GPU type only where types differ in speed.

    Raises DataError, naming ``who``, for an agent that uses calibrated estimates where the workload has none.
    """
    chosen = dict(contender.policy.facts.get("scheduler", {})) if contender.policy is not None else {}
    jobs = workload.calibrated if chosen.pop("uses_calibrated", False) else workload.jobs
    if jobs is None and np.array_equal(workload.jobs.row["estimate_s"], workload.jobs.run_s):
        jobs = workload.jobs  # exact: nothing to correct
    if jobs is None:
        raise DataError(f"{who}: uses calibrated estimates, found a workload without any")
    if not differ(workload.jobs):
        chosen.pop("types", None)
    return replace(contender.scheduler, **chosen, **workload.slowdowns), jobs


def run(
    workload: Workload, contender: Contender, first: np.ndarray, n: np.ndarray, placer: CountingPlacer | None = None
) -> tuple[State, float]:
    """(Sequences of ``n[s]`` jobs from job ``first[s]``, each from an idle cluster; seconds on the clock).

    An agent acts greedily. ``placer``: one to ask, for its counts, instead of a new one. Raises as :func:`scheduler_used`.
    """
    scheduler, jobs = scheduler_used(workload, contender)
    ranker = None
    if contender.policy is not None:
        ranker = ranker_of(contender.policy, jobs, workload.layout)
    elif contender.random is not None:
        ranker = RandomRanker(np.random.default_rng(contender.random))
    placer = placer or placer_of(scheduler.placement, contender.lookahead)
    began = time.perf_counter()
    state = simulate(jobs, workload.layout, first, n, scheduler, ranker, placer)
    return state, time.perf_counter() - began


def simulate_windows(
    workload: Workload, contender: Contender, first: np.ndarray, length: int, placer: CountingPlacer | None = None
) -> tuple[pd.DataFrame, State]:
    """(A row per window of ``length`` jobs, the state behind it): window, the columns of
    rltune.simulator.metrics.sequence_table, the scheduler configuration but for the maximum waits, ``sequence_jobs``, and
    ``seconds`` of one window on the clock.

    A random order is run RANDOM_ORDERS times on each window, and the row has the mean.
    """
    times = 1 if contender.random is None else RANDOM_ORDERS
    starts = np.repeat(first, times)
    state, seconds = run(workload, contender, starts, np.full(len(starts), length), placer)
    table = sequence_table(workload.jobs, state, workload.layout.gpus)
    table = table.groupby(table.pop("sequence") // times).mean().rename_axis("window").reset_index()
    scheduler, jobs = scheduler_used(workload, contender)
    ran = {name: value for name, value in asdict(scheduler.on(jobs)).items() if name != "max_wait_h"}
    table = table.astype({"jobs": int, "first_job": int})
    return table.assign(**ran, sequence_jobs=length, seconds=seconds / len(starts)), state


def by_window(
    workload: Workload, contenders: Mapping[str, Contender], first: np.ndarray, length: int, timed: bool = False
) -> pd.DataFrame:
    """A row per contender × window: ``who`` (its name) and the columns of :func:`simulate_windows`.

    ``timed``: compile before ``seconds`` are measured; all windows run side by side on one core.
    """
    frames = []
    for name, contender in contenders.items():
        if timed:
            simulate_windows(workload, contender, first[:1], length)
        frames.append(simulate_windows(workload, contender, first, length)[0].assign(who=name))
    return pd.concat(frames, ignore_index=True)
