"""Commands of the controller of a live Slurm cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rltune.slurm.controller import Controller

ControllerConfig = Annotated[Path, typer.Option("--config", help="Configuration of the controller.")]
LiveOption = Annotated[bool, typer.Option("--live", help="Write priorities. Without it nothing is written.")]
EXAMPLE = Path("config/slurm/example.yaml")


def run(
    config: ControllerConfig = EXAMPLE,
    live: LiveOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be written (the default).")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="One cycle, then stop; live jobs keep their priorities.")
    ] = False,
    speed: Annotated[
        float, typer.Option(min=0.001, help="Seconds of Slurm's clock in one of ours, on an emulated cluster.")
    ] = 1.0,
) -> None:
    """Rank the waiting jobs of a Slurm cluster, cycle after cycle, until a signal to stop; hand them back then.

    Exit status: 0 told to stop; 1 too many cycles failed; 3 jobs may still have priorities of the controller's; 4 stopped
    by the watchdog, or for a policy or a list of touched jobs that cannot be used: look before it runs again. Jobs are
    handed back but at 3, and but for --once.
    """
    if live and dry_run:
        raise typer.BadParameter("found both --live and --dry-run, expected one of them")
    from rltune.slurm.service import Service

    controller = _controller(config, live)
    raise typer.Exit(Service(controller, once, speed).run())


def status(config: ControllerConfig = EXAMPLE) -> None:
    """Say whether a controller is at work, what it has touched, and what its last cycle did."""
    from rltune.slurm.folder import told

    print(told(_controller(config, False).folder))


def release(
    config: ControllerConfig = EXAMPLE,
    band: Annotated[
        bool, typer.Option("--band", help="Also jobs with a priority in the band that no file names.")
    ] = False,
) -> None:
    """Hand every touched job back to Slurm: after a crash, or to be sure.

    Exit status 3 where one is refused, or where there is no list of touched jobs and some wait with priorities of the band.
    """
    controller = _controller(config, True)
    with controller.folder.lock():
        listed = controller.folder.touched_path.is_file()
        _, refused = controller.hand_back("rltune slurm release", band)
        others = frozenset() if listed or band else controller.left_over()[1]
    for outcome in refused:
        print(f"job {outcome.job}: {outcome.message}")
    if others:
        low, high = controller.config.band.low, controller.config.band.high
        print(
            f"{controller.folder.touched_path}: no such list, and {len(others)} waiting jobs have priorities of {low:,} to "
            f"{high:,} (job {min(others)} for one); `rltune slurm release --band` hands these back"
        )
    raise typer.Exit(3 if refused or others else 0)


def _controller(config: Path, live: bool) -> Controller:
    from rltune.config.load import project_root, read_block
    from rltune.config.slurm import SlurmConfig
    from rltune.slurm.client import Client
    from rltune.slurm.controller import Controller
    from rltune.slurm.folder import Folder

    root = project_root()
    read = read_block(config if config.is_absolute() else root / config, SlurmConfig, root)
    client = Client(read.slurm_conf, read.timeout_s)
    return Controller(read, client, Folder(root / read.folder), root / read.policy, live)
