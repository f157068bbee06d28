"""The deployment's jobs in the simulator, compared with what Slurm did with them.

Frames of jobs as in rltune.evaluation.studies.deployment; those of the simulator also have ``backfill``, a rule of
backfilling, and one row for each.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.scheduler_choice import type_plan
from rltune.cluster.fit import with_unknown_speeds
from rltune.cluster.load import offered_load
from rltune.cluster.workload import Workload
from rltune.config.context import Run
from rltune.config.deployment import LEARNED, QOS, SHORT_S, Deployment
from rltune.config.max_wait import DEFAULT
from rltune.errors import ConfigError
from rltune.evaluation.contenders import contender_of, run as simulate
from rltune.evaluation.studies.deployment import COLUMN, JOB, RUN, paired, per_run, with_measures
from rltune.simulator.metrics import job_table

SLURM = "multifactor_size"
"""Slurm's order in the simulator: with Slurm's own job size, larger first."""
BACKFILLS = ("easy", "conservative")
"""Rules that the simulator predicts with: the one that agents are trained under by default, and the one that reserves nodes
for every queued job, as sched/backfill does."""
GOLDEN = 0.6180339887498949
"""Its multiples fill the interval from 0 to 1 evenly."""
PREDICTED = ("wait", "makespan")
"""Measures whose gain is compared with the simulator's prediction."""


def first_jobs(settings: Deployment, workload: Workload) -> np.ndarray:
    """[repetitions] first job of each repetition: consecutive and disjoint, from the beginning of the test part.

    Raises ConfigError if the test part has too few jobs.
    """
    begin, end = workload.split.test
    wanted = settings.jobs * settings.repetitions
    if end - begin < wanted:
        raise ConfigError(
            f"deployment: {settings.repetitions} repetitions of {settings.jobs:,} jobs need {wanted:,}, found "
            f"{end - begin:,} in the test part of {workload.meta.name}; ask for fewer, give the trace more jobs, or "
            "lower `train_share`"
        )
    return begin + settings.jobs * np.arange(settings.repetitions)


def classes(workload: Workload) -> pd.DataFrame:
    """Of every job ``limit_s``, the time limit that its user requests on the fastest type (a job without one in the trace: its
    estimate, or its run time if that is longer); ``qos``, by its number so that any number of consecutive jobs has nearly the
    shares of QOS; ``short``, whether its limit sends it to the partition for short jobs."""
    ends = np.cumsum([share for _, share in QOS.values()])
    qos = np.searchsorted(ends[:-1], np.arange(len(workload.table)) * GOLDEN % 1.0, side="right")
    requested_s = workload.table["requested_s"].to_numpy(float)
    longest_s = np.maximum(workload.jobs.estimate_s, workload.jobs.run_s)
    limit_s = np.where(np.isnan(requested_s), longest_s, requested_s)
    return pd.DataFrame({"limit_s": limit_s, "qos": np.array([*QOS])[qos], "short": limit_s <= SHORT_S})


def max_wait_h(run: Run) -> Mapping[int, float]:
    """The maximum waits of the controller: the run's, else those that it has by default."""
    return run.config.simulation.max_wait_h or DEFAULT


def _as_known(workload: Workload, scheduler: str) -> Workload:
    """The workload as a scheduler on Slurm knows it: with the users' limits, which are for the slowest type; the controller
    that decides types knows speeds. Slurm's own order has the QOS."""
    of, row = classes(workload), workload.jobs.row.copy()
    row["estimate_s"] = of["limit_s"]
    if scheduler.startswith("slurm"):
        row["qos"] = of["qos"].map({name: factor for name, (factor, _) in QOS.items()})
    jobs = workload.jobs._replace(row=row)
    if scheduler != "rltune_types":
        jobs = with_unknown_speeds(jobs, fastest_only=scheduler == "slurm_fastest")
    return replace(workload, jobs=jobs)


def facts(run: Run, workload: Workload) -> dict[str, object]:
    """trace and cluster (titles), data, gpus, jobs (of a repetition), repetitions, hours and offered (mean span of a
    repetition's submissions, and load over it), accounts (users of all repetitions)."""
    settings, cluster = run.config.deployment or Deployment(), run.clusters[run.config.deployed_cell().cluster]
    parts = [workload.table.iloc[first : first + settings.jobs] for first in first_jobs(settings, workload)]
    return {
        "trace": workload.meta.title,
        "cluster": cluster.title,
        "data": workload.meta.data,
        "gpus": cluster.gpus,
        "jobs": settings.jobs,
        "repetitions": settings.repetitions,
        "hours": float(np.mean([np.ptp(part["submit_s"]) for part in parts])) / 3600,
        "offered": float(np.mean([offered_load(part, cluster.gpus) for part in parts])),
        "accounts": int(pd.concat(parts)["user"].nunique()),
    }


