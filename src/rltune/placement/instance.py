"""The placement problem in small: the jobs that could start now, and node classes instead of nodes.

Nodes of one group with the same free vector are interchangeable, so of each class only as many enter the model
as the jobs have chunks; nothing is lost, and the size does not grow with the cluster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from rltune.cluster.nodes import classes, find, holds, ways_of_type
from rltune.simulator.blocking import take

BEST_FIT = 1


class Instance(NamedTuple):
    """K jobs (the chosen one first, then the next that could start and share a GPU type with it) on C classes.

    ``full`` is −1 where a type is not allowed. CPU and memory of a chunk are its own need, or its GPU share.
    """

    rank: np.ndarray  # [K] int64, place in the ranking, 0 for the chosen job
    size: np.ndarray  # [K, T] int64, GPUs of a full chunk
    full: np.ndarray  # [K, T] int64, full chunks
    rem: np.ndarray  # [K, T] int64, GPUs of the last chunk
    cpu: np.ndarray  # [K] int64, thousandths of a CPU per GPU, −1: GPU share
    mem: np.ndarray  # [K] int64, MB per GPU, −1: GPU share
    type: np.ndarray  # [C] int64
    free_gpus: np.ndarray  # [C] int64
    free_cpu: np.ndarray  # [C] int64
    free_mem: np.ndarray  # [C] int64
    share_cpu: np.ndarray  # [C] int64, thousandths of a CPU that go with one GPU of the node
    share_mem: np.ndarray  # [C] int64
    whole: np.ndarray  # [C] bool, nothing runs on these nodes and the pool has none larger
    count: np.ndarray  # [C] int64, nodes, at most as many as there are chunks
    lowest: np.ndarray  # [C] int64, lowest node of the class (not part of the problem)

    def key(self) -> bytes:
        """The problem as bytes: equal for equal problems, wherever their nodes lie."""
        return b"|".join(x.tobytes() for x in self[:-1])


@njit(cache=True)
def settle(nodes, jobs, st, s, whole_worth, tightness, table, startable):
    """Place the chosen job without a solver where that is provably optimal.

    The chosen job's best way by its own terms (whole node kept, tightness) is optimal for the whole model if
    all the next jobs that could start on their own can then start together; best_fit in the order of the
    ranking is tried as a witness. Returns (number of next jobs that matter, classes, chunks of the way if
    settled else 0). ``table`` (rltune.cluster.nodes.room) gets the classes, ``startable`` [K] the next jobs' places in
    the ranking.
    """
    first, pool = st.first[s], st.pool[s]
    fg, fc, fm = st.free_gpus[s], st.free_cpu[s], st.free_mem[s]
    k = classes(nodes, pool, fg, fc, fm, table)
    n_next = _rivals(nodes, jobs, st, s, table, k, startable)
    start, stop = nodes.pool_start[pool], nodes.pool_start[pool + 1]
    sg, sc, sm = st.scratch_gpus[s], st.scratch_cpu[s], st.scratch_mem[s]
    sg[start:stop], sc[start:stop], sm[start:stop] = fg[start:stop], fc[start:stop], fm[start:stop]
    j = first + st.chosen[s]
    n = _best_way(nodes, jobs, j, sg, sc, sm, whole_worth, tightness, table, k, st.place_node[s], st.place_gpus[s])
    if n == 0:
        return n_next, k, 0
    take(nodes, jobs, j, sg, sc, sm, st.place_node[s], st.place_gpus[s], n)
    other_node, other_gpus = np.empty_like(st.place_node[s]), np.empty_like(st.place_gpus[s])
    for i in range(n_next):
        other = first + st.top[s, startable[i]]
        chunks = find(nodes, jobs, other, sg, sc, sm, BEST_FIT, other_node, other_gpus)
        if chunks == 0:
            return n_next, k, 0
        take(nodes, jobs, other, sg, sc, sm, other_node, other_gpus, chunks)
    return n_next, k, n


@njit(cache=True)
def _rivals(nodes, jobs, st, s, table, k, startable):
    """Places in the ranking of the next jobs that could start now and that the chosen job's nodes can matter to.

    A job matters if it could use a GPU type that the chosen job, or another job that matters, could use; what
    the others do is the same whatever way is chosen.
    """
    first, top, types = st.first[s], st.top.shape[1], jobs.full.shape[1]
    could = np.zeros((top, types), np.bool_)
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


def build_instance(nodes, jobs, st, s: int, table: np.ndarray, k: int, startable: np.ndarray) -> Instance:
    """The reduced problem of one sequence from what :func:`settle` found."""
    places = np.concatenate([[0], startable]).astype(np.int64)
    pool = st.pool[s]
    largest = nodes.gpus[nodes.pool_start[pool] : nodes.pool_start[pool + 1]].max()
    j = st.first[s] + st.top[s, places]
    size, full, rem = jobs.size[j], jobs.full[j], jobs.rem[j]
    chunks = int((np.maximum(full, 0) + (rem > 0)).max(axis=1).sum())
    group, free_gpus, free_cpu, free_mem, count, lowest = table[:k].T
    return Instance(
        places, size, full, rem, jobs.cpu_milli[j], jobs.mem_mb[j], nodes.type[lowest], free_gpus, free_cpu, free_mem,
        nodes.cpu_milli[lowest] // nodes.gpus[lowest], nodes.mem_mb[lowest] // nodes.gpus[lowest],
        free_gpus == largest, np.minimum(count, chunks), lowest,
    )  # fmt: skip
