"""The command line: traces, clusters, single simulations, the live controller; the workflow is Snakemake's."""

from __future__ import annotations

import errno
import os
import platform
import sys
from pathlib import Path
from typing import Annotated

import typer

from rltune import COMPILED, __version__, sources_digest
from rltune.cli import controller
from rltune.cli.cluster import cluster_app
from rltune.cli.own import init
from rltune.cli.steps import VerboseOption, make_verbose, step
from rltune.cli.options import BaseOption, ConfigOption, own_policies
from rltune.cli.simulate import simulate
from rltune.cli.slurm import slurm_app
from rltune.config.load import project_root
from rltune.errors import RLTuneError

EPILOG = (
    "Exit status: 0 done; 1 a mistake in what was given, which the message explains; 2 a command or option that does not "
    "exist. Messages go to standard error. `make report` runs the whole workflow."
)
app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, epilog=EPILOG)
trace_app = typer.Typer(no_args_is_help=True, help="Look at traces and their files, and fetch them.")
config_app = typer.Typer(no_args_is_help=True, help="Look at the configuration.")

app.command()(init)
app.command()(simulate)
app.add_typer(trace_app, name="trace")
app.add_typer(cluster_app, name="cluster")
app.add_typer(config_app, name="config")
for command in (controller.run, controller.status, controller.release):
    slurm_app.command()(command)
app.add_typer(slurm_app, name="slurm")


def _version(asked: bool) -> None:
    if asked:
        sources = sources_digest("traces", *COMPILED)
        print(f"rltune {__version__}, Python {platform.python_version()}, sources {sources}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help=("Say which version this is, and the digest of the sources that results depend on."),
        ),
    ] = False,
) -> None:
    """RLTune: learn and judge schedulers for deep-learning jobs on GPU clusters, from traces to a report."""


@trace_app.command()
def inspect(
    file: Annotated[Path, typer.Argument(help="CSV, JSON, SWF, sacct text, parquet, tar.gz, zip; .gz works.")],
    verbose: VerboseOption = False,
) -> None:
    """Say what a trace file holds, and suggest a column map for it."""
    make_verbose(verbose)
    with step(f"reading and cleaning {file}"):
        from rltune.traces.inspect import inspect_file

        told = inspect_file(file)
    print(told)


@trace_app.command("list")
def list_traces(config: ConfigOption = "config/default.yaml", base: BaseOption = "") -> None:
    """List the traces in config/traces: size, licence, whether their files are there, what to cite."""
    from rltune.config import Workspace
    from rltune.traces.listing import listing

    workspace = Workspace.open(config, base)
    print(listing(workspace.root, workspace.cache))


@trace_app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Names of files in config/traces.")],
    verify: Annotated[bool, typer.Option("--verify", help="Check files that are there, read in full.")] = False,
    config: ConfigOption = "config/default.yaml",
    base: BaseOption = "",
) -> None:
    """Obtain the raw files of traces now: download or generate what is not there. A run does so when it needs them."""
    from rltune.config import Workspace
    from rltune.traces.fetch import obtain
    from rltune.traces.listing import summary

    workspace = Workspace.open(config, base)
    failed = []
    for name, trace in {name: workspace.trace(name) for name in names}.items():
        try:
            _say(summary(name, trace, obtain(name, trace, workspace.cache, workspace.root, verify=verify)))
        except RLTuneError as error:
            failed.append(str(error))
    if failed:
        raise RLTuneError("\n".join(failed))


@config_app.command()
def check(
    file: Annotated[str, typer.Argument(help="The run's configuration.")] = "",
    config: ConfigOption = "config/default.yaml",
) -> None:
    """Check a run's configuration, whether its own files are there, and list its cells, each with a short id."""
    from rltune.config.context import Run
    from rltune.traces.fetch import check_given

    config = file or config
    run = Run.open(config)
    cells = run.config.cells()
    own = own_policies(run)
    for name in run.config.traces():
        published = any(cell.trace == name and cell.estimate == "published" for cell in cells)
        check_given(name, run.traces[name], project_root(), published)
    print(f"{config}: valid; {len(cells)} cells, results in {run.config.results}")
    rules = run.config.simulation.model_dump()
    print(f"  simulation: {', '.join(f'{key} {value}' for key, value in rules.items())}")
    if also := run.config.evaluation.also:
        print(f"  judged also with: {'; '.join(map(str, also))}")
    for name, path in own.items():
        print(f"  policy {name} from {path}")
    for cell in cells:
        print(f"  {cell.hash}  {cell.name}")


@config_app.command()
def schema() -> None:
    """Write config/schema.json anew from the code."""
    from rltune.config.schema import write_schema

    print(write_schema(project_root()))


CACHES = {
    "MPLCONFIGDIR": "matplotlib",
    "XDG_CACHE_HOME": "xdg",
    "IPYTHONDIR": "ipython",
    "KERAS_HOME": "keras",
    "JUPYTER_CONFIG_DIR": "jupyter/config",
    "JUPYTER_DATA_DIR": "jupyter/data",
}
"""Where libraries keep their own files: in the project's cache folder, not in the user's home (see also Makefile)."""


ADVICE = {
    errno.ENOSPC: "; free some space, or name a folder on another disk with --base. What is finished is kept, and the "
    "same command goes on from there",
    errno.EDQUOT: "; your quota is used up: free some space, or name a folder elsewhere with --base",
    errno.EACCES: "; you have no right to that: mend its rights (ls -l shows them), or name another folder with --base",
    errno.EROFS: "; name a folder that can be written to with --base",
}
"""What to do about an error of the system."""


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
    except BrokenPipeError:  # what reads our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"rltune: {where}{error.strerror or error}{ADVICE.get(error.errno or 0, '')}", file=sys.stderr)
        sys.exit(1)
