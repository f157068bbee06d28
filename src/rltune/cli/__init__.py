"""The command line: traces, single simulations, the live controller; the workflow is Snakemake's."""

import errno
import os
import platform
import sys
from contextlib import suppress
from typing import Annotated

import typer

from rltune import COMPILED, __version__, sources_digest
from rltune.cli.config import config_app
from rltune.cli.init import init
from rltune.cli.simulate import simulate
from rltune.cli.slurm import slurm_app
from rltune.cli.trace import trace_app
from rltune.config.load import project_root
from rltune.errors import ConfigError, RLTuneError

EPILOG = (
    "Exit status: 0 done; 1 a mistake in the input, which the message explains; 2 a command or option that does not "
    "exist. Messages go to standard error. `make report` runs the whole workflow."
)
app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, epilog=EPILOG)

app.command()(init)
app.command()(simulate)
app.add_typer(trace_app, name="trace")
app.add_typer(config_app, name="config")
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
        typer.Option("--version", callback=_version, is_eager=True, help="Print version and digest of the sources."),
    ] = False,
) -> None:
    """RLTune: learn and evaluate schedulers for deep-learning jobs on GPU clusters, from traces to a report."""


ADVICE = {
    errno.ENOSPC: "; free some space. What is finished is kept, and the same command goes on from there",
    errno.EDQUOT: "; your quota is used up: free some space. The same command goes on from there",
    errno.EACCES: "; you may not write there: change its permissions (ls -l shows them)",
    errno.EROFS: "; the file system is read-only: move the project to one that can be written to",
}
"""What to do about an error of the system."""


def main() -> None:
    """Entry point: a user's mistake ends in its explanation, not in a traceback."""
    try:
        with suppress(ConfigError):  # the package alone, as on a head node, has no project folder
            cache = project_root() / ".cache"
            # where the drawing library keeps its files: not in the user's home (see also Makefile)
            os.environ.setdefault("MPLCONFIGDIR", str(cache / "matplotlib"))
            os.environ.setdefault("XDG_CACHE_HOME", str(cache / "xdg"))
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
