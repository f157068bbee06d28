"""What every notebook does: start in the project's folder with its run; keep and show what it made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rltune.config import project_root
from rltune.config.context import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from rltune.report.artefact import Artefact


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


def keep(folder: str, artefact: Artefact, frame: pd.DataFrame, figure: Figure | str | None = None) -> None:
    """Write a table, or a figure and the data behind it, to the run's folder of artefacts, and show it."""
    from IPython.display import SVG, Image, display

    from rltune.report.artefact import save

    save(Path(folder), artefact, frame, figure)
    if figure is None:
        display(frame[list(artefact.columns)])
    elif isinstance(figure, str):  # an SVG
        display(SVG(figure))
    else:
        display(Image(Path(folder) / f"{artefact.id}.png", width=720))
