"""The schedules of Figures 1–4 on an emulated Slurm cluster of real daemons, told by its accounting."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from rltune.config import Workspace
from rltune.config.motivation import Motivation
from rltune.errors import ClusterDied, DataError, SlurmError, SlurmUnavailable
from rltune.files import read_json, write_json, write_text
from rltune.pipeline.motivation.jobs import CLUSTER, COLUMNS, JOBS, MINUTE_S, PANELS, Panel
from rltune.slurm import accounting
from rltune.slurm.accounting import Account
from rltune.slurm.emulate import Emulation, packages
from rltune.slurm.records import Change

SHARE = {"exclusive": "--exclusive", "best_fit": "--oversubscribe"}
"""sbatch's option that makes a job `OverSubscribe=NO`, its nodes for itself alone, or `YES`."""
SETTINGS = {"OverSubscribe": "YES:4", "OverTimeLimit": "10", "KillWait": "30"}
"""Of the partition: jobs decide. Of the controller: minutes over its limit until a job is ended, since here starting it is
part of its time, and seconds more until it is killed. Slurm expects a job over its limit to hold its nodes for as long as
both, and backfills what ends before: less than any waiting job runs."""
RAISE = 1000
"""By how much a job is raised above the highest: the most that the factor age adds to a priority, which grows while one
that was set does not."""
LATE_S = 30.0
"""How long, on the true clock, the database may take to have the last end."""
LOOK_S = 0.25
"""True seconds between two looks at the queue or the accounts."""
SILENT_S = 20.0
"""True seconds after which a command has no answer."""
CLUSTERS = 3
"""How many clusters are started while they fall silent, as one of some dozens did on a busy machine, or their accounting
loses the start of a job, as on a fast clock it now and then does."""


def write_runs(workspace: Workspace, say: Callable[[str], None] = print) -> None:
    """Run it and write the schedules, and beside them a .json: ``lacks`` (packages that are missing; then there are no
    schedules), ``speed``, ``slurm`` (version), ``took_s`` (true seconds).

    Raises SlurmError where a daemon fails or Slurm does not do as it is told.
    """
    settings = workspace.config.motivation or Motivation()
    lacks, facts = packages.absent(accounting=True, speed=settings.speed), {}
    runs = pd.DataFrame(columns=list(COLUMNS))
    if lacks:
        say(f"not run, Slurm is not installed: without {', '.join(lacks)}; make slurm-deps installs them")
    else:
        began = time.monotonic()
        runs, version = on_slurm(settings.speed, say)
        facts = {"slurm": version, "took_s": time.monotonic() - began}
    write_text(workspace.motivation, runs.to_csv(index=False))
    write_json(workspace.motivation.with_suffix(".json"), {"lacks": lacks, "speed": settings.speed, **facts})


def read_runs(workspace: Workspace) -> tuple[pd.DataFrame, dict[str, Any]]:
    """What :func:`write_runs` wrote; runs it first where it has not been. Raises DataError where a file is not whole."""
    path = workspace.motivation
    if not path.with_suffix(".json").is_file():
        write_runs(workspace)
    facts, runs = read_json(path.with_suffix(".json")), pd.read_csv(path)
    wanted = 0 if facts["lacks"] else len(PANELS) * len(JOBS)
    if list(runs.columns) != list(COLUMNS) or len(runs.drop_duplicates(["figure", "job"])) != wanted:
        raise DataError(
            f"{path}: found {len(runs)} rows of {', '.join(runs.columns)}; expected {wanted} jobs with "
            f"{', '.join(COLUMNS)}; remove it, and the stage motivation makes it again"
        )
    return runs, facts


def on_slurm(speed: float, say: Callable[[str], None] = print) -> tuple[pd.DataFrame, str]:
    """(The four schedules, a row a figure × job × node with COLUMNS; Slurm's version).

    A cluster that does not answer any more, or dies, or whose accounts lack a start, is ended, and another has the
    schedules that are still to be made; raises SlurmUnavailable or ClusterDied where that happens to CLUSTERS of them.
    """
    found: dict[str, pd.DataFrame] = {}
    for left in reversed(range(CLUSTERS)):
        try:
            with Emulation(CLUSTER, accounting=True, accounts=["lab"], speed=speed, settings=SETTINGS) as slurm:
                version = slurm.client().version()
                for panel in PANELS[len(found) :]:
                    say(
                        f"{panel.figure}: {len(JOBS)} jobs on {len(slurm.nodes)} nodes of Slurm, {speed:g} times as fast"
                    )
                    found[panel.figure] = play(slurm, panel)
                break
        except (SlurmUnavailable, ClusterDied) as error:
            if not left:
                raise
            say(f"{error}; once more, with another cluster")
    return pd.concat(found.values(), ignore_index=True), version


