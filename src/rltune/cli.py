"""The command line: what is not the workflow's business, and the small commands its rules call."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from rltune.config.load import project_root
from rltune.errors import RLTuneError

HELP = "RLTune: learn and judge schedulers for deep-learning jobs on GPU clusters, from traces to a report."
app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=HELP)
trace_app = typer.Typer(no_args_is_help=True, help="Look at trace files.")
config_app = typer.Typer(no_args_is_help=True, help="Look at the configuration.")
stage_app = typer.Typer(no_args_is_help=True, help="Single steps of the workflow, as its rules call them.")
app.add_typer(trace_app, name="trace")
app.add_typer(config_app, name="config")
app.add_typer(stage_app, name="stage")

ConfigOption = Annotated[str, typer.Option("--config", help="The run's configuration.")]
BaseOption = Annotated[str, typer.Option("--base", help="Folder for results and cache; default: the project.")]


@app.command()
def run(
    config: ConfigOption = "config/default.yaml",
    cores: Annotated[int, typer.Option(min=1, help="CPU cores to use.")] = os.cpu_count() or 1,
    base: BaseOption = "",
    arguments: Annotated[list[str] | None, typer.Argument(help="Passed on to Snakemake, after --.")] = None,
) -> None:
    """Run the whole workflow: traces to report. What is already made and still right is kept."""
    from rltune.config import Workspace
    from rltune.pipeline.launch import launch

    workspace = Workspace.open(config, base)
    status = launch(workspace, cores, arguments or [])
    index = workspace.report / "index.html"
    if status == 0 and not arguments:
        print(f"report: {index}")
    elif status:
        where = f"{workspace.results / 'notebooks'}, logs of other stages in {workspace.results / 'logs'}"
        print(f"stopped; executed notebooks, a failed one too, are in {where}", file=sys.stderr)
    raise typer.Exit(status)


@trace_app.command()
def inspect(file: Annotated[Path, typer.Argument(help="A trace file: CSV, JSON, SWF, parquet; .gz works.")]) -> None:
    """Say what a trace file holds, and suggest a column map for it."""
    from rltune.traces.inspect import inspect_file

    print(inspect_file(file))


@config_app.command()
def check(
    file: Annotated[str, typer.Argument(help="The run's configuration.")] = "",
    config: ConfigOption = "config/default.yaml",
) -> None:
    """Check a run's configuration and list its cells, each with a short id that serves as well as its name."""
    from rltune.config import Workspace

    config = file or config
    workspace = Workspace.open(config)
    cells = workspace.config.cells()
    print(f"{config}: valid; {len(cells)} cells, results in {workspace.results}")
    for cell in cells:
        print(f"  {cell.hash}  {cell.name}")


@config_app.command()
def schema() -> None:
    """Write config/schema.json anew from the code."""
    from rltune.config.schema import write_schema

    print(write_schema(project_root()))


@stage_app.command()
def notebook(
    name: Annotated[str, typer.Argument(help="Stage: the notebook's name without .ipynb.")],
    log: Annotated[Path, typer.Option(help="Where the executed notebook goes.")],
    page: Annotated[Path, typer.Option(help="Where its HTML goes.")],
    parameter: Annotated[list[str], typer.Option("--parameter", "-p", help="NAME=VALUE, a text.")] = [],  # noqa: B006
    threads: Annotated[int, typer.Option(min=1, help="Threads for everything it runs.")] = 1,
) -> None:
    """Execute a notebook with parameters and render it."""
    from rltune.pipeline.notebook import run_notebook

    for text in parameter:
        if "=" not in text:
            raise typer.BadParameter(f"found {text!r}, expected NAME=VALUE", param_hint="--parameter")
    pairs = dict(p.split("=", 1) for p in parameter)
    source = project_root() / "notebooks" / f"{name}.ipynb"
    run_notebook(source, log, page, pairs, threads)


@stage_app.command()
def fit(trace: str, cluster: str, config: ConfigOption = "config/default.yaml", base: BaseOption = "") -> None:
    """Fit a trace to a cluster."""
    from rltune.config import Workspace
    from rltune.pipeline.prepare import fit_workload

    _say(f"[fit {trace} to {cluster}] {fit_workload(Workspace.open(config, base), trace, cluster)}")


@stage_app.command()
def estimate(
    trace: str, cluster: str, kind: str, config: ConfigOption = "config/default.yaml", base: BaseOption = ""
) -> None:
    """Write a workload's run-time estimates."""
    from rltune.config import Workspace
    from rltune.pipeline.prepare import write_estimates

    write_estimates(Workspace.open(config, base), trace, cluster, kind)


@stage_app.command()
def baselines(
    trace: str, cluster: str, kind: str, config: ConfigOption = "config/default.yaml", base: BaseOption = ""
) -> None:
    """Run the heuristics on a workload's windows."""
    from rltune.config import Workspace
    from rltune.pipeline.cells import write_baselines

    frame = write_baselines(Workspace.open(config, base), trace, cluster, kind)
    _say(f"[baselines {trace} on {cluster}] {len(frame)} runs of a window")


@stage_app.command()
def report(config: ConfigOption = "config/default.yaml", base: BaseOption = "") -> None:
    """Build the report's page from the run's tables and figures."""
    from rltune.config import Workspace
    from rltune.report.page import build

    _say(f"[report] {build(Workspace.open(config, base))}")


CACHES = {
    "MPLCONFIGDIR": "matplotlib", "XDG_CACHE_HOME": "xdg", "IPYTHONDIR": "ipython", "KERAS_HOME": "keras",
    "JUPYTER_CONFIG_DIR": "jupyter/config", "JUPYTER_DATA_DIR": "jupyter/data",
}  # fmt: skip
"""Where libraries keep their own files: in the project's cache folder, not in the user's home (see also Makefile)."""


def _say(line: str) -> None:
    """Print a line in one write: stages side by side share the terminal, and two writes could be torn apart."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Entry point: a user's mistake ends in its explanation, not in a traceback."""
    try:
        cache = project_root() / ".cache"
        for name, folder in CACHES.items():
            os.environ.setdefault(name, str(cache / folder))
        app()
    except RLTuneError as error:
        print(f"rltune: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"rltune: {where}{error.strerror or error}", file=sys.stderr)
        sys.exit(1)
