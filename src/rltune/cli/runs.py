"""Commands on a whole run: start it, say what it will cost, how far it is, do one stage again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rltune.cli.options import ALL_CORES, BaseOption, ConfigOption, CoresOption, own_policies

if TYPE_CHECKING:
    from rltune.config import Workspace

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Start a long run without asking.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", help="Show all that Snakemake and the stages say.")]
PassedOn = Annotated[list[str] | None, typer.Argument(help="Passed on to Snakemake, after --.")]


def run(
    config: ConfigOption = "config/default.yaml",
    cores: CoresOption = ALL_CORES,
    base: BaseOption = "",
    yes: YesOption = False,
    verbose: VerboseOption = False,
    arguments: PassedOn = None,
) -> None:
    """Run the whole workflow: traces to report. What is already made and still right is kept.

    A run of more than an hour, or with downloads of more than 100 MB, asks first.
    """
    from rltune.config import Workspace

    workspace = Workspace.open(config, base)
    status = _start(workspace, cores, arguments or [], yes, verbose)
    if status == 0 and not arguments:
        print(f"report: {workspace.report / 'index.html'}")
    raise typer.Exit(status)


def estimate(
    config: ConfigOption = "config/default.yaml", cores: CoresOption = ALL_CORES, base: BaseOption = ""
) -> None:
    """Say what a run would still cost: time, downloads, disk. Nothing is started."""
    from rltune.config import Workspace
    from rltune.pipeline.workflow.estimate import estimate as reckon
    from rltune.pipeline.workflow.snakemake import would_run

    workspace = Workspace.open(config, base)
    (jobs,) = would_run(workspace, cores, [])
    print(reckon(workspace, jobs, cores).text if jobs else f"{config}: nothing to be done")


def status(
    config: ConfigOption = "config/default.yaml", cores: CoresOption = ALL_CORES, base: BaseOption = ""
) -> None:
    """Say how far a run is, while it is at work or after it ended: done, running, failed and to do for each stage."""
    from rltune.config import Workspace
    from rltune.pipeline.workflow.status import status as told

    print(told(Workspace.open(config, base), cores))


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
    blocking: str = "",
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
    cores: CoresOption = ALL_CORES,
    base: BaseOption = "",
    yes: YesOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Do one stage again, and what depends on it: the one job of that stage that the options name.

    As many options as tell it from the stage's other jobs are enough; the candidates are listed otherwise.
    """
    wanted = {
        "trace": trace, "cluster": cluster, "policy": policy, "metric": metric, "blocking": blocking,
        "placement": placement, "locality": locality, "features": features, "estimate": estimate, "preset": preset,
        "seed": seed, "cell": cell,
    }  # fmt: skip
    from rltune.config import Workspace
    from rltune.pipeline.workflow.rerun import arguments, find, plan
    from rltune.pipeline.workflow.snakemake import would_run

    workspace = Workspace.open(config, base)
    job = find(workspace, cores, stage, {axis: value for axis, value in wanted.items() if value})
    told = arguments(job, only)
    if dry_run:
        (jobs,) = would_run(workspace, cores, told)
        print(plan(workspace, job, jobs))
        return
    status = _start(workspace, cores, told, yes, verbose)
    if status == 0:
        print("\n".join(str(workspace.base / log) for log in job.log))
    raise typer.Exit(status)


def _start(workspace: Workspace, cores: int, arguments: list[str], yes: bool, verbose: bool) -> int:
    """Run the workflow, after the question where there is one to ask; its exit status."""
    from rltune.pipeline.workflow.estimate import agreed
    from rltune.pipeline.workflow.estimate import estimate as reckon
    from rltune.pipeline.workflow.launch import launch

    own_policies(workspace)
    status = launch(
        workspace, cores, arguments, verbose, lambda jobs: agreed(reckon(workspace, jobs, cores), yes)
    )  # fmt: skip
    if status == 1 and verbose:
        where = f"{workspace.results / 'notebooks'}, logs of other stages in {workspace.results / 'logs'}"
        print(f"stopped; executed notebooks, a failed one too, are in {where}", file=sys.stderr)
    return status
