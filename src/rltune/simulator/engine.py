"""The compiled event loop. It asks, it does not decide.

Every sequence advances until it needs an answer: RANK (scores of the visible queue of one pool) or PLACE
(the nodes of the chosen job). A driver answers and calls again. Base policies and placement rules that are
compiled in are answered here, without leaving the loop.

At one instant completions come before arrivals. At each instant, per pool with an event: while the pool has
queued jobs and no head, score its queue and take the best (lowest score; ties by submission, then id). If it
fits it starts and the queue is scored again; if not it is the head until the pool's next event, and the
blocking rule says which others may start, in the order of the same scores.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from rltune.cluster.nodes import classes, count_ways, find, needs, room
from rltune.policies import compiled_score
from rltune.simulator.blocking import fits_beside, reserve, take
from rltune.simulator.state import (
    ASKED_PLACE,
    CHOICES,
    CUT,
    DECISIONS,
    DONE,
    EVENT,
    MAX_VISIBLE,
    PICK,
    PLACE,
    PLACED,
    POOL,
    QUEUED,
    RANK,
)

EXTERNAL = -1  # the order, or the placement, is asked of the driver


@njit(cache=True, nogil=True)
def advance_all(nodes, jobs, st, order, base, blocking, rule, lookahead):
    """Advance every sequence that is not waiting for an answer; (sequences asking RANK, asking PLACE).

    ``order``: number of a compiled policy, or EXTERNAL; ``base``: policy that orders what an external ranking
    cannot see; ``blocking``: NONE, FITS, EASY; ``rule``: placement rule; ``lookahead``: ask PLACE where the
    chosen job has more than one way and others are queued.
    """
    ranks, places = 0, 0
    for s in range(st.n.shape[0]):
        phase = st.phase[s]
        if phase != RANK and phase != PLACE and phase != DONE:
            phase = _advance(nodes, jobs, st, s, order, base, blocking, rule, lookahead)
        if phase == RANK:
            ranks += 1
        elif phase == PLACE:
            places += 1
    return ranks, places


@njit(cache=True)
def _advance(nodes, jobs, st, s, order, base, blocking, rule, lookahead):
    pools = st.dirty.shape[1]
    while True:
        phase = st.phase[s]
        if phase == EVENT:
            if st.started[s] == st.n[s]:
                st.phase[s] = DONE
                return DONE
            _next_event(nodes, jobs, st, s)
            st.pool[s] = 0
            st.phase[s] = POOL
        elif phase == POOL:
            p = st.pool[s]
            while p < pools and not (st.dirty[s, p] and st.queue_len[s, p] > 0):
                st.dirty[s, p] = False
                p += 1
            st.pool[s] = p
            if p == pools:
                st.phase[s] = EVENT
                continue
            _candidates(jobs, st, s, p, order, base)
            if st.queued[s] == 1:
                st.score[s, 0] = 0.0
            elif order == EXTERNAL:
                st.phase[s] = RANK
                return RANK
            else:
                for i in range(st.queued[s]):
                    j = st.first[s] + st.candidates[s, i]
                    wait = st.now[s] - jobs.submit_s[j]
                    st.score[s, i] = compiled_score(order, jobs.submit_s[j], jobs.estimate_s[j], jobs.gpus[j], wait)
            st.phase[s] = PICK
        elif phase == PICK:
            best = 0
            for i in range(1, st.visible[s]):
                if st.score[s, i] < st.score[s, best]:
                    best = i
            job = st.candidates[s, best]
            n = _fit(nodes, jobs, st, s, job, rule)
            if n == 0:
                if blocking > 0 and st.queued[s] > 1:
                    _backfill(nodes, jobs, st, s, best, blocking, rule)
                st.dirty[s, st.pool[s]] = False
                st.phase[s] = POOL
                continue
            st.place_len[s] = n
            st.chosen[s] = job
            st.phase[s] = PLACED
            if lookahead and st.queued[s] > 1 and _ways(nodes, jobs, st, s, job) > 1:
                _fill_top(st, s)
                st.counts[s, ASKED_PLACE] += 1
                st.phase[s] = PLACE
                return PLACE
        elif phase == PLACED:
            _start(nodes, jobs, st, s, st.chosen[s], st.place_len[s])
            st.phase[s] = POOL
        else:
            return phase


@njit(cache=True)
def _next_event(nodes, jobs, st, s):
    """Go to the next instant: take back what ended, queue what arrived, mark their pools."""
    first, n = st.first[s], st.n[s]
    now = np.inf
    if st.running[s] > 0:
        now = st.heap_end[s, 0]
    if st.arrived[s] < n:
        now = min(now, jobs.submit_s[first + st.arrived[s]])
    if now == np.inf:
        raise RuntimeError("a job in the queue can never fit its pool")
    st.now[s] = now
    while st.running[s] > 0 and st.heap_end[s, 0] <= now:
        r = _pop(st, s)
        j = first + r
        at = st.alloc_at[s, r]
        for c in range(at, at + st.alloc_len[s, r]):
            m, g = st.alloc_node[s, c], st.alloc_gpus[s, c]
            cpu, mem = needs(nodes, jobs.cpu_milli[j], jobs.mem_mb[j], g, m)
            st.free_gpus[s, m] += g
            st.free_cpu[s, m] += cpu
            st.free_mem[s, m] += mem
        st.pool_free[s, jobs.pool[j]] += jobs.gpus[j]
        st.dirty[s, jobs.pool[j]] = True
    while st.arrived[s] < n and jobs.submit_s[first + st.arrived[s]] <= now:
        p = jobs.pool[first + st.arrived[s]]
        st.queue[s, st.queue_at[s, p] + st.queue_len[s, p]] = st.arrived[s]
        st.queue_len[s, p] += 1
        st.dirty[s, p] = True
        st.arrived[s] += 1


@njit(cache=True)
def _candidates(jobs, st, s, p, order, base):
    """List the pool's queue; for an external ranking the first MAX_VISIBLE by the base policy come first."""
    at, q = st.queue_at[s, p], st.queue_len[s, p]
    st.counts[s, DECISIONS] += 1
    st.counts[s, CHOICES] += q > 1
    st.counts[s, QUEUED] += q
    st.queued[s] = q
    st.visible[s] = q
    if order != EXTERNAL or q <= MAX_VISIBLE:
        st.candidates[s, :q] = st.queue[s, at : at + q]
        return
    st.counts[s, CUT] += 1
    st.visible[s] = MAX_VISIBLE
    key = np.empty(q, np.float64)
    for i in range(q):
        j = st.first[s] + st.queue[s, at + i]
        wait = st.now[s] - jobs.submit_s[j]
        key[i] = compiled_score(base, jobs.submit_s[j], jobs.estimate_s[j], jobs.gpus[j], wait)
    by_base = np.argsort(key, kind="mergesort")
    for i in range(q):
        st.candidates[s, i] = st.queue[s, at + by_base[i]]
        st.score[s, i] = np.inf  # the visible ones get theirs from the driver


