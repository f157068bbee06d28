"""What a run was worth (paper §4.4): functions of start times alone, blind to policies."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs
from rltune.simulator.state import CHOICES, CUT, DECISIONS, QUEUED, State

BSLD_FLOOR_S = 10.0
"""Run times below this count as this in bounded slowdown (Feitelson and Rudolph 1998)."""


def job_table(jobs: Jobs, state: State) -> pd.DataFrame:
    """One row a job: sequence, job (row of Jobs), gpus, run_s, wait_s, jct_s, bsld."""
    sequence = np.repeat(np.arange(len(state.n)), state.n)
    inside = np.concatenate([np.arange(n) for n in state.n])
    job = state.first[sequence] + inside
    run = jobs.run_s[job]
    wait = state.start[sequence, inside] - jobs.submit_s[job]
    return pd.DataFrame({
        "sequence": sequence, "job": job, "gpus": jobs.gpus[job], "run_s": run, "wait_s": wait, "jct_s": wait + run,
        "bsld": np.maximum(1.0, (wait + run) / np.maximum(run, BSLD_FLOOR_S)),
    })  # fmt: skip


def sequence_table(jobs: Jobs, state: State, gpus: int) -> pd.DataFrame:
    """One row a sequence.

    wait_s, jct_s, bsld: means over its jobs. makespan_s: first submission to last completion; utilisation:
    allocated GPU-seconds over GPUs × makespan; utilisation_span: the same over the submission span only
    (NaN when all jobs arrive at once), since one long job sets the makespan. decisions: rankings asked for;
    choices: those with two candidates or more; mean_queue: jobs queued at a decision; cut: decisions in which
    jobs were hidden behind the visible ones.
    """
    table = job_table(jobs, state)
    grouped = table.groupby("sequence")
    out = grouped[["wait_s", "jct_s", "bsld"]].mean()
    submit = jobs.submit_s[table["job"]]
    start = submit + table["wait_s"]
    end = submit + table["jct_s"]
    frame = pd.DataFrame({"sequence": table["sequence"], "submit": submit, "start": start, "end": end})
    first, last = (frame.groupby("sequence")["submit"].agg(f) for f in ("min", "max"))
    makespan = frame.groupby("sequence")["end"].max() - first
    area = (table["gpus"] * table["run_s"]).groupby(table["sequence"]).sum()
    inside = np.minimum(end, last.to_numpy()[table["sequence"]]) - start
    area_inside = (table["gpus"] * np.maximum(inside, 0.0)).groupby(table["sequence"]).sum()
    span = (last - first).replace(0.0, np.nan)
    decisions = state.counts[:, DECISIONS]
    return out.assign(
        jobs=state.n, first_job=state.first, submit_s=first, makespan_s=makespan,
        utilisation=area / (gpus * makespan), utilisation_span=area_inside / (gpus * span),
        decisions=decisions, choices=state.counts[:, CHOICES],
        mean_queue=state.counts[:, QUEUED] / np.maximum(decisions, 1), cut=state.counts[:, CUT],
    ).reset_index()  # fmt: skip
