"""Commands on a whole run: start it, say what it will cost, how far it is, do one stage again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rltune.cli.options import BaseOption, ConfigOption, CoresOption, ProfileOption, cores_here, own_policies, scheduler
from rltune.cli.steps import step

if TYPE_CHECKING:
    from rltune.config import Workspace

ASKING = "asking Snakemake what is to do"
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Start a long run without asking.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", help="Show all that Snakemake and the stages say.")]
PassedOn = Annotated[list[str] | None, typer.Argument(help="Passed on to Snakemake, after --.")]


def run(
    config: ConfigOption = "config/default.yaml",
    cores: CoresOption = None,
    profile: ProfileOption = "",
    base: BaseOption = "",
    yes: YesOption = False,
    share: Annotated[
        str,
        typer.Option(
            metavar="I/N",
            help=(
                "Only this share of the cells, trained and judged: 1/2 here, 2/2 on another machine; then `rltune merge`."
            ),
        ),
    ] = "",
    verbose: VerboseOption = False,
    arguments: PassedOn = None,
) -> None:
    """Run the whole workflow: traces to report. What is already made and still right is kept.

    A run of more than an hour, or with downloads of more than 100 MB, asks first.
    """
    from rltune.config import Workspace

    workspace = Workspace.open(config, base)
    wanted = []
    if share:
        from rltune.pipeline.workflow.share import shared, targets

        wanted = targets(workspace, shared(workspace, share))
    status = _start(workspace, cores, profile, [*wanted, *(arguments or [])], yes, verbose)
    if status == 0 and share:
        print(f"share {share} is done: {len(wanted)} cells; where all shares are to come together: rltune merge FOLDER")
    elif status == 0 and not arguments:
        print(f"report: {workspace.report / 'index.html'}")
    raise typer.Exit(status)


def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER", help="Project folders of other machines.")],
    keep: Annotated[
        bool, typer.Option("--keep", help="Of a cell that both have, keep this machine's results.")
    ] = False,
    config: ConfigOption = "config/default.yaml",
    base: BaseOption = "",
) -> None:
    """Take the cells that other machines trained and judged (`rltune run --share`) into this project's results.

    Nothing is taken unless all can be: results of another configuration, of other sources or data are refused. The next
    run makes the chapters, figures and report that depend on the new cells.
    """
    from rltune.config import Workspace
    from rltune.pipeline.workflow.merge import merge as bring_together

    workspace = Workspace.open(config, base)
    with step("asking Snakemake what the cells depend on, and comparing"):
        done = bring_together(workspace, folders, keep)
    for name, there in done.taken.items():
        print(f"taken: {name} from {there}")
    for name in done.kept:
        print(f"kept: {name}, of which there are other results elsewhere")
    already = f", {len(done.same)} were here already" if done.same else ""
    left = f"{done.left} cells are still to do" if done.left else "every cell is here"
    print(f"{len(done.taken)} cells taken{already}; {left}; make the report with: rltune run --config {config}")


def estimate(
    config: ConfigOption = "config/default.yaml",
    cores: CoresOption = None,
    profile: ProfileOption = "",
    base: BaseOption = "",
) -> None:
    """Say what a run would still cost: time, downloads, disk. Nothing is started."""
    from rltune.config import Workspace
    from rltune.pipeline.workflow.estimate import estimate as reckon
    from rltune.pipeline.workflow.snakemake import would_run

    workspace = Workspace.open(config, base)
    where = scheduler(workspace, profile)
    at_once = cores or (where.jobs if where else cores_here())
    with step(ASKING):
        (jobs,) = would_run(workspace, at_once, [])
    name = where.name if where else ""
    print(reckon(workspace, jobs, at_once, name).text if jobs else f"{config}: nothing to be done")


def status(config: ConfigOption = "config/default.yaml", cores: CoresOption = None, base: BaseOption = "") -> None:
    """Say how far a run is, while it is at work or after it ended: done, running, failed and to do for each stage."""
    from rltune.config import Workspace
    from rltune.pipeline.workflow.status import status as told

    workspace = Workspace.open(config, base)
    with step(ASKING):
        text = told(workspace, cores or cores_here())
    print(text)


def pdf(config: ConfigOption = "config/default.yaml", base: BaseOption = "") -> None:
    """Print the run's report to report.pdf beside it, with a Chromium that is on the machine."""
    from rltune.config import Workspace
    from rltune.report.pdf import print_page

    print(f"pdf: {print_page(Workspace.open(config, base).report / 'index.html')}")


