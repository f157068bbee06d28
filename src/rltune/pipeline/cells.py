"""Train and intervals one cell of the matrix, and the baselines its workload's cells share."""

from __future__ import annotations

import os
from collections.abc import Callable

import pandas as pd

from rltune.agent.checkpoint import discard_checkpoint
from rltune.agent.exercise import Exercise
from rltune.agent.learners import train
from rltune.agent.policy_file import TrainedPolicy, load_policy, save_policy
from rltune.config import Cell, Workspace
from rltune.files import write_text
from rltune.pipeline.prepare import Workload, ensure_workload


def threads() -> int | None:
    """Threads this process was given (RLTUNE_THREADS), None where nobody said."""
    value = os.environ.get("RLTUNE_THREADS", "")
    return int(value) if value.isdigit() and int(value) > 0 else None


def workload_of(workspace: Workspace, cell: Cell) -> Workload:
    """A cell's workload, from what earlier stages left or made now."""
    return ensure_workload(workspace, cell.trace, cell.cluster, cell.estimate)


def train_cell(
    workspace: Workspace, cell: Cell, workload: Workload, progress: Callable[[dict], None] | None = None
) -> tuple[TrainedPolicy, pd.DataFrame, str]:
    """Train a cell's agent and write its policy and history; (policy, history, what it ran on).

    A training of the same cell that was interrupted goes on from its last validation.
    """
    preset, folder = workspace.config.preset(cell.preset), workspace.training(cell)
    exercise = Exercise(
        cell,
        preset,
        workspace.config.lookahead,
        workload.jobs,
        workload.layout,
        workload.split,
        workspace.config.simulation,
        workload.calibrated,
        folder,
    )
    result = train(exercise, threads(), progress, folder)
    write_text(workspace.history(cell), result.history.to_csv(index=False))
    save_policy(workspace.policy(cell), result.policy)
    discard_checkpoint(folder)
    return result.policy, result.history, result.runs_on


def ensure_policy(workspace: Workspace, cell: Cell, workload: Workload) -> TrainedPolicy:
    """A cell's trained policy; trained now if it is not there, or was trained with another preset or other rules."""
    if workspace.policy(cell).is_file():
        policy = load_policy(workspace.policy(cell))
        wanted = {"preset": workspace.config.preset(cell.preset), "simulation": workspace.config.simulation}
        if policy.facts.get("lookahead"):  # None where the agent was trained without
            wanted["lookahead"] = workspace.config.lookahead
        changed = [name for name, block in wanted.items() if policy.facts.get(name) != block.model_dump()]
        if not changed:
            return policy
        print(f"{', '.join(changed)}: changed since this agent was trained, training it anew", flush=True)
    train_cell(workspace, cell, workload)
    return load_policy(workspace.policy(cell))
