"""Commands for a live Slurm cluster: the controller, and an emulated cluster."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rltune.errors import ConfigError, DataError, SlurmUnavailable

if TYPE_CHECKING:
    from rltune.slurm.controller import Controller

slurm_app = typer.Typer(
    no_args_is_help=True, help="A live Slurm cluster ranked by a trained policy; an emulated one to try it on."
)
ControllerConfig = Annotated[Path, typer.Option("--config", help="Configuration of the controller.")]
EXAMPLE = Path("config/slurm/example.yaml")


@slurm_app.command()
def run(
    config: ControllerConfig = EXAMPLE,
    live: Annotated[bool, typer.Option("--live", help="Write priorities; default: a dry run.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="One cycle, then stop; live jobs keep their priorities.")
    ] = False,
) -> None:
    """Rank the waiting jobs of a Slurm cluster, cycle after cycle, until a signal to stop; release them then.

    Exit status: 0 stopped; 1 too many cycles failed; 2 the configuration is wrong; 3 jobs may still have priorities or
    nodes of the controller's; 4 policy or list of assigned jobs cannot be used, or somebody else writes priorities of the band. Jobs are
    released except with 2 and 3 or if it does not start; with --once only with 4.
    """
    from rltune.cluster.speeds import read_profile
    from rltune.slurm.client import clock_speed
    from rltune.slurm.service import Service

    try:
        if not once and clock_speed() != 1:
            raise ConfigError(
                "found the fast clock of an emulated cluster, on which it cannot wait; expected the true clock"
            )
        controller = _controller(config, live)
        if isinstance(speeds := controller.config.speeds, str):
            read_profile(Path(speeds))
    except (ConfigError, DataError, SlurmUnavailable) as error:
        print(f"rltune: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    raise typer.Exit(Service(controller, once).run())


@slurm_app.command()
def status(config: ControllerConfig = EXAMPLE) -> None:
    """Show whether a controller is running, what it has assigned, and what its last cycle did."""
    print(_controller(config, False).directory.describe())


@slurm_app.command()
def release(
    config: ControllerConfig = EXAMPLE,
    band: Annotated[bool, typer.Option("--band", help="Also unlisted jobs with a priority in the band.")] = False,
) -> None:
    """Release every assigned job to Slurm: after a crash, or to be sure. It looks again until Slurm has saved its state.

    Exit status 0: no job waits with a priority of the band any more; 3: some do, or may have nodes that it set.
    """
    controller = _controller(config, True)
    with controller.directory.lock():
        _, refused = controller.release_all("rltune slurm release", band)
    for outcome in refused:
        print(f"job {outcome.job}: {outcome.message}")
    raise typer.Exit(3 if refused or controller.unlisted else 0)


@slurm_app.command()
def emulate(
    command: Annotated[list[str] | None, typer.Argument(help="To run inside, after --; default: a shell.")] = None,
    cluster: Annotated[str, typer.Option(help="Name of a file in config/clusters, or such a file.")] = "deployment",
    accounting: Annotated[bool, typer.Option("--accounting", help="With slurmdbd: age, fair share, sacct.")] = False,
    account: Annotated[list[str] | None, typer.Option(help="Account to make; may be repeated.")] = None,
    speed: Annotated[float, typer.Option(help="Speed of the cluster's clock.")] = 1.0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Line of slurm.conf, or setting of all partitions; may be repeated."
        ),
    ] = None,
    keep: Annotated[Path | None, typer.Option(help="New folder for configuration, logs, state; it stays.")] = None,
) -> None:
    """Run a command, or a shell, in a Slurm cluster of real daemons with emulated GPUs on this machine.

    The cluster ends with the command, and this passes on its exit status. Needs Slurm's packages.
    """
    from rltune.config.cluster import ClusterConfig
    from rltune.config.load import load_cluster, project_root, read_block
    from rltune.slurm.emulate.command import run_inside
    from rltune.slurm.emulate.emulation import Emulation

    for text in settings or ():
        if not text.partition("=")[0].strip() or "=" not in text or "\n" in text:
            raise ConfigError(f"--set: found {text!r}, expected KEY=VALUE as in slurm.conf")
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"[slurm {time.monotonic() - started:5.1f} s] {line}", file=sys.stderr, flush=True)

    own = cluster.endswith((".yaml", ".yml"))
    slurm = Emulation(
        read_block(Path(cluster), ClusterConfig) if own else load_cluster(cluster, project_root()),
        accounting=accounting,
        accounts=account or (),
        speed=speed,
        directory=keep,
        say=say,
        settings={key.strip(): value for key, _, value in (text.partition("=") for text in settings or ())},
    )
    raise typer.Exit(run_inside(slurm, command or []))


def _controller(config: Path, live: bool) -> Controller:
    """The controller of a configuration, with paths relative to the project, or else to the current folder."""
    from rltune.cluster.speeds import profile_of
    from rltune.config.load import project_root, read_block
    from rltune.config.slurm import SlurmConfig
    from rltune.slurm.client import Client
    from rltune.slurm.controller import Controller
    from rltune.slurm.state_directory import StateDirectory

    try:
        root = project_root()
    except ConfigError:  # a head node has the package alone
        root = Path.cwd()
    read = read_block(root / config, SlurmConfig, root)
    if isinstance(read.speeds, str):
        read = read.model_copy(update={"speeds": str(profile_of(read.speeds, root))})
    client = Client(read.slurm_conf and root / read.slurm_conf, read.timeout_s)
    return Controller(read, client, StateDirectory(root / read.state_directory), root / read.policy, live)