def workflow_report(config: ConfigOption = "config/default.yaml", base: BaseOption = "") -> None:
    """Write Snakemake's own report of a finished run, snakemake.html beside the other."""
    from rltune.config import Workspace
    from rltune.pipeline.workflow.launch import launch

    workspace = Workspace.open(config, base)
    path = workspace.report / "snakemake.html"
    if status := launch(workspace, 1, ["--report", str(path)]):
        raise typer.Exit(status)
    print(f"workflow report: {path}")


def notebook(
    stage: Annotated[str, typer.Argument(help="Stage: clean, train, evaluate, figures, …")],
    trace: Annotated[str, typer.Option(help="Trace of the stage or its cell, and so on.")] = "",
    cluster: str = "",
    policy: str = "",
    metric: str = "",
    backfill: str = "",
    placement: str = "",
    locality: str = "",
    features: str = "",
    estimate: str = "",
    preset: str = "",
    seed: str = "",
    cell: Annotated[str, typer.Option(help="Short id or name of a cell: `rltune config check` lists them.")] = "",
    only: Annotated[bool, typer.Option("--only", help="Only this one, not what depends on it.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would be done.")] = False,
    config: ConfigOption = "config/default.yaml",
    cores: CoresOption = None,
    profile: ProfileOption = "",
    base: BaseOption = "",
    yes: YesOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Do one stage again, and what depends on it: the one job of that stage that the options name.

    As many options as tell it from the stage's other jobs are enough; the candidates are listed otherwise.
    """
    wanted = {
        "trace": trace,
        "cluster": cluster,
        "policy": policy,
        "metric": metric,
        "backfill": backfill,
        "placement": placement,
        "locality": locality,
        "features": features,
        "estimate": estimate,
        "preset": preset,
        "seed": seed,
        "cell": cell,
    }
    from rltune.config import Workspace
    from rltune.pipeline.workflow.rerun import arguments, find, plan
    from rltune.pipeline.workflow.snakemake import would_run

    workspace = Workspace.open(config, base)
    with step(ASKING):
        job = find(workspace, cores or 1, stage, {axis: value for axis, value in wanted.items() if value})
    told = arguments(job, only)
    if dry_run:
        with step(ASKING):
            jobs, anyway = would_run(workspace, cores or 1, told, [])
        print(plan(workspace, job, jobs, anyway))
        return
    status = _start(workspace, cores, profile, told, yes, verbose)
    if status == 0:
        print("\n".join(str(workspace.base / log) for log in job.log))
    raise typer.Exit(status)


def _start(
    workspace: Workspace, cores: int | None, profile: str, arguments: list[str], yes: bool, verbose: bool
) -> int:
    """Run the workflow, after the question where there is one to ask; its exit status."""
    from rltune.pipeline.workflow.estimate import agreed
    from rltune.pipeline.workflow.estimate import estimate as reckon
    from rltune.pipeline.workflow.launch import launch

    own_policies(workspace)
    where = scheduler(workspace, profile)
    if where is None:
        cores = cores or cores_here()
    at_once, name = (cores or where.jobs, where.name) if where else (cores, "")
    status = launch(
        workspace,
        cores,
        arguments,
        verbose,
        lambda jobs: agreed(reckon(workspace, jobs, at_once, name), yes),
        where,
        asking=lambda: step(ASKING),
    )
    if status == 1 and verbose:
        where = f"{workspace.results / 'notebooks'}, logs of other stages in {workspace.results / 'logs'}"
        print(f"stopped; executed notebooks, a failed one too, are in {where}", file=sys.stderr)
    return status
