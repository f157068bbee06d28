"""`rltune cluster balance`: a cluster scaled to an offered load."""

from __future__ import annotations

from typing import Annotated

import typer

from rltune.cli.choices import check_named
from rltune.cli.steps import VerboseOption, make_verbose, step
from rltune.config import CACHE, load_cluster, load_trace, project_root

cluster_app = typer.Typer(no_args_is_help=True, help="Look at clusters.")


@cluster_app.command()
def balance(
    name: Annotated[str, typer.Argument(help="Name of a file in config/clusters.")],
    trace: Annotated[str, typer.Option(help="Name of a file in config/traces.")],
    load: Annotated[float, typer.Option(help="Offered load to reach: GPU-seconds asked per second over GPUs.")] = 0.9,
    verbose: VerboseOption = False,
) -> None:
    """Print a cluster file with as many nodes as bring a trace to an offered load; every node group stays."""
    make_verbose(verbose)
    check_named(trace)
    root = project_root()
    given, settings = load_cluster(name, root), load_trace(trace, root)
    with step(f"reading {trace}, and what {name} can hold of it"):
        from rltune.cluster.balance import as_yaml, balance as scale
        from rltune.traces.clean import clean_trace
        from rltune.traces.fetch import obtain

        raw = obtain(trace, settings, root / CACHE, root)
        found = scale(given, name, clean_trace(trace, settings, raw).jobs, trace, load)
    after = f"{found.after:.3g} on this ({found.cluster.gpus} GPUs)"
    print(f"# offered load of {trace}: {found.before:.3g} on {name}, {after}")
    if not found.reached:
        print(f"# warning: a load of {load:g} cannot be reached: nodes are whole, and every group keeps one")
    if found.dropped:
        print(f"# the balance of {name}, which leaves out jobs, is dropped: both loads are those of all jobs")
    print(as_yaml(found.cluster), end="")
