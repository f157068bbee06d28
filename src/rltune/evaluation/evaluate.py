"""Run a trained agent, its base policy and the baselines on the held-out windows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import pandas as pd

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.rollout import AgentRanker
from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import Cell, LookaheadConfig
from rltune.config.run import EvaluationConfig
from rltune.errors import ConfigError
from rltune.placement.lookahead import Counts, Lookahead
from rltune.simulator.batch import Setting, simulate
from rltune.simulator.metrics import job_table, sequence_table
from rltune.simulator.state import State
from rltune.traces.split import Split, disjoint_windows, spread


def evaluate(
    cell: Cell,
    policy: TrainedPolicy,
    jobs: Jobs,
    job_ids: np.ndarray,
    layout: Layout,
    split: Split,
    evaluation: EvaluationConfig,
    lookahead: LookaheadConfig,
    progress: Callable[[str], None] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(windows, jobs): a row a scheduler × test window, and a row a job of the agent and its base.

    Roles: ``rltune`` the greedy agent; ``base`` its base policy with the same blocking, placement and
    locality; ``base_best_fit`` the base with best_fit, where that differs; ``baseline`` every policy under
    every blocking rule with best_fit; ``baseline_validation`` the same on windows of the validation part, which is
    what an operator could choose a heuristic by. All others see the same test windows, each from an idle cluster, and the same
    run-time estimates.
    """
    windows, tables = [], []
    baselines = [
        Setting(p, b, "best_fit") for p in evaluation.baseline_policies for b in evaluation.baseline_blockings
    ]
    for length in evaluation.sequence_jobs:
        if split.test[1] - split.test[0] < length:
            if progress:
                progress(f"no window of {length} jobs fits the {split.test[1] - split.test[0]} test jobs")
            continue
        first = spread(disjoint_windows(*split.test, length), evaluation.max_windows)
        runs = [
            ("rltune", Setting(cell.policy, cell.blocking, cell.placement)),
            ("base", Setting(cell.policy, cell.blocking, cell.placement)),
        ]
        if cell.placement != "best_fit":
            runs.append(("base_best_fit", Setting(cell.policy, cell.blocking, "best_fit")))
        runs += [("baseline", setting) for setting in baselines]
        for role, setting in runs:
            began = time.perf_counter()
            placer = Lookahead(lookahead) if setting.placement == "lookahead" else None
            ranker = AgentRanker(policy.logits, jobs, layout, policy.features) if role == "rltune" else None
            state = simulate(jobs, layout, first, np.full(len(first), length), setting, ranker, placer)
            seconds = time.perf_counter() - began
            table = _labelled(jobs, state, layout, role, setting, length, placer.counts if placer else Counts(), seconds)
            windows.append(table)
            if role in ("rltune", "base"):
                mine = job_table(jobs, state).rename(columns={"sequence": "window"})
                tables.append(mine.assign(role=role, sequence_jobs=length, job_id=job_ids[mine["job"]]))
            if progress and role in ("rltune", "base"):
                name = "RLTune" if role == "rltune" else f"{setting.policy}, {setting.blocking}"
                progress(f"{len(first)} windows of {length} jobs, {name}: mean wait {table['wait_s'].mean():.0f} s")
        if split.validation[1] - split.validation[0] >= length:
            held = spread(disjoint_windows(*split.validation, length), evaluation.max_windows)
            for setting in baselines:
                state = simulate(jobs, layout, held, np.full(len(held), length), setting)
                windows.append(_labelled(jobs, state, layout, "baseline_validation", setting, length))
    if not windows:
        lengths = ", ".join(map(str, evaluation.sequence_jobs))
        raise ConfigError(
            f"evaluation.sequence_jobs: found {lengths}, but the test part has only {split.test[1] - split.test[0]} "
            "jobs, so no test window fits; give a shorter length or a longer trace"
        )
    labels = ["role", "policy", "blocking", "placement", "sequence_jobs", "window"]
    all_windows = pd.concat(windows, ignore_index=True)
    all_jobs = pd.concat(tables, ignore_index=True)
    return (
        all_windows[labels + [c for c in all_windows if c not in labels]],
        all_jobs[["role", "sequence_jobs", "window", "job_id", "gpus", "run_s", "wait_s", "jct_s", "bsld"]],
    )


def _labelled(
    jobs: Jobs,
    state: State,
    layout: Layout,
    role: str,
    setting: Setting,
    length: int,
    counts: Counts = Counts(),
    seconds: float = 0.0,
) -> pd.DataFrame:
    """A row a window with who ran it, what the solver did, and the seconds it took on average."""
    table = sequence_table(jobs, state, layout.gpus).rename(columns={"sequence": "window"})
    return table.assign(
        role=role, **asdict(setting), sequence_jobs=length, **_solver_columns(counts, len(table)),
        seconds=seconds / len(table),
    )  # fmt: skip


def _solver_columns(counts: Counts, windows: int) -> dict[str, np.ndarray]:
    """The placer's counts belong to a whole batch of windows: in its first row, zeros in the others."""
    values = {
        "milp_asked": counts.asked, "milp_settled": counts.settled, "milp_cached": counts.cached,
        "milp_calls": counts.calls, "milp_infeasible": counts.infeasible, "milp_limit": counts.limit,
        "milp_failure": counts.failure,
    }  # fmt: skip
    return {name: np.concatenate([[value], np.zeros(windows - 1, np.int64)]) for name, value in values.items()}
