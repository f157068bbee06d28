"""Run schedulers on held-out windows: a trained agent beside its base policy, and the baselines everyone shares."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from rltune.agent.exercise import RANDOM_ORDERS
from rltune.agent.learners import ranker_of
from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.rollout import RandomRanker
from rltune.agent.ways import taken
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.workload import Workload
from rltune.config import Cell, RunConfig
from rltune.config.run import EvaluationConfig
from rltune.errors import ConfigError, DataError
from rltune.placement.counts import Counts
from rltune.placement.placers import placer_of
from rltune.policies import IDS, OWN
from rltune.simulator.batch import Ranker, SchedulerConfig, simulate
from rltune.simulator.bound import lower_bound
from rltune.simulator.metrics import job_table, sequence_table
from rltune.simulator.state import State
from rltune.traces.split import Split, disjoint_windows, spread

LABELS = ["role", "policy", "backfill", "placement", "locality", "sequence_jobs", "window"]


class Evaluation(NamedTuple):
    """An agent's test results."""

    windows: pd.DataFrame
    """A row a scheduler × test window."""
    jobs: pd.DataFrame
    """A row a job, of the agent and of its base policy."""
    placements: pd.DataFrame
    """A row a placement question of the sample that is solved twice (rltune.placement.agreement)."""


def evaluate(
    cell: Cell,
    policy: TrainedPolicy,
    workload: Workload,
    config: RunConfig,
    progress: Callable[[str], None] = lambda line: None,
) -> Evaluation:
    """Run an agent, its base policy and the controls on the test windows of a workload.

    Roles: ``rltune`` the greedy agent; ``base`` its base policy with the same backfill, placement and
    locality; ``base_best_fit`` the base with best_fit, where that differs; ``random`` a new random order at
    every decision, the mean of RANDOM_ORDERS runs with best_fit: what not staying blocked gains without
    any learning; ``rltune_also`` and ``base_also`` both under the other placements and localities of
    ``evaluation.also``. All see the same test windows, each from an idle cluster, the same run-time estimates, and the
    rules of ``simulation``. An agent that chose its own rules in training (rltune.agent.ways) is run under them, and goes
    by the calibrated estimates if it chose to.
    """
    jobs, layout, evaluation, lookahead = workload.jobs, workload.layout, config.evaluation, config.lookahead
    split, simulation, job_ids = workload.split, config.simulation, workload.job_ids
    windows, tables = [], []
    scheduler = SchedulerConfig(cell.policy, cell.backfill, cell.placement, cell.locality, **simulation.model_dump())
    own, calibrated = taken(policy.facts, scheduler, jobs, workload.calibrated, f"policy of {cell.name}")
    simple = replace(scheduler, placement="best_fit")
    for length, first in test_windows(split, evaluation).items():
        runs: list[tuple[str, SchedulerConfig, Ranker | None, int]] = [
            ("rltune", own, ranker_of(policy, calibrated, layout), 1),
            ("base", scheduler, None, 1),
            ("random", simple, RandomRanker(np.random.default_rng(evaluation.seed)), RANDOM_ORDERS),
        ]
        if scheduler != simple:
            runs.append(("base_best_fit", simple, None, 1))
        for other in evaluation.also:
            how = replace(scheduler, placement=other.placement, locality=other.locality)
            if how != scheduler:
                mine = replace(own, placement=other.placement, locality=other.locality)
                runs.append(("rltune_also", mine, runs[0][2], 1))
                runs.append(("base_also", how, None, 1))
        for role, how, ranker, times in runs:
            began = time.perf_counter()
            placer = placer_of(how.placement, lookahead)
            begins = np.repeat(first, times)
            told = calibrated if role in ("rltune", "rltune_also") else jobs
            state = simulate(told, layout, begins, np.full(len(begins), length), how, ranker, placer)
            seconds = time.perf_counter() - began
            counts = placer.counts if placer else Counts()
            windows.append(_labelled(jobs, state, layout, role, how, length, times, counts, seconds))
            if role in ("rltune", "base"):
                mine = job_table(jobs, state).rename(columns={"sequence": "window"})
                tables.append(mine.assign(role=role, sequence_jobs=length, job_id=job_ids[mine["job"]]))
            name = {"rltune": "RLTune", "rltune_also": "RLTune", "random": "random order"}.get(role, how.policy)
            where = f"{how.backfill}, {how.placement}, {how.locality}"
            mean = windows[-1]["wait_s"].mean()
            progress(f"{len(first)} windows of {length} jobs, {name}, {where}: mean wait {mean:.0f} s")
    all_windows = pd.concat(windows, ignore_index=True)
    all_jobs = pd.concat(tables, ignore_index=True)
    return Evaluation(
        all_windows[LABELS + [c for c in all_windows if c not in LABELS]],
        all_jobs[["role", "sequence_jobs", "window", "job_id", "gpus", "run_s", "wait_s", "jct_s", "bsld"]],
        pd.DataFrame(),
    )