def simulated(run: Run, workload: Workload, policy: TrainedPolicy) -> pd.DataFrame:
    """The same jobs in the simulator, from an idle cluster, under the same orders and each rule of BACKFILLS: backfill,
    scheduler, repetition, index, asked_gpus, gpus, at_s, submit_s, start_s, end_s, run_s (s since the repetition's first
    submission), state.

    The agent keeps its order under either rule, as on Slurm, whatever it chose in training. Where GPU types differ, jobs get any,
    but under `slurm_fastest` and `rltune_types`; the latter plans, which goes with conservative backfilling alone. Every
    scheduler knows of the jobs what it knows on Slurm; Slurm's own order has no maximum waits.
    """
    settings, cell = run.config.deployment or Deployment(), run.config.deployed_cell()
    firsts, frames = first_jobs(settings, workload), []
    for backfill in BACKFILLS:
        for scheduler in settings.schedulers:
            rules: dict[str, Any] = {"backfill": backfill, "types": "any", "gpu_price": 0.0}
            rules |= {"placement": "best_fit", "locality": "strict"}
            rules["max_wait_h"] = {} if scheduler.startswith("slurm") else max_wait_h(run)
            if scheduler == "rltune_types":
                rules |= {"backfill": "conservative", "sticky_head": False, **type_plan(policy.facts)}
            agent, of, known = None, cell, _as_known(workload, scheduler)
            if scheduler in LEARNED:
                agent = policy.under(**rules, uses_calibrated=False)
            else:
                of = cell.but(policy=SLURM if scheduler.startswith("slurm") else scheduler)
            contender = contender_of(run.config, of, agent, **rules)
            state, _ = simulate(known, contender, firsts, np.full(len(firsts), settings.jobs))
            table = job_table(known.jobs, state)
            first = firsts[table["sequence"]]
            begin = workload.jobs.submit_s[first]
            times = {name: table[name] - begin for name in ("submit_s", "start_s", "end_s")}
            found = table[["gpus", "run_s"]].assign(asked_gpus=table["gpus"], at_s=times["submit_s"], **times)
            found = found.assign(repetition=table["sequence"] + 1, index=table["job"] - first, state="COMPLETED")
            frames.append(found.assign(backfill=backfill, scheduler=scheduler).sort_values(JOB))
    return pd.concat(frames, ignore_index=True)


def fidelity(measured: pd.DataFrame, simulated: pd.DataFrame, gpus: int) -> pd.DataFrame:
    """One row per measured scheduler × repetition: jobs, wait_s and makespan_s on Slurm (``…_slurm``) and in the simulator
    under each rule (``…_easy``, ``…_conservative``), ``…_easy_error`` (simulated over measured − 1), ``rank_easy`` (Spearman's
    correlation of the jobs' waits; NaN if all waits of a side are equal). Over the jobs with a start and an end on Slurm."""
    rows = []
    for where, ran in with_measures(measured).groupby(RUN, sort=False):
        predicted = simulated[(simulated[RUN] == list(where)).all(axis=1)]
        if not len(predicted):
            continue
        ran = ran.set_index(JOB)
        theirs = per_run(ran.reset_index(), gpus).iloc[0]
        row = {**dict(zip(RUN, where, strict=True)), "jobs": len(ran)}
        row |= {f"{column}_slurm": float(theirs[column]) for column in ("wait_s", "makespan_s")}
        for rule, frame in predicted.groupby("backfill", sort=False):
            same = with_measures(frame).set_index(JOB).loc[ran.index]
            ours = per_run(same.reset_index(), gpus).iloc[0]
            for column in ("wait_s", "makespan_s"):
                error = ours[column] / theirs[column] - 1 if theirs[column] else np.nan
                row |= {f"{column}_{rule}": float(ours[column]), f"{column}_{rule}_error": float(error)}
            waits = [ran["wait_s"], same["wait_s"]]
            varied = all(side.nunique() > 1 for side in waits)
            row[f"rank_{rule}"] = float(waits[0].corr(waits[1], method="spearman")) if varied else np.nan
        rows.append(row)
    return pd.DataFrame(rows)


def predicted(measured: pd.DataFrame, simulated: pd.DataFrame, gpus: int) -> pd.DataFrame:
    """One row per pair of schedulers (pairs_of) × measure of PREDICTED: ours, theirs, measure, repetitions, gain (fraction less
    on Slurm), and per rule of the simulator ``gain_<rule>`` for the same jobs and ``agrees_<rule>`` (1 if it has the sign of
    ``gain``, else 0); NaN if theirs is zero."""
    rows = []
    for names, sides, _ in paired(measured):
        same, runs = sides[0].set_index(JOB).index, {"": [per_run(side, gpus) for side in sides]}
        for rule, frame in simulated.groupby("backfill", sort=False):
            by_job = {name: side.set_index(JOB).loc[same].reset_index() for name, side in frame.groupby("scheduler")}
            runs[f"_{rule}"] = [per_run(by_job[name], gpus) for name in names.values()]
        for measure in PREDICTED:
            row = {**names, "measure": measure, "repetitions": len(runs[""][0])}
            for rule, (x, y) in runs.items():
                total = float(y[COLUMN[measure]].sum())
                row[f"gain{rule}"] = gain = 1 - float(x[COLUMN[measure]].sum()) / total if total > 0 else np.nan
                if rule:
                    known = not np.isnan(gain * row["gain"])
                    row[f"agrees{rule}"] = float(np.sign(gain) == np.sign(row["gain"])) if known else np.nan
            rows.append(row)
    return pd.DataFrame(rows)
