"""Commands of the emulated Slurm cluster."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from rltune.errors import ConfigError

slurm_app = typer.Typer(
    no_args_is_help=True, help="A live Slurm cluster ranked by an agent; an emulated one to try it on."
)


@slurm_app.callback()
def group() -> None:
    """A live Slurm cluster ranked by an agent; an emulated one to try it on."""


@slurm_app.command()
def emulate(
    command: Annotated[list[str] | None, typer.Argument(help="To run inside, after --; default: a shell.")] = None,
    cluster: Annotated[str, typer.Option(help="Name of a file in config/clusters, or such a file.")] = "deployment",
    accounting: Annotated[bool, typer.Option("--accounting", help="With slurmdbd: age, fair share, sacct.")] = False,
    account: Annotated[list[str], typer.Option(help="Account to make; may be given again.")] = [],  # noqa: B006
    speed: Annotated[float, typer.Option(help="How fast the cluster's clock runs.")] = 1.0,
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Line of slurm.conf to replace or add; OverSubscribe and the like go to "
            "every partition. May be given again.",
        ),
    ] = [],  # noqa: B006
    keep: Annotated[Path | None, typer.Option(help="New folder for configuration, logs, state; it stays.")] = None,
) -> None:
    """Run a command, or a shell, in a Slurm cluster of real daemons with made-up GPUs on this machine.

    The cluster ends with the command, whose exit status this passes on. Needs Slurm's packages: make slurm-deps.
    """
    from rltune.config.cluster import ClusterConfig
    from rltune.config.load import read_block
    from rltune.slurm.emulate.command import run_inside
    from rltune.slurm.emulate.emulation import Emulation

    for text in settings:
        if not text.partition("=")[0].strip() or "=" not in text or "\n" in text:
            raise ConfigError(f"--set: found {text!r}, expected KEY=VALUE as in slurm.conf")
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"[slurm {time.monotonic() - started:5.1f} s] {line}", file=sys.stderr, flush=True)

    slurm = Emulation(
        read_block(Path(cluster), ClusterConfig) if cluster.endswith((".yaml", ".yml")) else cluster,
        accounting=accounting,
        accounts=account,
        speed=speed,
        directory=keep,
        say=say,
        settings={key.strip(): value for key, _, value in (text.partition("=") for text in settings)},
    )
    raise typer.Exit(run_inside(slurm, command or []))
