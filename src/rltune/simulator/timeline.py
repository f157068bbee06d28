"""A run over time: what the cluster and its queue look like at every event time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.cluster.layout import Nodes


def timeline(job_table: pd.DataFrame, chunk_table: pd.DataFrame, nodes: Nodes) -> pd.DataFrame:
    """One row a time at which a job of the sequence is submitted, starts or ends; the state holds until the next.

    Whatever happens at one time falls into one row: a job that starts when it is submitted is never queued.

    time_s; used_gpus, free_gpus: GPUs with and without a job; queued, queued_gpus: jobs submitted and not started,
    and the GPUs they ask for; running: jobs; largest_wait_s: how long the oldest of the queued has waited at that
    time, 0 when none is (it grows until the next row); fragmentation: 1 − Σ free² / Σ (node size · free) over all
    nodes (paper eq. 3, CFF, normalised by node size), 0 when nothing is free and when all that is free lies on empty
    nodes. Raises ValueError as `one_sequence`, and when a node has more on it than it holds.
    """
    row = one_sequence(job_table, chunk_table)
    submit, start, end = (job_table[c].to_numpy(np.float64) for c in ("submit_s", "start_s", "end_s"))
    gpus = job_table["gpus"].to_numpy(np.int64)
    time = np.unique(np.concatenate([submit, start, end]))
    at_submit, at_start, at_end = (np.searchsorted(time, t) for t in (submit, start, end))
    one = np.ones_like(gpus)
    used = _level(len(time), at_start, at_end, gpus)
    return pd.DataFrame(
        {
            "time_s": time,
            "used_gpus": used,
            "free_gpus": int(nodes.gpus.sum()) - used,
            "queued": _level(len(time), at_submit, at_start, one),
            "queued_gpus": _level(len(time), at_submit, at_start, gpus),
            "running": _level(len(time), at_start, at_end, one),
            "largest_wait_s": _largest_wait(time, submit, start),
            "fragmentation": _fragmentation(time, at_start[row], at_end[row], chunk_table, nodes),
        }
    )


def time_average(timeline: pd.DataFrame, column: str, until_s: float) -> float:
    """Mean of a column over time, from the first row to ``until_s``; every state counts for as long as it holds.

    NaN for a span of no length.
    """
    time = timeline["time_s"].to_numpy()
    if until_s <= time[0]:
        return np.nan
    lasts = np.diff(np.minimum(np.append(time, max(until_s, time[-1])), until_s))
    return float(timeline[column].to_numpy(np.float64) @ lasts) / (until_s - float(time[0]))


def one_sequence(job_table: pd.DataFrame, chunk_table: pd.DataFrame) -> np.ndarray:
    """[chunks] int64, the row of the job table that each row of the chunk table belongs to.

    Raises ValueError unless both tables are about the same one sequence and its jobs, and every job has
    submission ≤ start ≤ end.
    Ends are compared with starts to the last bit: ``end_s`` is start + run time as the simulator adds them, since
    submission + (wait + run time) is rounded otherwise and can lie behind the start of the job that follows.
    """
    found = sorted({*job_table["sequence"], *chunk_table["sequence"]})
    if len(found) > 1:
        raise ValueError(f"expected one sequence, got {len(found)}: {', '.join(map(str, found[:5]))}")
    submit, start, end = (job_table[c].to_numpy(np.float64) for c in ("submit_s", "start_s", "end_s"))
    wrong = ~((submit <= start) & (start <= end) & np.isfinite(end))
    if wrong.any():
        raise ValueError(f"job {job_table['job'].to_numpy()[wrong][0]}: not submitted, started and ended in this order")
    row = pd.Index(job_table["job"]).get_indexer(pd.Index(chunk_table["job"]))
    if (row < 0).any():
        raise ValueError(f"job {chunk_table['job'].to_numpy()[row < 0][0]} has chunks but is not in the job table")
    return row


def _level(n: int, up: np.ndarray, down: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """[n] int64, what has gone up at ``up`` and not yet come down at ``down``."""
    change = np.zeros(n, np.int64)
    np.add.at(change, up, weight)
    np.subtract.at(change, down, weight)
    return np.cumsum(change)


def _largest_wait(time: np.ndarray, submit: np.ndarray, start: np.ndarray) -> np.ndarray:
    """[len(time)] float64, seconds that the oldest queued job has waited."""
    order = np.argsort(submit, kind="stable")
    submit = np.append(submit[order], np.inf)
    # of jobs by submission, the first that starts after t is the first at which the latest start so far exceeds t
    latest = np.maximum.accumulate(start[order])
    oldest = submit[np.searchsorted(latest, time, side="right")]
    return np.where(oldest <= time, time - np.minimum(oldest, time), 0.0)


def _fragmentation(
    time: np.ndarray, at_start: np.ndarray, at_end: np.ndarray, chunk_table: pd.DataFrame, nodes: Nodes
) -> np.ndarray:
    """[len(time)] float64; ``at_start`` and ``at_end`` are the rows of each chunk. Whole numbers until the end."""
    sizes = nodes.gpus.astype(np.int64)
    node = np.tile(chunk_table["node"].to_numpy(np.int64), 2)
    gpus = chunk_table["gpus"].to_numpy(np.int64)
    row_of, change = np.concatenate([at_start, at_end]), np.concatenate([-gpus, gpus])
    order = np.lexsort((row_of, node))
    node, row_of = node[order], row_of[order]
    # one running sum serves all nodes: the changes of a node add up to 0, so the next node begins at 0
    free = sizes[node] + np.cumsum(change[order])
    last = np.ones(len(node), bool)
    last[:-1] = (node[1:] != node[:-1]) | (row_of[1:] != row_of[:-1])
    node, row_of, free = node[last], row_of[last], free[last]
    if (free < 0).any():
        at = np.flatnonzero(free < 0)[0]
        m = node[at]
        raise ValueError(f"node {m} has {sizes[m]} GPUs, {sizes[m] - free[at]} are in use at {time[row_of[at]]} s")
    before = np.append(0, free[:-1])
    first = np.append(True, node[1:] != node[:-1])[: len(node)]
    before = np.where(first, sizes[node], before[: len(node)])
    squares, weights = np.zeros(len(time), np.int64), np.zeros(len(time), np.int64)
    np.add.at(squares, row_of, free**2 - before**2)
    np.add.at(weights, row_of, sizes[node] * (free - before))
    whole = int((sizes**2).sum())
    squares, weights = whole + np.cumsum(squares), whole + np.cumsum(weights)
    return np.where(weights > 0, (weights - squares) / np.maximum(weights, 1), 0.0)
