"""What every notebook says first: which run, which data, which machine."""

from __future__ import annotations

import os

from rltune.config import Workspace
from rltune.pipeline.cells import threads


def describe(workspace: Workspace) -> None:
    """Print the run's configuration, its traces with the kind of their data, and the cores this process may use."""
    traces = [f"{name} ({workspace.trace(name).data} data)" for name in workspace.config.traces()]
    print(f"{workspace.config_path}: {len(workspace.config.cells())} cells; {', '.join(traces)}")
    print(f"on {os.cpu_count()} cores, threads for this notebook: {threads() or 'all'}")
