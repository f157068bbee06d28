"""The runs of a deployment (paper §5.6): which jobs are submitted to the emulated cluster, and who orders them."""

from collections.abc import Callable
from dataclasses import replace
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import pandas as pd

from rltune.agent.policy_file import TrainedPolicy
from rltune.cluster.types import differ
from rltune.cluster.workload import Workload
from rltune.config.context import Run
from rltune.config.deployment import LEARNED, SHORT, Deployment
from rltune.errors import ClusterDied, ConfigError
from rltune.evaluation.studies.deployment_simulated import classes, first_jobs, max_wait_h
from rltune.files import write_json, write_text
from rltune.slurm.emulate import packages
from rltune.slurm.emulate.configure import partition_name
from rltune.slurm.experiment.conduct import Conducted, conduct, policy_of_rule
from rltune.slurm.experiment.submission import Submission, account_of

TRIES = 2
"""Attempts at a run whose cluster dies or hangs, which happens now and then on a fast clock and a busy machine."""


def submissions(run: Run, workload: Workload, repetition: int, fastest: bool = False) -> list[Submission]:
    """The jobs of a repetition (from 1) with the gaps they came in; each user is an account, and each job has its QOS and its
    partition (rltune.evaluation.studies.deployment_simulated.classes).

    Where GPU types differ in speed, a job names its model and, if it does not run on all types, those on which it does;
    ``fastest``: only the one on which it is fastest. Its time limit is for the slowest.

    Raises ConfigError if jobs ask for GPU types, since the agent's controller leaves such constraints to Slurm.
    """
    cell, settings = run.config.deployed_cell(), run.config.deployment or Deployment()
    cluster, first = run.clusters[cell.cluster], int(first_jobs(settings, workload)[repetition - 1])
    rows = workload.table.iloc[first : first + settings.jobs]
    if typed := int((rows["gpu_type"].notna() & (cluster.gpu_types != "ignore")).sum()):
        raise ConfigError(
            f"deployment: found {typed:,} jobs of {cell.trace} that ask for GPU types, expected a trace whose jobs take "
            "any, such as finetuning-synthetic"
        )
    found, of = [], classes(workload)
    for k, row in enumerate(rows.itertuples(index=False), first):
        gpus, pool = int(row.gpus), cluster.pools[int(row.pool)]
        cpus = int(row.cpus) if pd.notna(row.cpus) else 1
        limit_s = float(of["limit_s"][k])
        at_s = float(row.submit_s - rows["submit_s"].iloc[0])
        partition = f"{partition_name(pool.name)}{f'-{SHORT}' if of['short'][k] else ''}"
        where = (account_of(row.user), partition)
        job = Submission(f"job{k}", at_s, *where, gpus, 1, cpus, limit_s, float(row.run_s), qos=of["qos"][k])
        job = _with_types(job, workload, k, row.model, fastest) if differ(workload.jobs) else job
        kinds = [(partition_name(group.gpu_type).lower(), group.gpus) for group in pool.groups]
        most = max(gpus for kind, gpus in kinds if not job.types or kind in job.types.split("|"))
        found.append(replace(job, nodes=-(-gpus // most)))
    return found


def _with_types(job: Submission, workload: Workload, k: int, model: str, fastest: bool) -> Submission:
    """A job of the workload with its run times by GPU type, as nodes are named."""
    cut, kinds = workload.jobs.cut[k], [partition_name(kind).lower() for kind in workload.layout.types]
    slow = {kind: float(c["slow"]) for kind, c in zip(kinds, cut, strict=True) if c["full"] >= 0}
    names = [min(slow, key=slow.__getitem__)] if fastest else list(slow)
    return replace(
        job,
        limit_s=job.limit_s * max(slow.values()),
        times_s={kind: job.run_s * times for kind, times in slow.items()},
        types="|".join(names) if len(names) < len(kinds) else "",
        model=model,
    )


def deploy(
    run: Run,
    workload: Workload,
    policy: TrainedPolicy | None,
    scheduler: str,
    repetition: int,
    log: Path,
    say: Callable[[str], None] = print,
) -> Conducted:
    """One run on real daemons, ordered by Slurm (schedulers `slurm…`), by ``policy`` (`rltune…`) or by a rule; its facts have ``tries``, and ``retries`` with the reasons.

    A run whose cluster fails by itself is repeated, TRIES times in all. Raises SlurmError if a controller fails, the last
    try does, or Slurm's packages are missing. ``log``: the controller's log; a failed run keeps the daemons' logs next to it.
    """
    settings = run.config.deployment or Deployment()
    retries: list[str] = []
    cell, jobs = run.config.deployed_cell(), submissions(run, workload, repetition, scheduler == "slurm_fastest")
    if scheduler not in LEARNED:
        policy = None if scheduler.startswith("slurm") else policy_of_rule(scheduler)
    while True:
        path = log.with_name(f"{log.stem}.{len(retries) + 1}{log.suffix}")
        try:
            waits, types = max_wait_h(run), scheduler == "rltune_types"
            done = conduct(run.clusters[cell.cluster], jobs, policy, settings.speed, path, waits, say, types)
        except ClusterDied as error:
            retries.append(str(error))
            if len(retries) == TRIES:
                raise ClusterDied(f"deployment, {scheduler} {repetition}: {error}; its log is {path}") from error
            say(f"{error}; its log is {path}; the run is repeated")
            continue
        where = {"scheduler": scheduler, "repetition": repetition, "speed": settings.speed}
        return replace(done, facts={**where, "tries": len(retries) + 1, "retries": retries, **done.facts})


def deploy_all(
    run: Run,
    workload: Workload,
    policy: TrainedPolicy,
    repetition: int,
    made_of: dict[str, Any],
    folder: Path,
    logs: Path,
) -> None:
    """Run every scheduler on a repetition's jobs, side by side, and write each run to a folder of the scheduler's name:
    jobs.csv, cycles.csv and, last, facts.json, with ``made_of``: cell, code and, of an agent, policy.

    A run that is in ``folder`` is not made again. Raises SlurmError if one fails, once the others are there.
    """

    def one(scheduler: str) -> None:
        def say(line: str) -> None:
            print(f"{scheduler}: {line}\n", end="")  # in one write: others print too

        where = folder / scheduler
        if (where / "facts.json").exists():
            say("its run of an earlier attempt is kept")
            return
        log = logs / f"deploy-{scheduler}-{repetition}-controller.log"
        done = deploy(run, workload, policy, scheduler, repetition, log, say)
        jobs = done.jobs.assign(index=range(len(done.jobs)), scheduler=scheduler, repetition=repetition)
        cycles = done.cycles.assign(scheduler=scheduler, repetition=repetition)
        of_policy = {} if scheduler in LEARNED else {"policy": None}
        write_text(where / "jobs.csv", jobs.round(3).to_csv(index=False))
        write_text(where / "cycles.csv", cycles.round(4).to_csv(index=False))
        write_json(where / "facts.json", made_of | of_policy | done.facts)
        ended, hours = int((jobs["state"] == "COMPLETED").sum()), done.facts["simulated_s"] / 3600
        say(f"{ended} of {len(jobs)} completed in {done.facts['true_s']:.0f} s, {hours:.1f} h of the cluster's clock")

    schedulers = (run.config.deployment or Deployment()).schedulers
    with ThreadPool(len(schedulers)) as pool:  # its threads end with the process, and clusters do
        pool.map(one, schedulers, chunksize=1)


def missing_runs(settings: Deployment, found: int) -> str:
    """Which of the runs are missing, and how to install the packages that they need; "" if none is missing."""
    if found == (asked := len(settings.runs())):
        return ""
    lacks = packages.missing(accounting=True, speed=settings.speed)
    why = packages.lacking(lacks) if lacks else "the workflow makes them."
    return f"{asked - found} of {asked} runs on the Slurm cluster are missing: {why}"
