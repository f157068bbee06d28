"""What may start while the head of a queue does not fit: nothing, anything, or what leaves it its reservation."""

from __future__ import annotations

import numpy as np
from numba import njit

from rltune.cluster.nodes import find, needs

NONE, FITS, EASY = 0, 1, 2
BLOCKINGS = {"none": NONE, "fits": FITS, "easy": EASY}


@njit(cache=True)
def expected_end(start, estimate, now):
    """When a running job is expected to end: by its estimate, and once past it, after as long again as it has run."""
    end = start + estimate
    return end if end > now else now + (now - start)


@njit(cache=True)
def reserve(nodes, jobs, st, s, head, rule):
    """Earliest time the head fits by the expected ends of running jobs.

    Leaves in the scratch vectors what is free then besides the head's shadow allocation; uses the place
    buffers for the allocation.
    """
    first, now = st.first[s], st.now[s]
    pool = jobs.pool[first + head]
    start, stop = nodes.pool_start[pool], nodes.pool_start[pool + 1]
    fg, fc, fm = st.scratch_gpus[s], st.scratch_cpu[s], st.scratch_mem[s]
    fg[start:stop] = st.free_gpus[s, start:stop]
    fc[start:stop] = st.free_cpu[s, start:stop]
    fm[start:stop] = st.free_mem[s, start:stop]
    ends = np.empty(st.running[s], np.float64)
    mine = np.empty(st.running[s], np.int64)
    k = 0
    for i in range(st.running[s]):
        r = st.heap_job[s, i]
        if jobs.pool[first + r] == pool:
            ends[k] = expected_end(st.start[s, r], jobs.estimate_s[first + r], now)
            mine[k] = r
            k += 1
    free = st.pool_free[s, pool]
    by_end = np.argsort(ends[:k], kind="mergesort")
    for x in range(k):
        i = by_end[x]
        r = mine[i]
        at = st.alloc_at[s, r]
        for c in range(at, at + st.alloc_len[s, r]):
            m, g = st.alloc_node[s, c], st.alloc_gpus[s, c]
            cpu, mem = needs(nodes, jobs.cpu_milli[first + r], jobs.mem_mb[first + r], g, m)
            fg[m] += g
            fc[m] += cpu
            fm[m] += mem
            free += g
        if free < jobs.gpus[first + head] or (x + 1 < k and ends[by_end[x + 1]] == ends[i]):
            continue  # all that ends at one instant is free at it
        n = find(nodes, jobs, first + head, fg, fc, fm, rule, st.place_node[s], st.place_gpus[s])
        if n > 0:
            take(nodes, jobs, first + head, fg, fc, fm, st.place_node[s], st.place_gpus[s], n)
            return ends[i]
    raise RuntimeError("a job in the queue can never fit its pool")


@njit(cache=True)
def take(nodes, jobs, j, fg, fc, fm, node, gpus, n):
    """Subtract an allocation from free vectors."""
    for i in range(n):
        m = node[i]
        cpu, mem = needs(nodes, jobs.cpu_milli[j], jobs.mem_mb[j], gpus[i], m)
        fg[m] -= gpus[i]
        fc[m] -= cpu
        fm[m] -= mem


@njit(cache=True)
def fits_beside(nodes, jobs, st, s, j, rule):
    """Place job ``j`` now on what is free both now and at the reserved start; chunks, 0 when it does not fit."""
    pool = jobs.pool[j]
    start, stop = nodes.pool_start[pool], nodes.pool_start[pool + 1]
    fg = np.minimum(st.free_gpus[s, :stop], st.scratch_gpus[s, :stop])
    fc = np.minimum(st.free_cpu[s, :stop], st.scratch_cpu[s, :stop])
    fm = np.minimum(st.free_mem[s, :stop], st.scratch_mem[s, :stop])
    fg[:start] = 0
    return find(nodes, jobs, j, fg, fc, fm, rule, st.place_node[s], st.place_gpus[s])
