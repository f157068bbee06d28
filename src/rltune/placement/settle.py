"""Answers without a solver: the chosen job's best way, where a proof says that no other can be better."""

from __future__ import annotations

import numpy as np
from numba import njit

from rltune.cluster.nodes import BEST_FIT, classes, find, holds, ways_of_type
from rltune.simulator.blocking import take

MOST_SUBSETS = 10
"""Next jobs up to which all their subsets are bounded (1,024 of them)."""


@njit(cache=True)
def settle(nodes, jobs, st, s, whole_worth, tightness, decay, table, startable):
    """Place the chosen job without a solver where that is provably optimal.

    No way is better by the chosen job's own terms than its best way (whole node kept, tightness), and no set of
    next jobs can be worth more than the best set that the free GPUs of each type leave room for. If that set
    can start beside the best way, both bounds are met at once; a packing by best_fit is tried as witness.
    Returns (number of next jobs that matter, classes, chunks of the way if settled else 0). ``table``
    (rltune.cluster.nodes.room) gets the classes, ``startable`` [K] the next jobs' places in the ranking.
    """
    first, pool = st.first[s], st.pool[s]
    fg, fc, fm = st.free_gpus[s], st.free_cpu[s], st.free_mem[s]
    k = classes(nodes, pool, fg, fc, fm, table)
    could = np.zeros((st.top.shape[1], jobs.full.shape[1]), np.bool_)
    n_next = _rivals(nodes, jobs, st, s, table, k, startable, could)
    j = first + st.chosen[s]
    n = _best_way(nodes, jobs, j, fg, fc, fm, whole_worth, tightness, table, k, st.place_node[s], st.place_gpus[s])
    if n == 0:
        return n_next, k, 0
    wanted = np.ones(n_next, np.bool_)
    if _together(nodes, jobs, st, s, n, startable, could, wanted):
        return n_next, k, n
    if n_next <= MOST_SUBSETS and _best_set(nodes, jobs, st, s, decay, startable, could, wanted):
        if _together(nodes, jobs, st, s, n, startable, could, wanted):
            return n_next, k, n
    return n_next, k, 0


@njit(cache=True)
def _together(nodes, jobs, st, s, n, startable, could, wanted):
    """Whether the wanted next jobs can be packed beside the chosen job's ``n`` chunks: by best_fit, those with the
    fewest types first, then the largest."""
    first, pool = st.first[s], st.pool[s]
    start, stop = nodes.pool_start[pool], nodes.pool_start[pool + 1]
    sg, sc, sm = st.scratch_gpus[s], st.scratch_cpu[s], st.scratch_mem[s]
    sg[start:stop] = st.free_gpus[s, start:stop]
    sc[start:stop] = st.free_cpu[s, start:stop]
    sm[start:stop] = st.free_mem[s, start:stop]
    take(nodes, jobs, first + st.chosen[s], sg, sc, sm, st.place_node[s], st.place_gpus[s], n)
    node, gpus = np.empty_like(st.place_node[s]), np.empty_like(st.place_gpus[s])
    left = wanted.copy()
    for _ in range(wanted.sum()):
        best, best_key = -1, 1 << 60
        for i in range(left.shape[0]):
            if left[i]:
                key = could[startable[i]].sum() * 1_000_000 - jobs.gpus[first + st.top[s, startable[i]]]
                if key < best_key:
                    best, best_key = i, key
        left[best] = False
        other = first + st.top[s, startable[best]]
        chunks = find(nodes, jobs, other, sg, sc, sm, BEST_FIT, node, gpus)
        if chunks == 0:
            return False
        take(nodes, jobs, other, sg, sc, sm, node, gpus, chunks)
    return True


@njit(cache=True)
def _best_set(nodes, jobs, st, s, decay, startable, could, wanted):
    """The next jobs worth most among those whose GPUs there is room for, type by type and in all; False if that is all.

    Room is counted in GPUs alone, so this bounds what any placement can start.
    """
    first, pool, types = st.first[s], st.pool[s], jobs.full.shape[1]
    n = wanted.shape[0]
    free = np.zeros(types, np.int64)
    for m in range(nodes.pool_start[pool], nodes.pool_start[pool + 1]):
        free[nodes.type[m]] += st.free_gpus[s, m]
    reached = could[0].copy()
    for i in range(n):
        reached |= could[startable[i]]
    everything = 0
    for t in range(types):
        if reached[t]:
            everything += free[t]
    best, best_worth = 0, -1.0
    asked = np.empty(types, np.int64)
    for bits in range(1 << n):
        worth, total = 0.0, jobs.gpus[first + st.chosen[s]]
        asked[:] = 0
        if could[0].sum() == 1:
            asked[np.argmax(could[0])] = total
        for i in range(n):
            if bits >> i & 1:
                gpus = jobs.gpus[first + st.top[s, startable[i]]]
                worth += decay ** (startable[i] - 1)
                total += gpus
                if could[startable[i]].sum() == 1:
                    asked[np.argmax(could[startable[i]])] += gpus
        if worth > best_worth and total <= everything and (asked <= free).all():
            best, best_worth = bits, worth
    for i in range(n):
        wanted[i] = best >> i & 1 == 1
    return best != (1 << n) - 1


