"""The command line: traces, clusters, single simulations, the live controller; the workflow is Snakemake's."""

from __future__ import annotations

import errno
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rltune import COMPILED, __version__, sources_digest
from rltune.cli import controller
from rltune.cli.choices import (
    check_estimate,
    check_factors,
    check_goes_together,
    check_named,
    check_outputs,
    check_words,
)
from rltune.cli.options import BaseOption, ConfigOption, own_policies
from rltune.cli.own import init
from rltune.cli.slurm import slurm_app
from rltune.cli.steps import VerboseOption, make_verbose, step
from rltune.config.cells import BACKFILLS, LOCALITIES, PLACEMENTS, POLICIES
from rltune.config.load import project_root
from rltune.errors import RLTuneError
from rltune.files import write_text

EPILOG = (
    "Exit status: 0 done; 1 a mistake in what was given, which the message explains; 2 a command or option that does not "
    "exist. Messages go to standard error. `make report` runs the whole workflow."
)
app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, epilog=EPILOG)
trace_app = typer.Typer(no_args_is_help=True, help="Look at traces and their files, and fetch them.")
config_app = typer.Typer(no_args_is_help=True, help="Look at the configuration.")
cluster_app = typer.Typer(no_args_is_help=True, help="Look at clusters.")

app.command()(init)
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


@app.command()
def simulate(
    trace: Annotated[str, typer.Option(help="Name of a file in config/traces.")],
    cluster: Annotated[str, typer.Option(help="Name of a file in config/clusters.")],
    policy: Annotated[str, typer.Option(help=f"{', '.join(POLICIES)}; or one of the run's `plugins`.")] = "fifo",
    backfill: Annotated[str, typer.Option(help=f"While the first job does not fit: {', '.join(BACKFILLS)}.")] = "none",
    placement: Annotated[str, typer.Option(help=f"Choice of nodes: {', '.join(PLACEMENTS)}.")] = "best_fit",
    locality: Annotated[str, typer.Option(help=f"How many nodes a job may have: {', '.join(LOCALITIES)}.")] = "strict",
    multi_node_slowdown: Annotated[
        float | None, typer.Option(help="Factor on run time on more nodes than strict, ≥ 1.")
    ] = None,
    interference_slowdown: Annotated[
        float | None,
        typer.Option(help="Factor on the run time of a job of several GPUs while another is on one of its nodes, ≥ 1."),
    ] = None,
    overrun: Annotated[str | None, typer.Option(help="End expected of a job past its estimate: double, now.")] = None,
    sticky_head: Annotated[bool | None, typer.Option(help="Whether a first job stays first until it starts.")] = None,
    estimate: Annotated[
        str,
        typer.Option(
            help="Estimates: exact, lognormal-SIGMA, requested, history-rolling, history-lightgbm, published."
        ),
    ] = "lognormal-1",
    part: Annotated[str, typer.Option(help="Jobs to take: all, train, validation, test.")] = "all",
    begin: Annotated[int | None, typer.Option("--from", help="Take jobs from this one on, counted from 0.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Take so many jobs; default: all of them.")] = None,
    windows: Annotated[
        int | None, typer.Option(metavar="JOBS", help="Jobs per window, each starts idle; 256 unless told.")
    ] = None,
    replay: Annotated[bool, typer.Option("--replay", help="One sequence of all jobs instead of windows.")] = False,
    warm_up: Annotated[float, typer.Option(help="Share of a replay's first jobs that are not measured.")] = 0.0,
    bound: Annotated[bool, typer.Option("--bound", help="Add a lower bound on the mean wait of any policy.")] = False,
    by: Annotated[str | None, typer.Option(help="Add who waits, and how unequally: by user or vc.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a row a job to this file.")] = None,
    timeline: Annotated[Path | None, typer.Option(help="Write GPUs, queue, fragmentation over time to this.")] = None,
    gantt: Annotated[Path | None, typer.Option(help="Draw the first window to this file (.svg or .png).")] = None,
    config: ConfigOption = "config/default.yaml",
    base: BaseOption = "",
    verbose: VerboseOption = False,
) -> None:
    """Simulate one policy on a trace and a cluster, and print what it was worth. Times are in seconds.

    What --multi_node_slowdown, --interference_slowdown, --overrun and --sticky-head do not say is as in the run's `simulation`: by default 1, 1, double, no.
    """
    from rltune.config import Workspace

    make_verbose(verbose)
    check_outputs(csv=csv, timeline=timeline)
    check_outputs((".svg", ".png"), gantt=gantt)
    check_goes_together(replay, warm_up, windows, part, begin, jobs)
    check_factors(multi_node_slowdown=multi_node_slowdown, interference_slowdown=interference_slowdown)
    check_estimate(estimate)
    workspace = Workspace.open(config, base)
    check_words(
        bool(workspace.plugins),
        policy=policy,
        backfill=backfill,
        placement=placement,
        locality=locality,
        overrun=overrun,
        part=part,
        by=by,
    )
    check_named(workspace, trace, cluster)

    with step("loading the simulator"):
        from rltune.pipeline import simulate as simulation
        from rltune.report.simulation import draw, groups_summary, summary

    rules = {
        "multi_node_slowdown": multi_node_slowdown,
        "interference_slowdown": interference_slowdown,
        "overrun": overrun,
        "sticky_head": sticky_head,
    }
    scheduler = simulation.make_scheduler(
        workspace,
        policy=policy,
        backfill=backfill,
        placement=placement,
        locality=locality,
        **{**workspace.config.simulation.model_dump(), **{k: v for k, v in rules.items() if v is not None}},
    )
    request = simulation.Request(
        trace, cluster, estimate, part, begin, jobs, windows, replay, warm_up, by, gantt is not None
    )
    result = simulation.run(workspace, request, scheduler, step)
    print(f"{trace} ({result.workload.meta.data} data) on {cluster}, {result.about()}; estimates {estimate}")
    if result.workload.left_out:
        print("not simulated: " + "; ".join(f"{n:,} {why}" for why, n in result.workload.left_out.items()))
    if estimate.startswith("lognormal") and result.has_limits:
        print("these estimates are the true run times, blurred; the trace has its users' limits: --estimate requested")
    print(", ".join([policy, *(f"{k} {v}" for k, v in asdict(scheduler).items() if k != "policy")]))
    print(summary(result.metrics(), result.bound() if bound else None))
    if placed := result.placed():
        print(placed)
    if by is not None:
        print(groups_summary(*result.groups(by)))
    if csv is not None:
        write_text(csv, result.jobs().to_csv(index=False))
        print(f"jobs: {csv}")
    if timeline is not None:
        over_time = result.timeline()
        write_text(timeline, over_time.to_csv(index=False))
        print(f"over time: {timeline}; mean fragmentation over the span: {result.fragmentation(over_time):.3f}")
    if gantt is not None:
        draw(result.bars(), result.workload.layout.nodes.gpus, f"{trace} on {cluster}: {policy}", gantt)
        print(f"chart: {gantt}")


