"""The example schedules of Figures 1–4 on an emulated Slurm cluster of real daemons, as its accounting reports them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from rltune.errors import ClusterDied, SlurmError, SlurmUnavailable
from rltune.evaluation.studies.example_schedules import CLUSTER, COLUMNS, JOBS, MINUTE_S, PANELS, Panel
from rltune.slurm import accounting
from rltune.slurm.accounting import Account
from rltune.slurm.emulate import Emulation, packages
from rltune.slurm.records import Change

SPEED = 600.0
"""How fast the cluster's clock runs: 2.5 hours per schedule in 15 s. The 10 ms that a job's start takes are then 6 s."""
SHARE = {"exclusive": "--exclusive", "best_fit": "--oversubscribe"}
"""sbatch's option that gives a job its nodes alone (`OverSubscribe=NO`) or lets it share them (`YES`)."""
SETTINGS = {"OverSubscribe": "YES:4", "OverTimeLimit": "10", "KillWait": "30"}
"""Of the partition: jobs decide whether they share. Of the controller: the minutes a job may exceed its limit (starting it
counts as run time here), and the seconds until it is killed. Slurm expects a job over its limit to hold its nodes for both,
and backfills what ends earlier: less time than any waiting job runs."""
RAISE = 1000
"""Points by which a job is raised above the highest: as many as age can add to a priority, since a priority that was set
does not age."""
LATE_S = 30.0
"""Real seconds that the database may take to record the last end."""
LOOK_S = 0.25
"""Real seconds between two looks at the queue or the accounts."""
SILENT_S = 20.0
"""Real seconds after which a command counts as unanswered."""
CLUSTERS = 3
"""Clusters to try: on a busy machine one in some dozens stops answering, and on a fast clock the accounting sometimes loses
a job's start."""


def run_schedules(log: Callable[[str], None] = print) -> tuple[pd.DataFrame, dict[str, Any]]:
    """(The four schedules with COLUMNS, how they were made: ``lacks`` (missing packages; then there are no schedules),
    ``speed``, ``slurm`` (version), ``took_s`` (real seconds)).

    Raises SlurmError if a daemon fails or Slurm does not do what it is asked.
    """
    if lacks := packages.absent(accounting=True, speed=SPEED):
        log(f"Slurm is not installed (missing: {', '.join(lacks)}); make slurm-deps installs it")
        return pd.DataFrame(columns=list(COLUMNS)), {"lacks": lacks, "speed": SPEED}
    began = time.monotonic()
    runs, version = on_slurm(SPEED, log)
    return runs, {"lacks": [], "speed": SPEED, "slurm": version, "took_s": time.monotonic() - began}


def on_slurm(speed: float, log: Callable[[str], None] = print) -> tuple[pd.DataFrame, str]:
    """(The four schedules with COLUMNS, Slurm's version).

    A cluster that stops answering, dies, or loses a start in its accounts is replaced by a new one, which runs the
    remaining schedules. Raises SlurmUnavailable or ClusterDied when CLUSTERS of them fail.
    """
    found: dict[str, pd.DataFrame] = {}
    for left in reversed(range(CLUSTERS)):
        try:
            with Emulation(CLUSTER, accounting=True, accounts=["lab"], speed=speed, settings=SETTINGS) as slurm:
                version = slurm.client().version()
                for panel in PANELS[len(found) :]:
                    log(
                        f"{panel.figure}: {len(JOBS)} jobs on {len(slurm.nodes)} Slurm nodes at {speed:g} times real time"
                    )
                    found[panel.figure] = run_panel(slurm, panel)
                break
        except (SlurmUnavailable, ClusterDied) as error:
            if not left:
                raise
            log(f"{error}; trying again with a new cluster")
    return pd.concat(found.values(), ignore_index=True), version


def run_panel(slurm: Emulation, panel: Panel, rows: Sequence[tuple[float, float, int]] = JOBS) -> pd.DataFrame:
    """Submit the jobs at their times, raise one if the panel says so, wait for the last end; a frame with COLUMNS.

    The cluster must be idle. Raises ClusterDied if a daemon ends or the accounts stay incomplete, SlurmError if nothing
    moves or a job does not complete.
    """
    client, began_s = slurm.client(SILENT_S), slurm.now()
    ids: list[int] = []
    for minute, run, gpus in rows:
        while (left_s := began_s + minute * MINUTE_S - slurm.now()) > 0:
            time.sleep(left_s / slurm.speed)
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
    number = {node.name: m for m, node in enumerate(slurm.nodes)}
    found = []
    for job, a in enumerate(accounts):
        times = (a.submit_s - first_s, a.start_s - first_s, a.end_s - first_s)
        found += [(panel.figure, job, *times, number[n], a.gpus // len(a.nodes), priority[a.id]) for n in a.nodes]
    return pd.DataFrame(found, columns=list(COLUMNS))


def _submit(slurm: Emulation, name: str, run_min: float, gpus: int, share: str) -> int:
    """Submit a sleeping job on the fewest nodes, with the CPUs that belong to its GPUs; its id."""
    each = CLUSTER.pools[0].groups[0]
    nodes = -(-gpus // each.gpus)
    answer = slurm.run(
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
    return int(answer.strip().split(";")[0])


def _until_all_ended(slurm: Emulation, longest_s: float) -> None:
    """Wait until the queue is empty: at most ``longest_s`` real seconds (all jobs in sequence) and a minute."""
    deadline = time.monotonic() + longest_s + 60.0
    while slurm.run("squeue", "--noheader", "--format=%A", timeout_s=SILENT_S).strip():
        if ended := slurm.ended():
            raise ClusterDied(f"daemons of the emulated cluster ended: {', '.join(ended)}")
        if time.monotonic() > deadline:
            raise SlurmError(f"jobs are still queued after {longest_s + 60:.0f} s: {slurm.run('squeue')}")
        time.sleep(LOOK_S)


def _accounts(slurm: Emulation, ids: list[int]) -> list[Account]:
    """The accounts of finished jobs, in the order of ``ids``."""
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
