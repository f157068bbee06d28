"""Train and intervals one cell of the matrix, and the baselines its workload's cells share."""

from __future__ import annotations

import os
from collections.abc import Callable

import pandas as pd

from rltune.agent.learners import make_trainer
from rltune.agent.policy_file import TrainedPolicy, load_policy, save_policy
from rltune.agent.task import TrainingTask
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
    from rltune.agent.trainer import fit  # TensorFlow, which only training needs

    config, folder = workspace.config, workspace.training(cell)
    task = TrainingTask(cell, config.preset(cell.preset), workload, config.lookahead, config.simulation, folder)
    trainer = make_trainer(task, folder, threads())
    policy = fit(trainer, progress)
    write_text(workspace.history(cell), trainer.history.to_csv(index=False))
    save_policy(workspace.policy(cell), policy)
    trainer.discard_checkpoint()
    return policy, trainer.history, trainer.device


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
