"""What the agent sees of each queued job (paper §3.2, Table 3), written straight into flat buffers.

Feature set ``engineered``, eight columns, all about [0, 1]. They are the same for every job; the paper's sampling,
which swaps some of them by the state of the cluster, is not built, and fragmentation stands where it would tell:

===  ======================  =============================================================================
0    GPUs                    log2(1 + GPUs) / 7
1    job size                log10(1 + GPUs × estimated seconds) / 8
2    urgency                 wait / (wait + estimate)
3    demand-supply ratio     GPUs / free GPUs of the types it may use (paper eq. 1), x mapped to x / (1 + x)
4    future availability     (free − GPUs + GPUs expected back within an hour) / pool (paper eq. 2; printed,
                             it subtracts running jobs twice), clipped to [−1, 1]
5    can_schedule_now        0 or 1
6    num_ways_to_schedule    ways, counted to 8, / 8
7    fragmentation (CFF)     1 − Σ free² / Σ (node size · free) of the pool (paper eq. 3 normalised by node
                             size); 0 when nothing is free
===  ======================  =============================================================================

Feature set ``raw``, the same number of columns straight from the trace, each divided by a fixed maximum and
cut at 1 as in RLScheduler: GPUs / 64, estimate / 12 h, submission since the sequence's first / 12 h, CPUs / 512,
memory / 4 TB, VC index, GPU-type index (each / their number), wait / 12 h.

The critic's five columns (paper §3.2): submission as above, estimate / 12 h, GPUs / 64, can_schedule_now,
wait / 12 h.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from rltune.cluster.nodes import MAX_WAYS, classes, count_ways, room
from rltune.simulator.blocking import expected_end

WIDTH = 8
CRITIC_WIDTH = 5
FEATURE_SETS = {"raw": 0, "engineered": 1}
HORIZON_S = 3600.0
"""How far ahead future availability looks (our choice)."""
TIME_SCALE_S = 12 * 3600.0
"""Largest time told apart by raw features (RLScheduler's)."""


@njit(cache=True, nogil=True)
def observe(nodes, jobs, st, asking, feature_set, offsets, obs, critic):
    """Write rows ``offsets[i]:offsets[i + 1]`` for the visible queue of sequence ``asking[i]``.

    ``obs`` [rows, WIDTH] float32, ``critic`` [rows, CRITIC_WIDTH] float32.
    """
    table = room(nodes)
    types = jobs.full.shape[1]
    free = np.empty(types, np.float64)
    back = np.empty(types, np.float64)
    size = np.empty(types, np.float64)
    for a in range(asking.shape[0]):
        s = asking[a]
        first, pool, now = st.first[s], st.pool[s], st.now[s]
        start, stop = nodes.pool_start[pool], nodes.pool_start[pool + 1]
        k = classes(nodes, pool, st.free_gpus[s], st.free_cpu[s], st.free_mem[s], table)
        free[:], back[:], size[:] = 0.0, 0.0, 0.0
        squares, weights = 0.0, 0.0
        for m in range(start, stop):
            f = st.free_gpus[s, m]
            free[nodes.type[m]] += f
            size[nodes.type[m]] += nodes.gpus[m]
            squares += f * f
            weights += nodes.gpus[m] * f
        cff = 1.0 - squares / weights if weights > 0 else 0.0
        for i in range(st.running[s]):
            r = st.heap_job[s, i]
            j = first + r
            if jobs.pool[j] == pool and expected_end(st.start[s, r], jobs.estimate_s[j], now) <= now + HORIZON_S:
                at = st.alloc_at[s, r]
                for c in range(at, at + st.alloc_len[s, r]):
                    back[nodes.type[st.alloc_node[s, c]]] += st.alloc_gpus[s, c]
        begin = jobs.submit_s[first]
        for i in range(st.visible[s]):
            j = first + st.candidates[s, i]
            row = offsets[a] + i
            gpus, estimate, wait = jobs.gpus[j], jobs.estimate_s[j], now - jobs.submit_s[j]
            ways = count_ways(nodes, jobs, j, table, k)
            now_ok = 1.0 if ways > 0 else 0.0
            since = min((jobs.submit_s[j] - begin) / TIME_SCALE_S, 1.0)
            waited = min(wait / TIME_SCALE_S, 1.0)
            asked = min(estimate / TIME_SCALE_S, 1.0)
            if feature_set == 1:
                supply, returns, capacity = 0.0, 0.0, 0.0
                for t in range(types):
                    if jobs.full[j, t] >= 0:
                        supply += free[t]
                        returns += back[t]
                        capacity += size[t]
                ratio = gpus / max(supply, 1.0)
                obs[row, 0] = math.log2(1.0 + gpus) / 7.0
                obs[row, 1] = math.log10(1.0 + gpus * estimate) / 8.0
                obs[row, 2] = wait / (wait + estimate)
                obs[row, 3] = ratio / (1.0 + ratio)
                obs[row, 4] = min(max((supply - gpus + returns) / capacity, -1.0), 1.0)
                obs[row, 5] = now_ok
                obs[row, 6] = ways / MAX_WAYS
                obs[row, 7] = cff
            else:
                cpu, mem, kind = jobs.cpu_milli[j], jobs.mem_mb[j], 0
                for t in range(types - 1, -1, -1):
                    if jobs.full[j, t] >= 0:
                        kind = t
                if cpu < 0:
                    cpu = nodes.cpu_milli[start] // nodes.gpus[start]
                if mem < 0:
                    mem = nodes.mem_mb[start] // nodes.gpus[start]
                obs[row, 0] = min(gpus / 64.0, 1.0)
                obs[row, 1] = asked
                obs[row, 2] = since
                obs[row, 3] = min(gpus * cpu / 512e3, 1.0)
                obs[row, 4] = min(gpus * mem / 4096e3, 1.0)
                obs[row, 5] = pool / st.dirty.shape[1]
                obs[row, 6] = kind / types
                obs[row, 7] = waited
            critic[row, 0] = since
            critic[row, 1] = asked
            critic[row, 2] = min(gpus / 64.0, 1.0)
            critic[row, 3] = now_ok
            critic[row, 4] = waited


@njit(cache=True, nogil=True)
def answer(st, asking, offsets, logits, noise, action, log_prob):
    """Turn logits [rows] into scores (lower first) and report the pick of each asking sequence.

    ``noise`` [rows]: Gumbel noise makes the pick a sample of the softmax (and the whole order one of
    Plackett-Luce), zeros make it the arg max. ``action`` [k] gets the row of the pick, ``log_prob`` [k] its
    log-probability without the noise.
    """
    for a in range(asking.shape[0]):
        s, lo, hi = asking[a], offsets[a], offsets[a + 1]
        best, top, most = lo, -np.inf, -np.inf
        for row in range(lo, hi):
            value = logits[row] + noise[row]
            st.score[s, row - lo] = -value
            if value > top:
                best, top = row, value
            most = max(most, logits[row])
        total = 0.0
        for row in range(lo, hi):
            total += math.exp(logits[row] - most)
        action[a] = best
        log_prob[a] = logits[best] - most - math.log(total)
