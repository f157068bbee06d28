"""`rltune simulate`: one policy on a trace and a cluster."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from rltune.cli.choices import check_goes_together, check_named, check_output, check_words
from rltune.cli.steps import step
from rltune.config.cells import BACKFILLS, LOCALITIES, PLACEMENTS, PLANNED_TYPES, POLICIES, TYPES, check_estimate
from rltune.config.context import Run
from rltune.errors import ConfigError
from rltune.files import write_text

Factor = float | None
ESTIMATES = "exact, lognormal-SIGMA, requested, history-rolling, history-lightgbm, published"
INTERFERENCE = "Factor on the run time of a job of several GPUs while another is on one of its nodes, ≥ 1."


def simulate(
    trace: Annotated[str, typer.Option(help="Name of a file in config/traces.")],
    cluster: Annotated[str, typer.Option(help="Name of a file in config/clusters.")],
    policy: Annotated[str, typer.Option(help=f"{', '.join(POLICIES)}; or one of the run's `plugins`.")] = "fifo",
    backfill: Annotated[str, typer.Option(help=f"While the first job does not fit: {', '.join(BACKFILLS)}.")] = "none",
    placement: Annotated[str, typer.Option(help=f"Choice of nodes: {', '.join(PLACEMENTS)}.")] = "best_fit",
    locality: Annotated[str, typer.Option(help=f"How many nodes a job may have: {', '.join(LOCALITIES)}.")] = "strict",
    types: Annotated[str, typer.Option(help=f"GPU type of a job that may have several: {', '.join(TYPES)}.")] = "auto",
    gpu_price: Annotated[
        float, typer.Option(help="With types least, allox or joint: seconds that a GPU-second counts as.")
    ] = 0.0,
    multi_node_slowdown: Annotated[
        Factor, typer.Option(help="Factor on run time on more nodes than strict, ≥ 1.")
    ] = None,
    interference_slowdown: Annotated[Factor, typer.Option(help=INTERFERENCE)] = None,
    overrun: Annotated[str | None, typer.Option(help="Expected end of a job past its estimate: double, now.")] = None,
    sticky_head: Annotated[bool | None, typer.Option(help="Whether a first job stays first until it starts.")] = None,
    estimate: Annotated[str, typer.Option(help=f"Run-time estimates: {ESTIMATES}.")] = "lognormal-1",
    part: Annotated[str, typer.Option(help="Jobs to take: all, train, validation, test.")] = "all",
    begin: Annotated[int | None, typer.Option("--from", help="Take jobs from this one on, counted from 0.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Number of jobs to take; default: all.")] = None,
    windows: Annotated[
        int | None, typer.Option(metavar="JOBS", help="Jobs per window, each from an idle cluster; default: 256.")
    ] = None,
    replay: Annotated[bool, typer.Option("--replay", help="One sequence of all jobs instead of windows.")] = False,
    warm_up: Annotated[float, typer.Option(help="Share of jobs at a replay's start that are not measured.")] = 0.0,
    bound: Annotated[bool, typer.Option("--bound", help="Add a lower bound on the mean wait of any policy.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write a row per job, with its user and VC, to this file.")] = None,
    timeline: Annotated[Path | None, typer.Option(help="Write GPUs used and jobs queued over time to this.")] = None,
    gantt: Annotated[Path | None, typer.Option(help="Draw the first window to this file (.svg or .png).")] = None,
    config: Annotated[str, typer.Option(help="The run's configuration.")] = "config/default.yaml",
) -> None:
    """Simulate one policy on a trace and a cluster, and print its metrics. Times are in seconds.

    Slowdowns that are not given are the cluster's; overrun and sticky head are as in the run's `simulation`.
    """
    check_output("csv", csv)
    check_output("timeline", timeline)
    check_output("gantt", gantt, (".svg", ".png"))
    if gpu_price and types in set(TYPES) - {"auto", *PLANNED_TYPES}:
        raise ConfigError(f"--gpu-price: goes with --types {', '.join(PLANNED_TYPES)}; found {types}")
    check_goes_together(replay, warm_up, bound, windows, part, begin, jobs)
    given = {"multi_node_slowdown": multi_node_slowdown, "interference_slowdown": interference_slowdown}
    slowdowns = {name: factor for name, factor in given.items() if factor is not None}
    run = Run.open(config)
    rules = {"policy": policy, "backfill": backfill, "placement": placement, "locality": locality, "types": types}
    rules |= {"overrun": overrun}
    check_words(bool(run.config.plugins), **rules, part=part)
    check_named(trace, cluster, estimate)
    check_estimate(policy, estimate)
    with step("loading the simulator"):
        from rltune.cluster.workload import build_workload
        from rltune.evaluation import simulation
        from rltune.evaluation.plugins import files_of, load_plugins, naming_plugins
        from rltune.report.simulation import draw, summary
    load_plugins(run)
    scheduler = simulation.make_scheduler(
        run.config, **rules, **slowdowns, sticky_head=sticky_head, gpu_price=gpu_price
    )
    with step(f"reading {trace}, fitted to {cluster}"):
        workload = build_workload(run, trace, cluster, estimate, **slowdowns)
    request = simulation.Request(part, begin, jobs, windows, replay, warm_up, gantt is not None)
    ran = replace(scheduler, **workload.slowdowns).on(workload.jobs)
    if gpu_price and ran.types not in PLANNED_TYPES:
        raise ConfigError(
            f"--gpu-price: goes with --types {', '.join(PLANNED_TYPES)}; here --types auto is {ran.types}"
        )
    with naming_plugins(files_of(run)):
        result = simulation.run(run.config, workload, request, scheduler, step)

    print(f"{trace} ({workload.meta.data} data) on {cluster}, {result.about()}; estimates {estimate}")
    if workload.left_out:
        print("not simulated: " + "; ".join(f"{n:,} {why}" for why, n in workload.left_out.items()))
    if estimate.startswith("lognormal") and result.has_limits:
        print("these estimates are the true run times, blurred; the trace has its users' limits: --estimate requested")
    hidden = {"policy"} if ran.types in PLANNED_TYPES else {"policy", "gpu_price"}
    hidden |= {"types"} if ran.types == "any" else set()
    print(", ".join([policy, *(f"{k} {v}" for k, v in asdict(ran).items() if k not in hidden and v != {})]))
    print(summary(result.metrics(), result.bound() if bound else None))
    if placed := result.placed():
        print(placed)
    if csv is not None:
        write_text(csv, result.jobs().to_csv(index=False))
        print(f"jobs: {csv}")
    if timeline is not None:
        write_text(timeline, result.timeline().to_csv(index=False))
        print(f"over time: {timeline}")
    if gantt is not None:
        draw(result.bars(), workload.layout.nodes.gpus, f"{trace} on {cluster}: {policy}", gantt)
        print(f"chart: {gantt}")
