"""Queues in the order of the base policy: jobs under a service-level agreement first, then lower scores, then
submission and id (which is the order of the numbers of the jobs).

A policy whose scores do not change with time ranks a job once, when it arrives: the queue stays sorted. The others
are scored anew at every instant that decides, and the order of the last time is mended by insertion, for it has
hardly changed.
"""

from __future__ import annotations

import numpy as np

from rltune.kernels import allocating, inlined, kernel
from rltune.policies import FIRST_DYNAMIC, FIRST_FAIR, Facts, compiled_score
from rltune.simulator.usage import fair_share, know


@kernel
def score_of(nodes, jobs, one, policy, job):
    """Score of a job of the sequence now, lower first."""
    row = jobs.row[one.me.first + job]
    pool = nodes.pool[row.pool]
    share = fair_share(one.share, row.account, one.me.now) if policy >= FIRST_FAIR else 0.0
    sla = 1.0 if row.sla else 0.0
    return compiled_score(
        policy,
        Facts(
            row.submit_s,
            row.estimate_s,
            row.gpus,
            one.me.now - row.submit_s,
            share,
            row.gpus / pool.gpus,
            pool.priority,
            sla,
        ),
    )


@inlined
def before(jobs, one, a, b):
    """Whether job ``a`` stands before job ``b``."""
    sla_a, sla_b = jobs.row[one.me.first + a].sla, jobs.row[one.me.first + b].sla
    if sla_a != sla_b:
        return sla_a
    if one.run[a].key != one.run[b].key:
        return one.run[a].key < one.run[b].key
    return a < b


@kernel
def enqueue(nodes, jobs, one, q, policy, job):
    """Add a job that arrives."""
    line, queue = one.line[q], one.queue
    at, stop = line.at, line.at + line.len
    line.len += 1
    line.sla += jobs.row[one.me.first + job].sla
    if one.share.shape[0] > 0:
        know(one.share, jobs.row[one.me.first + job].account)
    lo = stop
    if policy < FIRST_DYNAMIC:
        one.run[job].key = score_of(nodes, jobs, one, policy, job)
        if stop > at and before(jobs, one, job, queue[stop - 1]):
            lo, hi = at, stop - 1
            while lo < hi:
                mid = (lo + hi) >> 1
                if before(jobs, one, job, queue[mid]):
                    hi = mid
                else:
                    lo = mid + 1
            for i in range(stop, lo, -1):
                queue[i] = queue[i - 1]
    queue[lo] = job
    line.ranked = policy < FIRST_DYNAMIC


@kernel
def dequeue(jobs, one, q, i):
    """Take out the job in place ``i``; the shorter side moves up."""
    line, queue = one.line[q], one.queue
    line.sla -= jobs.row[one.me.first + queue[line.at + i]].sla
    line.len -= 1
    if 2 * i <= line.len:
        for k in range(line.at + i, line.at, -1):
            queue[k] = queue[k - 1]
        line.at += 1
    else:
        for k in range(line.at + i, line.at + line.len):
            queue[k] = queue[k + 1]


@kernel
def drop_started(jobs, one, q, lo, hi):
    """Take out every job that has started, all in places ``lo … hi − 1``; the shorter side moves up."""
    line, queue, first = one.line[q], one.queue, one.me.first
    at, end = line.at, line.at + line.len
    gone = 0
    if hi <= line.len - lo:
        keep = at + hi
        for i in range(at + hi - 1, at - 1, -1):
            job = queue[i]
            if i >= at + lo and not np.isnan(one.run[job].start):
                line.sla -= jobs.row[first + job].sla
                gone += 1
            else:
                keep -= 1
                queue[keep] = job
        line.at = keep
    else:
        keep = at + lo
        for i in range(at + lo, end):
            job = queue[i]
            if i < at + hi and not np.isnan(one.run[job].start):
                line.sla -= jobs.row[first + job].sla
                gone += 1
            else:
                queue[keep] = job
                keep += 1
    line.len -= gone


@kernel
def rank(nodes, jobs, one, q, policy):
    """Score a queue anew and bring it into order."""
    line, queue = one.line[q], one.queue
    at, n = line.at, line.len
    line.ranked = True
    for i in range(at, at + n):
        one.run[queue[i]].key = score_of(nodes, jobs, one, policy, queue[i])
    moves = 0
    for i in range(at + 1, at + n):
        job = queue[i]
        k = i
        while k > at and before(jobs, one, job, queue[k - 1]):
            queue[k] = queue[k - 1]
            k -= 1
        queue[k] = job
        moves += i - k
        if moves > 16 * n + 1000:  # not the order of the last time any more
            _sort(jobs, one, at, n)
            return


@allocating
def _sort(jobs, one, at, n):
    mine = np.sort(one.queue[at : at + n])
    key = np.empty(n, np.float64)
    for i in range(n):
        key[i] = one.run[mine[i]].key
    order = np.argsort(key, kind="mergesort")
    k = at
    for wanted in (True, False):
        for i in order:
            if jobs.row[one.me.first + mine[i]].sla == wanted:
                one.queue[k] = mine[i]
                k += 1
