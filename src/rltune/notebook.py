"""How every notebook begins: in the project's folder, with the run that its files belong to."""

from __future__ import annotations

import os

from rltune.config import project_root
from rltune.config.context import Run


def threads() -> int | None:
    """Threads this process was given (RLTUNE_THREADS); None where nobody said."""
    value = os.environ.get("RLTUNE_THREADS", "")
    return int(value) if value.isdigit() and int(value) > 0 else None


def start(config: str) -> Run:
    """Change to the project's root, from which a notebook's paths are given, read the run and print what it is.

    Raises ConfigError when the configuration is wrong.
    """
    os.chdir(project_root())
    run = Run.open(config)
    traces = [f"{name} ({trace.data} data)" for name, trace in run.traces.items()]
    print(f"{config}: {len(run.config.cells())} cells; {', '.join(traces)}")
    print(f"on {os.cpu_count()} cores, threads for this notebook: {threads() or 'all'}")
    return run
