"""The example schedules of Figures 1–4 on an emulated Slurm cluster of real daemons, as its accounting reports them."""

import time
from collections.abc import Callable, Sequence
from multiprocessing.pool import ThreadPool
from typing import Any

import pandas as pd

from rltune.errors import ClusterDied, SlurmError, SlurmUnavailable
from rltune.evaluation.studies.example_schedules import CLUSTER, COLUMNS, JOBS, MINUTE_S, PANELS, Panel
from rltune.slurm.emulate import Emulation, packages
from rltune.slurm.emulate.configure import partition_name
from rltune.slurm.experiment.accounts import jobs_of
from rltune.slurm.experiment.submission import Submission, submit
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
LOOK_S = 0.25
"""Real seconds between two looks at the queue or the accounts."""
SILENT_S = 20.0
"""Real seconds after which a command counts as unanswered."""
CLUSTERS = 3
"""Clusters to try: on a busy machine one in some dozens stops answering, and on a fast clock the accounting sometimes loses
a job's start."""


def run_schedules(log: Callable[[str], None] = print, speed: float = SPEED) -> tuple[pd.DataFrame, dict[str, Any]]:
    """(The four schedules with COLUMNS, how they were made: ``lacks`` (missing packages; then there are no schedules),
    ``speed``, ``slurm`` (version), ``took_s`` (real seconds)).

    Those of each placement run on a cluster of their own, at the same time. A cluster that stops answering, dies, or loses a
    start in its accounts is replaced by a new one, which runs the remaining schedules. Raises SlurmUnavailable or ClusterDied
    when CLUSTERS of them fail, SlurmError if Slurm does not do what it is asked.
    """
    if lacks := packages.absent(accounting=True, speed=speed):
        log(f"Slurm is not installed; as root: apt-get install --no-install-recommends {' '.join(lacks)}")
        return pd.DataFrame(columns=list(COLUMNS)), {"lacks": lacks, "speed": speed}
    began = time.monotonic()
    found: dict[str, pd.DataFrame] = {}
    versions: list[str] = []

    def run(panels: Sequence[Panel]) -> None:
        for left in reversed(range(CLUSTERS)):
            try:
                with Emulation(CLUSTER, accounting=True, accounts=["lab"], speed=speed, settings=SETTINGS) as slurm:
                    versions.append(slurm.client().version())
                    for panel in panels:
                        if panel.figure in found:
                            continue
                        log(
                            f"{panel.figure}: {len(JOBS)} jobs on {len(slurm.nodes)} nodes at {speed:g} times real time"
                        )
                        found[panel.figure] = run_panel(slurm, panel)
                return
            except (SlurmUnavailable, ClusterDied) as error:
                if not left:
                    raise
                log(f"{error}; trying again with a new cluster")

    by_placement = [[panel for panel in PANELS if panel.placement == placement] for placement in SHARE]
    with ThreadPool(len(by_placement)) as pool:
        pool.map(run, by_placement, chunksize=1)
    facts = {"lacks": [], "speed": speed, "slurm": versions[0], "took_s": time.monotonic() - began}
    return pd.concat([found[panel.figure] for panel in PANELS], ignore_index=True), facts


def run_panel(slurm: Emulation, panel: Panel, rows: Sequence[tuple[float, float, int]] = JOBS) -> pd.DataFrame:
    """Submit the jobs at their times, raise one if the panel says so, wait for the last end; a frame with COLUMNS.

    The cluster must be idle. Raises ClusterDied if a daemon ends or the accounts stay incomplete, SlurmError if nothing
    moves or a job does not complete.
    """
    client, began_s = slurm.client(SILENT_S), slurm.now()
    group, pool = CLUSTER.pools[0].groups[0], partition_name(CLUSTER.pools[0].name)
    jobs, ids = [], []
    for k, (minute, run, gpus) in enumerate(rows):
        nodes, cpus = -(-gpus // group.gpus), int(group.cpus // group.gpus) * gpus
        at_s, run_s, name = minute * MINUTE_S, run * MINUTE_S, f"{panel.figure}-{k}"
        jobs.append(Submission(name, at_s, "lab", pool, gpus, nodes, cpus, run_s, run_s, SHARE[panel.placement]))
        while (left_s := began_s + at_s - slurm.now()) > 0:
            time.sleep(left_s / slurm.speed)
        ids.append(submit(slurm, jobs[-1]))  # one by one: of jobs at one time the first is Slurm's first
    if panel.raised is not None:
        known = {job.id: job.priority for job in client.jobs().records}
        top = max(known[ids[job]] for job in panel.above)
        (outcome,) = client.update([Change(ids[panel.raised], top + RAISE)])
        if not outcome.ok:
            raise SlurmError(f"{panel.figure}: the priority of job {panel.raised} was not changed: {outcome.message}")
    priority = {job.id: job.priority for job in client.jobs().records}
    _until_all_ended(slurm, sum(job.run_s for job in jobs) / slurm.speed)
    runs = jobs_of(slurm, jobs, began_s)
    if len(wrong := runs[runs["state"] != "COMPLETED"]):
        raise SlurmError(f"sacct: {wrong['job'].iloc[0]} is {wrong['state'].iloc[0]}; expected COMPLETED")
    if runs[["start_s", "end_s"]].isna().to_numpy().any():
        raise ClusterDied(f"sacct: found {runs['start_s'].notna().sum()} of {len(ids)} jobs with a start, expected all")
    number = {node.name: m for m, node in enumerate(slurm.nodes)}
    runs[["submit_s", "start_s", "end_s"]] -= runs["submit_s"].min()
    runs = runs.assign(figure=panel.figure, job=runs.index, node=runs["node_list"].str.split(","))
    runs = runs.assign(priority=[priority[job] for job in ids], gpus=runs["asked_gpus"] // runs["nodes"]).explode(
        "node"
    )
    return runs.assign(node=runs["node"].map(number).astype(int))[list(COLUMNS)].reset_index(drop=True)


def _until_all_ended(slurm: Emulation, longest_s: float) -> None:
    """Wait until the queue is empty: at most ``longest_s`` real seconds (all jobs in sequence) and a minute."""
    deadline = time.monotonic() + longest_s + 60.0
    while slurm.run("squeue", "--noheader", "--format=%A", timeout_s=SILENT_S).strip():
        if ended := slurm.ended():
            raise ClusterDied(f"daemons of the emulated cluster ended: {', '.join(ended)}")
        if time.monotonic() > deadline:
            raise SlurmError(f"jobs are still queued after {longest_s + 60:.0f} s: {slurm.run('squeue')}")
        time.sleep(LOOK_S)