@njit(cache=True)
def _fit(nodes, jobs, st, s, job, rule):
    j = st.first[s] + job
    if st.pool_free[s, jobs.pool[j]] < jobs.gpus[j]:
        return 0
    return find(
        nodes, jobs, j, st.free_gpus[s], st.free_cpu[s], st.free_mem[s], rule, st.place_node[s], st.place_gpus[s]
    )


@njit(cache=True)
def _ways(nodes, jobs, st, s, job):
    table = room(nodes)
    k = classes(nodes, st.pool[s], st.free_gpus[s], st.free_cpu[s], st.free_mem[s], table)
    return count_ways(nodes, jobs, st.first[s] + job, table, k)


@njit(cache=True)
def _fill_top(st, s):
    """The chosen job and the next of the ranking, in its order."""
    order = np.argsort(st.score[s, : st.queued[s]], kind="mergesort")
    k = 1
    st.top[s, 0] = st.chosen[s]
    for i in order:
        if k == st.top.shape[1]:
            break
        if st.candidates[s, i] != st.chosen[s]:
            st.top[s, k] = st.candidates[s, i]
            k += 1
    st.top[s, k:] = -1


@njit(cache=True)
def _start(nodes, jobs, st, s, job, n):
    """Start a job on the ``n`` chunks of the place buffers and take it out of its queue."""
    j = st.first[s] + job
    p = jobs.pool[j]
    take(
        nodes, jobs, j, st.free_gpus[s], st.free_cpu[s], st.free_mem[s], st.place_node[s], st.place_gpus[s], n
    )
    at = st.alloc_at[s, job]
    st.alloc_len[s, job] = n
    st.alloc_node[s, at : at + n] = st.place_node[s, :n]
    st.alloc_gpus[s, at : at + n] = st.place_gpus[s, :n]
    st.pool_free[s, p] -= jobs.gpus[j]
    st.start[s, job] = st.now[s]
    st.started[s] += 1
    _push(st, s, st.now[s] + jobs.run_s[j], job)
    lo, q = st.queue_at[s, p], st.queue_len[s, p]
    at = lo + np.searchsorted(st.queue[s, lo : lo + q], job)
    for i in range(at, lo + q - 1):
        st.queue[s, i] = st.queue[s, i + 1]
    st.queue_len[s, p] -= 1


