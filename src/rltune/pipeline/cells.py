"""Train and judge one cell of the matrix."""

from __future__ import annotations

import os
from collections.abc import Callable

import pandas as pd

from rltune.agent.policy_file import TrainedPolicy, load_policy, save_policy
from rltune.config import Cell, Workspace
from rltune.evaluation.evaluate import evaluate
from rltune.files import aside, write_text
from rltune.pipeline.prepare import Workload, ensure_workload


def threads() -> int | None:
    """Threads this process was given (RLTUNE_THREADS), None where nobody said."""
    value = os.environ.get("RLTUNE_THREADS", "")
    return int(value) if value.isdigit() and int(value) > 0 else None


def train_cell(
    workspace: Workspace, cell: Cell, workload: Workload, progress: Callable[[dict], None] | None = None
) -> tuple[TrainedPolicy, pd.DataFrame, str]:
    """Train a cell's agent and write its policy and history; (policy, history, what it ran on)."""
    from rltune.agent.training import train  # TensorFlow takes seconds to load: only where it is used

    preset = workspace.config.preset(cell.preset)
    result = train(
        cell, preset, workspace.config.lookahead, workload.jobs, workload.layout, workload.split, threads(), progress
    )
    write_text(workspace.history(cell), result.history.to_csv(index=False))
    save_policy(workspace.policy(cell), result.policy)
    return result.policy, result.history, result.runs_on


def ensure_policy(workspace: Workspace, cell: Cell, workload: Workload) -> TrainedPolicy:
    """A cell's trained policy, trained now if it is not there."""
    if not workspace.policy(cell).is_file():
        train_cell(workspace, cell, workload)
    return load_policy(workspace.policy(cell))


def evaluate_cell(
    workspace: Workspace,
    cell: Cell,
    policy: TrainedPolicy,
    workload: Workload,
    progress: Callable[[str], None] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Judge a cell's policy on the test part and write both tables of results."""
    config = workspace.config
    windows, jobs = evaluate(
        cell, policy, workload.jobs, workload.job_ids, workload.layout, workload.split, config.evaluation,
        config.lookahead, progress,
    )  # fmt: skip
    with aside(workspace.test_jobs(cell)) as temporary:
        jobs.to_parquet(temporary, index=False)
    write_text(workspace.windows(cell), windows.to_csv(index=False))
    return windows, jobs


def ensure_evaluated(workspace: Workspace, cell: Cell) -> pd.DataFrame:
    """A cell's windows.csv, from what earlier stages left or made now."""
    if not (workspace.windows(cell).is_file() and workspace.test_jobs(cell).is_file()):
        workload = ensure_workload(workspace, cell)
        evaluate_cell(workspace, cell, ensure_policy(workspace, cell, workload), workload)
    return pd.read_csv(workspace.windows(cell))
