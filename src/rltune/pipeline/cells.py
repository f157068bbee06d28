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
from rltune.errors import DataError
from rltune.evaluation.evaluate import evaluate, evaluate_baselines
from rltune.files import atomic_write, write_text
from rltune.pipeline.plugins import explaining, load_plugins
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


def write_baselines(workspace: Workspace, trace: str, cluster: str, estimate: str) -> pd.DataFrame:
    """Run the heuristics on a workload's windows, in the localities its cells have, and write their results.

    Raises ConfigError where a policy of the user's own fails.
    """
    load_plugins(workspace)
    workload = ensure_workload(workspace, trace, cluster, estimate)
    config = workspace.config
    with explaining(workspace.plugins):
        frame = evaluate_baselines(
            workload.jobs,
            workload.layout,
            workload.split,
            config.evaluation,
            config.simulation,
            config.localities(trace, cluster, estimate),
        )
    write_text(workspace.baselines(trace, cluster, estimate), frame.to_csv(index=False))
    return frame


def evaluate_cell(
    workspace: Workspace,
    cell: Cell,
    policy: TrainedPolicy,
    workload: Workload,
    progress: Callable[[str], None] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Intervals a cell's policy on the test part and write both tables of results, the baselines among the windows.

    Raises DataError when the baselines were run on other windows, or not in the cell's locality.
    """
    path = workspace.baselines(cell.trace, cell.cluster, cell.estimate)
    baselines = (
        pd.read_csv(path) if path.is_file() else write_baselines(workspace, cell.trace, cell.cluster, cell.estimate)
    )
    config = workspace.config
    windows, jobs = evaluate(
        cell,
        policy,
        workload.jobs,
        workload.job_ids,
        workload.layout,
        workload.split,
        config.evaluation,
        config.lookahead,
        config.simulation,
        progress,
        workload.calibrated,
    )
    baselines = baselines[baselines["locality"] == cell.locality]
    tested = baselines[baselines["role"] == "baseline"]
    if set(zip(tested["sequence_jobs"], tested["first_job"], strict=True)) != set(
        zip(windows["sequence_jobs"], windows["first_job"], strict=True)
    ):
        raise DataError(
            f"{path}: made for other test windows or localities than this run's; delete it and run the stage again"
        )
    windows = pd.concat([windows, baselines], ignore_index=True)
    with atomic_write(workspace.test_jobs(cell)) as temporary:
        jobs.to_parquet(temporary, index=False)
    write_text(workspace.windows(cell), windows.to_csv(index=False))
    return windows, jobs


def ensure_evaluated(workspace: Workspace, cell: Cell) -> None:
    """Make a cell's test results if they are not there, or older than its policy."""
    results = (workspace.windows(cell), workspace.test_jobs(cell))
    policy = workspace.policy(cell)
    if all(p.is_file() for p in results) and not (
        policy.is_file() and policy.stat().st_mtime > min(p.stat().st_mtime for p in results)
    ):
        return
    workload = workload_of(workspace, cell)
    evaluate_cell(workspace, cell, ensure_policy(workspace, cell, workload), workload)
