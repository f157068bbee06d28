"""Contenders of a workspace, until nothing asks for them this way."""

from __future__ import annotations

from rltune.config import Cell, Workspace
from rltune.evaluation.contenders import Contender, contender_of
from rltune.pipeline.cells import ensure_policy
from rltune.pipeline.prepare import Workload
from rltune.simulator.config import SchedulerConfig


def course_of(workspace: Workspace, workload: Workload) -> Workload:
    """The workload."""
    return workload


def scheduler_of(workspace: Workspace, cell: Cell, **changes: str) -> SchedulerConfig:
    """The rules of a cell, with some of them changed."""
    return contender_of(workspace.config, cell, **changes).scheduler


def agent_in(workspace: Workspace, cell: Cell, workload: Workload) -> Contender:
    """A cell's agent, trained now if it is not."""
    return contender_of(workspace.config, cell, ensure_policy(workspace, cell, workload))