@njit(cache=True)
def _backfill(nodes, jobs, st, s, best, blocking, rule):
    """Start others behind the head ``candidates[best]``, in the order of the scores, as the blocking rule allows."""
    q = st.queued[s]
    reserved = np.inf
    if blocking == 2:
        reserved = reserve(nodes, jobs, st, s, st.candidates[s, best], rule)
    for i in np.argsort(st.score[s, :q], kind="mergesort"):
        if i == best:
            continue
        job = st.candidates[s, i]
        j = st.first[s] + job
        n = _fit(nodes, jobs, st, s, job, rule)
        if n == 0:
            continue
        if blocking == 2 and st.now[s] + jobs.estimate_s[j] > reserved:
            n = fits_beside(nodes, jobs, st, s, j, rule)
            if n == 0:
                continue
            take(
                nodes, jobs, j, st.scratch_gpus[s], st.scratch_cpu[s], st.scratch_mem[s],
                st.place_node[s], st.place_gpus[s], n,
            )  # fmt: skip
        _start(nodes, jobs, st, s, job, n)


@njit(cache=True)
def _push(st, s, end, job):
    i = st.running[s]
    st.running[s] += 1
    while i > 0:
        up = (i - 1) >> 1
        if st.heap_end[s, up] < end or (st.heap_end[s, up] == end and st.heap_job[s, up] < job):
            break
        st.heap_end[s, i], st.heap_job[s, i] = st.heap_end[s, up], st.heap_job[s, up]
        i = up
    st.heap_end[s, i], st.heap_job[s, i] = end, job


@njit(cache=True)
def _pop(st, s):
    top = st.heap_job[s, 0]
    st.running[s] -= 1
    n = st.running[s]
    end, job = st.heap_end[s, n], st.heap_job[s, n]
    i = 0
    while True:
        low = 2 * i + 1
        if low >= n:
            break
        if low + 1 < n and (
            st.heap_end[s, low + 1] < st.heap_end[s, low]
            or (st.heap_end[s, low + 1] == st.heap_end[s, low] and st.heap_job[s, low + 1] < st.heap_job[s, low])
        ):
            low += 1
        if end < st.heap_end[s, low] or (end == st.heap_end[s, low] and job < st.heap_job[s, low]):
            break
        st.heap_end[s, i], st.heap_job[s, i] = st.heap_end[s, low], st.heap_job[s, low]
        i = low
    st.heap_end[s, i], st.heap_job[s, i] = end, job
    return top