@cluster_app.command()
def balance(
    name: Annotated[str, typer.Argument(help="Name of a file in config/clusters.")],
    trace: Annotated[str, typer.Option(help="Name of a file in config/traces.")],
    load: Annotated[float, typer.Option(help="Offered load to reach: GPU-seconds asked per second over GPUs.")] = 0.9,
    config: ConfigOption = "config/default.yaml",
    base: BaseOption = "",
    verbose: VerboseOption = False,
) -> None:
    """Print a cluster file with as many nodes as bring a trace to an offered load; every node group stays."""
    from rltune.config import Workspace

    make_verbose(verbose)
    workspace = Workspace.open(config, base)
    check_named(workspace, trace)
    with step(f"reading {trace}, and what {name} can hold of it"):
        from rltune.pipeline.balance import as_yaml
        from rltune.pipeline.balance import balance as scale

        found = scale(workspace, trace, name, load)
    after = f"{found.after:.3g} on this ({found.cluster.gpus} GPUs)"
    print(f"# offered load of {trace}: {found.before:.3g} on {name}, {after}")
    if not found.reached:
        print(f"# warning: {load:g} was wanted and cannot be reached: nodes are whole, and every group keeps one")
    if found.dropped:
        print(f"# the balance of {name}, which leaves out jobs, is dropped: both loads are those of all jobs")
    print(as_yaml(found.cluster), end="")


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
    from rltune.config import Workspace
    from rltune.traces.fetch import check_given

    config = file or config
    workspace = Workspace.open(config)
    cells = workspace.config.cells()
    own = own_policies(workspace)
    for name in workspace.config.traces():
        published = any(cell.trace == name and cell.estimate == "published" for cell in cells)
        check_given(name, workspace.trace(name), workspace.root, published)
    print(f"{config}: valid; {len(cells)} cells, results in {workspace.results}")
    rules = workspace.config.simulation.model_dump()
    print(f"  simulation: {', '.join(f'{key} {value}' for key, value in rules.items())}")
    if also := workspace.config.evaluation.also:
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
