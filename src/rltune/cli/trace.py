"""The commands `rltune trace …`: look at traces and their files, and fetch them."""

from pathlib import Path
from typing import Annotated

import typer

from rltune.cli.steps import step
from rltune.config import CACHE, load_trace, project_root
from rltune.errors import RLTuneError

trace_app = typer.Typer(no_args_is_help=True, help="Look at traces and their files, and fetch them.")


@trace_app.command()
def inspect(
    file: Annotated[Path, typer.Argument(help="CSV, JSON, SWF, sacct text, parquet, tar.gz, zip; .gz works.")],
) -> None:
    """Print what a trace file holds, and suggest a configuration for it."""
    with step(f"reading and cleaning {file}"):
        from rltune.traces.inspect import inspect_file

        text = inspect_file(file)
    print(text)


@trace_app.command("list")
def list_traces() -> None:
    """List the traces in config/traces: size, licence, whether their files are there, what to cite."""
    from rltune.traces.listing import listing

    print(listing(project_root(), project_root() / CACHE))


@trace_app.command()
def fetch(names: Annotated[list[str], typer.Argument(metavar="NAME", help="Names of files in config/traces.")]) -> None:
    """Download or generate missing raw files of traces, and check those present. A run does so when it needs them."""
    from rltune.traces.fetch import obtain
    from rltune.traces.listing import summary

    root, failed = project_root(), []
    for name, trace in {name: load_trace(name, root) for name in names}.items():
        try:
            print(summary(name, trace, obtain(name, trace, root / CACHE, root)), flush=True)
        except RLTuneError as error:
            failed.append(str(error))
    if failed:
        raise RLTuneError("\n".join(failed))
