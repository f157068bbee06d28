"""What a run achieved (paper §4.4): functions of its final state, blind to policies."""

import numpy as np
import pandas as pd

from rltune.cluster.fit import Jobs
from rltune.metrics import METRICS
from rltune.simulator.state import State

BSLD_FLOOR_S = 10.0
"""Run times below this count as this in bounded slowdown (Feitelson and Rudolph 1998)."""


def job_table(jobs: Jobs, state: State) -> pd.DataFrame:
    """One row a job: sequence, job (row of Jobs), gpus, nodes (it ran on), submit_s, start_s, end_s, run_s, wait_s,
    jct_s, bsld.

    A job that ran longer because it was split, or on a slower GPU type, has its longer run time in end_s and jct_s; its bounded
    slowdown is relative to ``run_s``, the run time by itself on the fastest type.
    """
    sequence = np.repeat(np.arange(len(state.n)), state.n)
    inside = _inside(state.n)
    job = state.first[sequence] + inside
    submit, run = jobs.submit_s[job], jobs.run_s[job]
    start, end = state.start[sequence, inside], state.end[sequence, inside]
    return pd.DataFrame(
        {
            "sequence": sequence,
            "job": job,
            "gpus": jobs.gpus[job],
            "nodes": state.run["len"][sequence, inside],
            "submit_s": submit,
            "start_s": start,
            "end_s": end,
            "run_s": run,
            "wait_s": start - submit,
            "jct_s": end - submit,
            "bsld": np.maximum(1.0, (end - submit) / np.maximum(run, BSLD_FLOOR_S)),
        }
    )


def chunk_table(state: State) -> pd.DataFrame:
    """One row a job and node: sequence, job (row of Jobs), node, gpus (the job's on the node)."""
    sequence = np.repeat(np.arange(len(state.n)), state.n)
    inside = _inside(state.n)
    number = state.run["len"][sequence, inside]
    row = np.repeat(sequence, number)
    at = np.repeat(state.run["at"][sequence, inside], number) + _inside(number)
    return pd.DataFrame(
        {
            "sequence": row,
            "job": np.repeat(state.first[sequence] + inside, number),
            "node": state.chunk["node"][row, at],
            "gpus": state.chunk["gpus"][row, at],
        }
    )


def _inside(lengths: np.ndarray) -> np.ndarray:
    """0 … length − 1 of each group, one behind the other."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def sequence_table(jobs: Jobs, state: State, gpus: int) -> pd.DataFrame:
    """One row a sequence.

    The columns of rltune.metrics, and

    - excess_s: mean completion time less the mean run time on the fastest GPU type, which is the wait where types are
      equally fast and nothing prolongs a job;
    - largest_wait_s; makespan_s: first submission to last completion;
    - utilisation_span: utilisation over the submission span only, since one long job sets the makespan (NaN when all jobs
      arrive at once);
    - decisions: rankings asked for; choices: those with two candidates or more; mean_queue: jobs queued at a decision;
      cut: decisions in which more jobs were queued than visible.

    Raises ValueError where a metric has one of these columns.
    """
    table = job_table(jobs, state)
    grouped = table.groupby("sequence")
    out = pd.DataFrame({metric.column: metric.compute(table.copy(deep=False), gpus) for metric in METRICS.values()})
    first, last = (grouped["submit_s"].agg(f) for f in ("min", "max"))
    inside = np.minimum(table["end_s"], last.to_numpy()[table["sequence"]]) - table["start_s"]
    area_inside = (table["gpus"] * np.maximum(inside, 0.0)).groupby(table["sequence"]).sum()
    decisions = state.status["decisions"]
    others = dict(
        excess_s=(table["jct_s"] - table["run_s"]).groupby(table["sequence"]).mean(),
        largest_wait_s=grouped["wait_s"].max(),
        jobs=state.n,
        first_job=state.first,
        submit_s=first,
        makespan_s=grouped["end_s"].max() - first,
        utilisation_span=area_inside / (gpus * (last - first).replace(0.0, np.nan)),
        decisions=decisions,
        choices=state.status["choices"],
        mean_queue=state.status["queue_sum"] / np.maximum(decisions, 1),
        cut=state.status["cut"],
    )
    if taken := sorted(others.keys() & set(out)):
        raise ValueError(
            f"metrics: found column {', '.join(taken)}, which the table has already; expected another name"
        )
    return out.assign(**others).reset_index()
