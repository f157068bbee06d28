"""Helpers for notebooks: open the run, save and show artefacts, report progress."""

from __future__ import annotations

import os
from collections.abc import Callable
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rltune.config import project_root
from rltune.config.context import Run
from rltune.errors import DataError
from rltune.metrics import METRICS
from rltune.policies import TITLES
from rltune.report.format import show as shown

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from rltune.agent.trainer import Trainer
    from rltune.report.artefact import Artefact

WIDTH_PX, DPI = 720, 130
"""Of a figure in a notebook: as wide as in the report, sharp on a fine screen."""


def threads() -> int | None:
    """Threads that this process may use (RLTUNE_THREADS); None: not limited."""
    value = os.environ.get("RLTUNE_THREADS", "")
    return int(value) if value.isdigit() and int(value) > 0 else None


def start(config: str, *inputs: str | list[str]) -> Run:
    """Change to the project's root, from which a notebook's paths are given, read the run and print what it is.

    Raises ConfigError when the configuration is wrong, DataError where one of the files ``inputs`` is not there.
    """
    os.chdir(project_root())
    run = Run.open(config)
    for path in (path for part in inputs for path in ([part] if isinstance(part, str) else part)):
        if not Path(path).exists():
            raise DataError(f"{path}: no such file; make it: make report CONFIG={config} ARGS={path}")
    traces = [f"{name} ({trace.data} data)" for name, trace in run.traces.items()]
    print(f"{config}: {len(run.config.cells())} cells; {', '.join(traces)}")
    print(f"on {os.cpu_count()} cores, threads for this notebook: {threads() or 'all'}")
    return run


def show(figure: Figure, alt: str, at: Any = None) -> None:
    """Display a figure with its text alternative; ``at``: a display (IPython's handle) to replace."""
    from IPython.display import Image, display
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from rltune.report.style import styled

    png = BytesIO()
    figure.set_dpi(DPI)
    with styled():
        FigureCanvasAgg(figure).print_png(png)  # savefig draws twice
    (at.update if at else display)(Image(png.getvalue(), width=WIDTH_PX, alt=alt))


def keep(folder: str, artefact: Artefact, frame: pd.DataFrame, figure: Figure | str | None = None) -> None:
    """Write a table, or a figure and the data behind it, to the run's folder of artefacts, and show it."""
    from IPython.display import SVG, Image, display

    from rltune.report.artefact import save

    save(Path(folder), artefact, frame, figure)
    if figure is None:
        table(artefact, frame)
    elif isinstance(figure, str):  # an SVG
        display(SVG(figure), metadata={"image/svg+xml": {"alt": artefact.alt}})
    else:
        display(Image(Path(folder) / f"{artefact.id}.png", width=WIDTH_PX, alt=artefact.alt))


def table(artefact: Artefact, frame: pd.DataFrame) -> None:
    """Show a table as the report does, under its caption, its notes folded."""
    from IPython.display import HTML, display

    from rltune.report.page.tables import render

    notes = "".join(f"<li>{escape(note)}</li>" for note in artefact.notes)
    folded = f"<details><summary>Notes</summary><ul>{notes}</ul></details>" if notes else ""
    drawn = render(artefact, frame).replace('href="#', 'href="../index.html#')  # other tables are on the report's page
    display(HTML(f"<p>{escape(artefact.caption)}</p>{drawn or 'No rows.'}{folded}"))


def in_lab() -> bool:
    """Whether the kernel was started by JupyterLab, which sets this variable; papermill does not."""
    return "JPY_SESSION_NAME" in os.environ


def follow(trainer: Trainer, curves: Callable[[pd.DataFrame], Figure]) -> Callable[[dict[str, float]], None]:
    """Return the callback for each row of a training's history. In JupyterLab it updates a bar with the time left and, after
    each validation, the figure that ``curves`` draws of the history; elsewhere, as under papermill, it prints lines."""
    from IPython.display import HTML, display

    from rltune.agent.progress import ProgressLogger

    epochs = trainer.preset.epochs
    if not in_lab():
        return ProgressLogger(epochs)
    bar, picture = display(HTML(""), display_id=True), display(HTML(""), display_id=True)

    def write(line: str) -> None:
        bar.update(HTML(f'<progress max="{epochs}" value="{trainer.epoch}"></progress> {escape(line)}'))
        if trainer.validation_due:
            show(curves(trainer.history), "Training curves so far", picture)

    return ProgressLogger(epochs, write, silence_s=0)


def outcome(facts: dict[str, Any]) -> str:
    """The result of a training in one sentence, from its policy's facts: `mean wait 812 s against 2,104 s under FIFO (−61 %) and …`."""
    cell, metric = facts["cell"], METRICS.get(facts["cell"]["metric"])
    scores = [facts[f"validation_{name}"] for name in ("metric", "base", "random")]
    if metric:
        agent, *others = (metric.sign * score for score in scores)
        texts = [f"{shown(value, metric.format)}{' ' * bool(metric.unit)}{metric.unit}" for value in (agent, *others)]
        changes = [f" ({shown(agent / other - 1, 'percent')})" if other else "" for other in others]
    else:  # a mix has no unit: its score is the reward with its sign reversed
        texts, changes = [shown(-score, "number") for score in scores], ["", ""]
    learned = "it learned" if facts["learned"] else "it did not learn: it has to beat both, and what it started from"
    return (
        f"{metric.noun if metric else 'reward'} {texts[0]} against {texts[1]} under {TITLES.get(cell['policy'])}"
        f"{changes[0]} and {texts[2]} in random order{changes[1]}; {learned}"
    )
