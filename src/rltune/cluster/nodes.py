"""Where a job can go: compiled searches over free vectors of nodes.

Locality ``strict``: a job takes the fewest nodes of one GPU type that could ever hold it, that is ``full``
chunks of ``size`` GPUs (the most one node of the type can give it) and one chunk of ``rem`` GPUs, each on a
node of its own. A *way* is such an allocation up to swapping identical nodes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FIRST_FIT, BEST_FIT = 0, 1
RULES = {"first_fit": FIRST_FIT, "best_fit": BEST_FIT}
MAX_WAYS = 8  # ways are counted up to here


@njit(cache=True, inline="always")
def needs(nodes, cpu_per_gpu, mem_per_gpu, gpus, m):
    """(CPU thousandths, MB) that a chunk of ``gpus`` takes on node ``m``: its own need, else its GPU share."""
    cpu = gpus * cpu_per_gpu if cpu_per_gpu >= 0 else gpus * (nodes.cpu_milli[m] // nodes.gpus[m])
    mem = gpus * mem_per_gpu if mem_per_gpu >= 0 else gpus * (nodes.mem_mb[m] // nodes.gpus[m])
    return cpu, mem


@njit(cache=True, inline="always")
def holds(nodes, cpu_per_gpu, mem_per_gpu, gpus, m, free_gpus, free_cpu, free_mem):
    """Whether the free vector of node ``m`` has room for a chunk of ``gpus``."""
    if free_gpus[m] < gpus:
        return False
    cpu, mem = needs(nodes, cpu_per_gpu, mem_per_gpu, gpus, m)
    return free_cpu[m] >= cpu and free_mem[m] >= mem


@njit(cache=True)
def _pick(nodes, cpu_pg, mem_pg, gpus, kind, start, stop, free_gpus, free_cpu, free_mem, rule, used, n_used):
    """The node for one chunk, or −1: first_fit the lowest number, best_fit the fewest GPUs left (then lowest)."""
    best, best_left = -1, 1 << 40
    for m in range(start, stop):
        if nodes.type[m] != kind or not holds(nodes, cpu_pg, mem_pg, gpus, m, free_gpus, free_cpu, free_mem):
            continue
        taken = False
        for u in range(n_used):
            if used[u] == m:
                taken = True
                break
        if taken:
            continue
        if rule == 0:
            return m
        left = free_gpus[m] - gpus
        if left < best_left:
            best, best_left = m, left
            if left == 0:
                break
    return best


@njit(cache=True)
def find(nodes, jobs, j, free_gpus, free_cpu, free_mem, rule, out_node, out_gpus):
    """Place job ``j`` on the given free vectors by a rule; number of chunks written, 0 when it does not fit.

    Of several GPU types allowed, first_fit takes the first that fits, best_fit the one whose last chunk
    leaves the fewest GPUs on its node (then the first).
    """
    start, stop = nodes.pool_start[jobs.pool[j]], nodes.pool_start[jobs.pool[j] + 1]
    cpu_pg, mem_pg = jobs.cpu_milli[j], jobs.mem_mb[j]
    best_kind, best_left, n_best = -1, 1 << 40, 0
    for kind in range(jobs.full.shape[1]):
        full = jobs.full[j, kind]
        if full < 0:
            continue
        size, rem = jobs.size[j, kind], jobs.rem[j, kind]
        n, ok = 0, True
        for _ in range(full):
            m = _pick(nodes, cpu_pg, mem_pg, size, kind, start, stop, free_gpus, free_cpu, free_mem, rule, out_node, n)
            if m < 0:
                ok = False
                break
            out_node[n], out_gpus[n] = m, size
            n += 1
        if ok and rem > 0:
            m = _pick(nodes, cpu_pg, mem_pg, rem, kind, start, stop, free_gpus, free_cpu, free_mem, rule, out_node, n)
            if m < 0:
                ok = False
            else:
                out_node[n], out_gpus[n] = m, rem
                n += 1
        if not ok:
            continue
        left = free_gpus[out_node[n - 1]] - out_gpus[n - 1]
        if rule == 0:
            return n
        if left < best_left:
            best_kind, best_left, n_best = kind, left, n
        if best_kind != kind or jobs.full.shape[1] == 1:
            continue
        # remember this type's chunks behind the working area
        for i in range(n):
            out_node[out_node.shape[0] - 1 - i] = out_node[i]
            out_gpus[out_gpus.shape[0] - 1 - i] = out_gpus[i]
    if best_kind >= 0 and jobs.full.shape[1] > 1:
        for i in range(n_best):
            out_node[i] = out_node[out_node.shape[0] - 1 - i]
            out_gpus[i] = out_gpus[out_gpus.shape[0] - 1 - i]
    return n_best


@njit(cache=True)
def room(nodes):
    """A table that holds the classes of any pool: as many rows as the largest has nodes."""
    return np.empty((np.diff(nodes.pool_start).max(), 6), np.int64)


@njit(cache=True)
def classes(nodes, pool, free_gpus, free_cpu, free_mem, out):
    """Sort a pool's nodes into classes of the same group and free vector; number of classes.

    ``out`` [nodes of the pool, 6] int64 (:func:`room`) gets a row a class: group, free GPUs, free CPU, free
    memory, number of nodes, lowest node. Nodes without a free GPU are left out.
    """
    k = 0
    for m in range(nodes.pool_start[pool], nodes.pool_start[pool + 1]):
        if free_gpus[m] == 0:
            continue
        found = -1
        for i in range(k):
            if (
                out[i, 1] == free_gpus[m]
                and out[i, 0] == nodes.group[m]
                and out[i, 2] == free_cpu[m]
                and out[i, 3] == free_mem[m]
            ):
                found = i
                break
        if found < 0:
            found = k
            out[k, 0], out[k, 1], out[k, 2], out[k, 3] = nodes.group[m], free_gpus[m], free_cpu[m], free_mem[m]
            out[k, 4], out[k, 5] = 0, m
            k += 1
        out[found, 4] += 1
    return k


@njit(cache=True)
def count_ways(nodes, jobs, j, table, k):
    """Ways of job ``j`` on the classes ``table[:k]``, counted up to MAX_WAYS; 0 when it does not fit now."""
    ways = 0
    for kind in range(jobs.full.shape[1]):
        ways += ways_of_type(nodes, jobs, j, kind, table, k)
    return min(ways, MAX_WAYS)


@njit(cache=True)
def ways_of_type(nodes, jobs, j, kind, table, k):
    """Ways of job ``j`` on nodes of one GPU type, counted up to MAX_WAYS."""
    full, size, rem = jobs.full[j, kind], jobs.size[j, kind], jobs.rem[j, kind]
    if full < 0:
        return 0
    cpu_pg, mem_pg = jobs.cpu_milli[j], jobs.mem_mb[j]
    whole, whole_classes, rest_classes = 0, 0, 0
    for i in range(k):
        if nodes.type[table[i, 5]] != kind:
            continue
        if full > 0 and _class_holds(nodes, cpu_pg, mem_pg, size, table, i):
            whole += table[i, 4]
            whole_classes += 1
        if rem > 0 and _class_holds(nodes, cpu_pg, mem_pg, rem, table, i):
            rest_classes += 1
    if whole < full:
        return 0
    if full > 0 and whole > full and whole_classes > 1 and (full > 1 or rem > 0):
        return _mixtures(nodes, cpu_pg, mem_pg, kind, size, full, rem, table, k)
    if rem == 0:
        return max(1, whole_classes) if whole > full else 1
    if full > 0 and whole == full:
        return max(0, rest_classes - whole_classes)  # every whole node is used up
    return min(rest_classes, MAX_WAYS)


@njit(cache=True)
def _mixtures(nodes, cpu_pg, mem_pg, kind, size, full, rem, table, k):
    """Ways to take ``full`` chunks from several classes and the rest from what they leave, counted up to MAX_WAYS."""
    total = 0
    for last in range(k if rem > 0 else 1):
        fits = nodes.type[table[last, 5]] == kind and _class_holds(nodes, cpu_pg, mem_pg, rem, table, last)
        if rem > 0 and not fits:
            continue
        # choices[f]: mixtures of f full chunks of the classes so far
        choices = np.zeros(full + 1, np.int64)
        choices[0] = 1
        for i in range(k):
            if nodes.type[table[i, 5]] != kind or not _class_holds(nodes, cpu_pg, mem_pg, size, table, i):
                continue
            here = table[i, 4] - (1 if rem > 0 and i == last else 0)
            for f in range(full, 0, -1):
                for x in range(1, min(here, f) + 1):
                    choices[f] += choices[f - x]
                choices[f] = min(choices[f], MAX_WAYS)
        total += choices[full]
        if total >= MAX_WAYS:
            return MAX_WAYS
    return total


@njit(cache=True, inline="always")
def _class_holds(nodes, cpu_pg, mem_pg, gpus, table, i):
    if table[i, 1] < gpus:
        return False
    cpu, mem = needs(nodes, cpu_pg, mem_pg, gpus, table[i, 5])
    return table[i, 2] >= cpu and table[i, 3] >= mem
