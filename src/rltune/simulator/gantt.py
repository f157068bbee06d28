"""Which GPUs of its nodes each job had: a run as bars that can be drawn.

The simulator counts GPUs and does not number them; here they get numbers, always the same for the same tables.
"""

import numpy as np
import pandas as pd
from numba import njit

from rltune.cluster.layout import Nodes

END, IN_PASSING, START = 0, 1, 2
"""Order at one time: ends come first; a job without length takes its GPUs and releases them."""


def bars(job_table: pd.DataFrame, chunk_table: pd.DataFrame, nodes: Nodes) -> pd.DataFrame:
    """One row a job × node × run of neighbouring GPUs, in order of start, job, node, GPU; of the tables of one sequence.

    job, node; gpu: lowest GPU of the run, from 0 on each node; gpus: how many; submit_s, start_s, end_s of the job.
    Jobs take the lowest free GPUs of a node in the order of their starts (ties: by job), so one that finds gaps is
    split over several rows; no GPU has two jobs at a time. Raises ValueError when the tables ask for more GPUs than a
    node has, unless the jobs of the chunk table are in the job table, and unless every job has submission ≤ start ≤ end.
    """
    row = _rows(job_table, chunk_table)
    node, gpus = chunk_table["node"].to_numpy(np.int64), chunk_table["gpus"].to_numpy(np.int64)
    job = chunk_table["job"].to_numpy(np.int64)
    start, end = (job_table[c].to_numpy(np.float64)[row] for c in ("start_s", "end_s"))
    n = len(node)
    chunk = np.arange(n)
    lasts = end > start
    kind = np.concatenate([np.where(lasts, START, IN_PASSING), np.full(n, END)])
    order = np.lexsort((np.tile(node, 2), np.tile(job, 2), kind, np.concatenate([start, end])))
    event = np.concatenate([chunk, -1 - chunk])[order]
    event = event[(event >= 0) | lasts[-1 - event]]
    of, first, count, full = _hand_out(event, node, gpus, lasts, nodes.gpus.astype(np.int64))
    if full >= 0:
        m = node[full]
        raise ValueError(f"node {m} has {nodes.gpus[m]} GPUs, too few for job {job[full]} at {start[full]} s")
    times = {c: job_table[c].to_numpy(np.float64)[row[of]] for c in ("submit_s", "start_s", "end_s")}
    out = pd.DataFrame({"job": job[of], "node": node[of], "gpu": first, "gpus": count, **times})
    return out.sort_values(["start_s", "job", "node", "gpu"], ignore_index=True)


@njit(cache=True)
def _hand_out(event, node, gpus, lasts, sizes):
    """(chunk, lowest GPU, GPUs) of every run of neighbouring GPUs, and the first chunk without room, or −1.

    ``event`` is a chunk that starts, or −1 − a chunk that ends, in order of time; chunks not in ``lasts`` do not end.
    """
    most = gpus.sum()  # a run has a GPU at least
    out_chunk, out_first, out_count = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    at, runs = np.zeros(len(node), np.int64), np.zeros(len(node), np.int64)
    busy = np.zeros((len(sizes), sizes.max() if len(sizes) else 0), np.bool_)
    n = 0
    for e in event:
        if e < 0:
            c = -1 - e
            for r in range(at[c], at[c] + runs[c]):
                busy[node[c], out_first[r] : out_first[r] + out_count[r]] = False
            continue
        m, left = node[e], gpus[e]
        at[e] = n
        for g in range(sizes[m]):
            if left == 0:
                break
            if busy[m, g]:
                continue
            if runs[e] > 0 and out_first[n - 1] + out_count[n - 1] == g:
                out_count[n - 1] += 1
            else:
                out_chunk[n], out_first[n], out_count[n] = e, g, 1
                runs[e] += 1
                n += 1
            left -= 1
        if left > 0:
            return out_chunk[:n], out_first[:n], out_count[:n], e
        if lasts[e]:
            for r in range(at[e], n):
                busy[m, out_first[r] : out_first[r] + out_count[r]] = True
    return out_chunk[:n], out_first[:n], out_count[:n], -1


def _rows(job_table: pd.DataFrame, chunk_table: pd.DataFrame) -> np.ndarray:
    """[chunks] int64, the row of the job table that each row of the chunk table belongs to.

    Ends are compared with starts to the last bit: ``end_s`` is start + run time as the simulator adds them, since
    submission + (wait + run time) is rounded otherwise and can lie behind the start of the job that follows.
    """
    submit, start, end = (job_table[c].to_numpy(np.float64) for c in ("submit_s", "start_s", "end_s"))
    wrong = ~((submit <= start) & (start <= end) & np.isfinite(end))
    if wrong.any():
        raise ValueError(f"job {job_table['job'].to_numpy()[wrong][0]}: not submitted, started and ended in this order")
    row = pd.Index(job_table["job"]).get_indexer(pd.Index(chunk_table["job"]))
    if (row < 0).any():
        raise ValueError(f"job {chunk_table['job'].to_numpy()[row < 0][0]} has chunks but is not in the job table")
    return row