@njit(cache=True)
def _rivals(nodes, jobs, st, s, table, k, startable, could):
    """Places in the ranking of the next jobs that could start now and that the chosen job's nodes can matter to.

    A job matters if it could use a GPU type that the chosen job, or another job that matters, could use; what
    the others do is the same whatever way is chosen. ``could`` [K, T] gets the types each job could start on.
    """
    first, top, types = st.first[s], st.top.shape[1], jobs.full.shape[1]
    for i in range(top):
        if st.top[s, i] >= 0:
            for kind in range(types):
                could[i, kind] = ways_of_type(nodes, jobs, first + st.top[s, i], kind, table, k) > 0
    reached = could[0].copy()
    matters = np.zeros(top, np.bool_)
    grew = True
    while grew:
        grew = False
        for i in range(1, top):
            if not matters[i] and (could[i] & reached).any():
                matters[i] = True
                grew = True
                reached |= could[i]
    n = 0
    for i in range(1, top):
        if matters[i]:
            startable[n] = i
            n += 1
    return n


@njit(cache=True)
def _best_way(nodes, jobs, j, fg, fc, fm, whole_worth, tightness, table, k, out_node, out_gpus):
    """The chosen job's best way by its own terms; 0 where full chunks have a choice of classes (the solver's)."""
    best_cost, best_kind, best_node = np.inf, -1, -1
    largest = nodes.gpus[nodes.pool_start[jobs.pool[j]] : nodes.pool_start[jobs.pool[j] + 1]].max()
    for kind in range(jobs.full.shape[1]):
        full, size, rem = jobs.full[j, kind], jobs.size[j, kind], jobs.rem[j, kind]
        if full < 0:
            continue
        whole_classes, available, whole_free = 0, 0, 0
        for i in range(k):
            m = table[i, 5]
            if nodes.type[m] == kind and holds(nodes, jobs.cpu_milli[j], jobs.mem_mb[j], size, m, fg, fc, fm):
                whole_classes += 1
                available += table[i, 4]
                whole_free = fg[m]
        if full > 0 and whole_classes > 1:
            return 0
        if available < full:
            continue
        for i in range(k):
            m = table[i, 5]
            if rem == 0 and i > 0:
                break
            left, untouched = 0, 0.0
            if rem > 0:
                if nodes.type[m] != kind or not holds(
                    nodes, jobs.cpu_milli[j], jobs.mem_mb[j], rem, m, fg, fc, fm
                ):
                    continue
                taken = holds(nodes, jobs.cpu_milli[j], jobs.mem_mb[j], size, m, fg, fc, fm)
                if full > 0 and taken and table[i, 4] <= full:
                    continue
                left = fg[m] - rem
                untouched = 1.0 if fg[m] == largest else 0.0
            if full > 0 and whole_free == largest:
                untouched += full
            cost = whole_worth * untouched + tightness * left
            if cost < best_cost - 1e-12:
                best_cost, best_kind, best_node = cost, kind, m if rem > 0 else -1
    if best_kind < 0:
        return 0
    full, size, rem = jobs.full[j, best_kind], jobs.size[j, best_kind], jobs.rem[j, best_kind]
    n = 0
    for m in range(nodes.pool_start[jobs.pool[j]], nodes.pool_start[jobs.pool[j] + 1]):
        if n == full:
            break
        if nodes.type[m] == best_kind and holds(nodes, jobs.cpu_milli[j], jobs.mem_mb[j], size, m, fg, fc, fm):
            out_node[n], out_gpus[n] = m, size
            n += 1
    if rem > 0:
        m = best_node
        # the class of the last chunk may be the one the full chunks were taken from: go on behind them
        while True:
            used = False
            for i in range(full):
                used = used or out_node[i] == m
            same = nodes.group[m] == nodes.group[best_node] and fg[m] == fg[best_node]
            same = same and fc[m] == fc[best_node] and fm[m] == fm[best_node]
            if same and not used:
                break
            m += 1
        out_node[n], out_gpus[n] = m, rem
        n += 1
    return n