def play(slurm: Emulation, panel: Panel, rows: Sequence[tuple[float, float, int]] = JOBS) -> pd.DataFrame:
    """Submit the jobs at their times, raise the one that is to be raised, wait for the last end; columns: COLUMNS.

    The cluster has to be idle. Raises ClusterDied where a daemon ends or the accounts stay incomplete, SlurmError where
    nothing goes on or a job does not complete.
    """
    client, began_s = slurm.client(SILENT_S), slurm.now()
    ids: list[int] = []
    for minute, run, gpus in rows:
        _until(slurm, began_s + minute * MINUTE_S)
        ids.append(_submit(slurm, f"{panel.figure}-{len(ids)}", run, gpus, SHARE[panel.placement]))
    if panel.raised is not None:
        known = {job.id: job.priority for job in client.jobs().records}
        top = max(known[ids[job]] for job in panel.above)
        (outcome,) = client.update([Change(ids[panel.raised], top + RAISE)])
        if not outcome.ok:
            raise SlurmError(f"{panel.figure}: the priority of job {panel.raised} was not changed: {outcome.message}")
    priority = {job.id: job.priority for job in client.jobs().records}
    _until_all_ended(slurm, sum(run for _, run, _ in rows) * MINUTE_S / slurm.speed)
    accounts = _accounts(slurm, ids)
    first_s = min(account.submit_s for account in accounts)
    places = {node.name: m for m, node in enumerate(slurm.nodes)}
    return pd.DataFrame(
        [
            (
                panel.figure,
                job,
                a.submit_s - first_s,
                a.start_s - first_s,
                a.end_s - first_s,
                places[node],
                a.gpus // len(a.nodes),
                priority[a.id],
            )
            for job, a in enumerate(accounts)
            for node in a.nodes
        ],
        columns=list(COLUMNS),
    )


def _submit(slurm: Emulation, name: str, run_min: float, gpus: int, share: str) -> int:
    """Submit a job that sleeps, on the fewest nodes, with the CPUs that go with its GPUs; its id."""
    each = CLUSTER.pools[0].groups[0]
    nodes = -(-gpus // each.gpus)
    told = slurm.run(
        "sbatch",
        "--parsable",
        "--chdir=/",
        "--output=/dev/null",
        "--no-requeue",
        f"--job-name={name}",
        share,
        f"--nodes={nodes}",
        f"--ntasks={gpus}",
        f"--cpus-per-task={int(each.cpus // each.gpus)}",
        f"--gres=gpu:{gpus // nodes}",
        f"--time={run_min:g}",
        stdin=f"#!/bin/sh\nsleep {run_min * MINUTE_S:g}\n",
        timeout_s=SILENT_S,
    )
    return int(told.strip().split(";")[0])


def _until(slurm: Emulation, at_s: float) -> None:
    while (left_s := at_s - slurm.now()) > 0:
        time.sleep(left_s / slurm.speed)


def _until_all_ended(slurm: Emulation, longest_s: float) -> None:
    """Wait until the queue is empty; no longer than it takes jobs one after the other, in true seconds, and a minute."""
    deadline = time.monotonic() + longest_s + 60.0
    while slurm.run("squeue", "--noheader", "--format=%A", timeout_s=SILENT_S).strip():
        if ended := slurm.ended():
            raise ClusterDied(f"of the emulated cluster's daemons ended: {', '.join(ended)}")
        if time.monotonic() > deadline:
            raise SlurmError(f"jobs are still queued after {longest_s + 60:.0f} s: {slurm.run('squeue')}")
        time.sleep(LOOK_S)


def _accounts(slurm: Emulation, ids: list[int]) -> list[Account]:
    """The accounts of jobs that have left the queue, in their order."""
    deadline = time.monotonic() + LATE_S
    while True:
        found = accounting.read(slurm.run(*accounting.command(ids), timeout_s=SILENT_S))
        if all(job in found and found[job].ended for job in ids):
            break
        if time.monotonic() > deadline:
            whole = sum(job in found and found[job].ended for job in ids)
            raise ClusterDied(f"sacct: found {whole} of {len(ids)} jobs with a start and an end, expected all of them")
        time.sleep(LOOK_S)
    if wrong := [f"{found[job].name} is {found[job].state}" for job in ids if found[job].state != "COMPLETED"]:
        raise SlurmError(f"sacct: {'; '.join(wrong)}; expected COMPLETED")
    return [found[job] for job in ids]