def with_baselines(windows: pd.DataFrame, baselines: pd.DataFrame, locality: str) -> pd.DataFrame:
    """An agent's windows, and behind them those of the heuristics in its locality.

    Raises DataError where the heuristics were run on other test windows.
    """
    mine = baselines[baselines["locality"] == locality]
    keys = ["sequence_jobs", "first_job"]
    if set(mine.loc[mine["role"] == "baseline", keys].itertuples(index=False, name=None)) != set(
        windows[keys].itertuples(index=False, name=None)
    ):
        raise DataError("the heuristics were run on other test windows or localities; run the stage baselines again")
    return pd.concat([windows, mine], ignore_index=True)


def evaluate_baselines(workload: Workload, config: RunConfig, localities: Sequence[str] = ("strict",)) -> pd.DataFrame:
    """A row a heuristic × window: every policy under every backfill rule and locality, with best_fit.

    Roles: ``baseline`` on the test windows of :func:`evaluate`; ``baseline_validation`` on windows of the
    validation part, which is what an operator could choose a heuristic by. Policies of the user's own have to be
    loaded. ``bound_s`` of a test window is a mean wait that no schedule goes below (rltune.simulator.bound). Raises
    ConfigError for a policy that does not exist.
    """
    jobs, layout, split = workload.jobs, workload.layout, workload.split
    evaluation, simulation = config.evaluation, config.simulation
    unknown = [name for name in evaluation.baseline_policies if name not in IDS and name not in OWN]
    if unknown:
        raise ConfigError(
            f"evaluation.baseline_policies: found {', '.join(unknown)}; allowed: {', '.join([*IDS, *OWN])}"
        )
    frames = []
    for length, first in test_windows(split, evaluation).items():
        parts = {"baseline": first}
        if split.validation[1] - split.validation[0] >= length:
            held = disjoint_windows(*split.validation, length)
            parts["baseline_validation"] = spread(held, evaluation.max_windows)
        for role, begins in parts.items():
            bounds = (
                [lower_bound(jobs, layout, int(f), length).wait_s for f in begins] if role == "baseline" else np.nan
            )
            for policy, backfill, locality in product(
                evaluation.baseline_policies, evaluation.baseline_backfills, localities
            ):
                scheduler = SchedulerConfig(policy, backfill, "best_fit", locality, **simulation.model_dump())
                began = time.perf_counter()
                state = simulate(jobs, layout, begins, np.full(len(begins), length), scheduler)
                seconds = time.perf_counter() - began
                one = _labelled(jobs, state, layout, role, scheduler, length, seconds=seconds)
                frames.append(one.assign(bound_s=bounds))
    frame = pd.concat(frames, ignore_index=True)
    return frame[LABELS + [c for c in frame if c not in LABELS]]


def test_windows(split: Split, evaluation: EvaluationConfig) -> dict[int, np.ndarray]:
    """Length → first jobs of the disjoint test windows; lengths that do not fit the test part are left out.

    Raises ConfigError when none fits.
    """
    room = split.test[1] - split.test[0]
    fitting = [length for length in evaluation.sequence_jobs if length <= room]
    if not fitting:
        lengths = ", ".join(map(str, evaluation.sequence_jobs))
        raise ConfigError(
            f"evaluation.sequence_jobs: found {lengths}, but the test part has only {room} jobs, so no test window "
            "fits; give a shorter length or a longer trace"
        )
    return {n: spread(disjoint_windows(*split.test, n), evaluation.max_windows) for n in fitting}


def _labelled(
    jobs: Jobs,
    state: State,
    layout: Layout,
    role: str,
    scheduler: SchedulerConfig,
    length: int,
    times: int = 1,
    counts: Counts = Counts(),
    seconds: float = 0.0,
) -> pd.DataFrame:
    """A row a window (the mean of its ``times`` consecutive runs), who ran it, what the solver did, seconds a run."""
    table = sequence_table(jobs, state, layout.gpus)
    table = table.groupby(table.pop("sequence") // times).mean().rename_axis("window").reset_index()
    return table.astype({"jobs": int, "first_job": int}).assign(
        role=role,
        **asdict(scheduler),
        sequence_jobs=length,
        **_solver_columns(counts, len(table)),
        seconds=seconds / len(state.n),
    )


def _solver_columns(counts: Counts, windows: int) -> dict[str, np.ndarray]:
    """The placer's counts belong to a whole batch of windows: in its first row, zeros in the others."""
    values = {
        "milp_asked": counts.asked,
        "milp_settled": counts.settled,
        "milp_cached": counts.cached,
        "milp_calls": counts.calls,
        "milp_infeasible": counts.infeasible,
        "milp_limit": counts.limit,
        "milp_failure": counts.failure,
    }
    return {name: np.concatenate([[value], np.zeros(windows - 1, np.int64)]) for name, value in values.items()}
