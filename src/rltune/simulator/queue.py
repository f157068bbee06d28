"""Queues in the order of the base policy: jobs under a service-level agreement first, then those past their maximum wait
in the order of their submission, then lower scores, then submission and id (which is the order of the numbers of the
jobs).

A policy whose scores do not change with time ranks a job once, when it arrives: the queue stays sorted. The others
are scored again at every event time that decides, and the last order is repaired by insertion, for it has hardly
changed. Where jobs have maximum waits every queue is scored again so.
"""

import numpy as np

from rltune.kernels import inlined, inner_allocating, inner_kernel
from rltune.policies import FIRST_FAIR, Facts
from rltune.policies.compiled import compiled_score
from rltune.simulator.usage import fair_share, know

AGREED, OVERDUE = 2, 1


@inner_kernel
def score_of(nodes, jobs, seq, policy, job):
    """Score of a job of the sequence now, lower first."""
    row = jobs.row[seq.status.first + job]
    pool = nodes.pool[row.pool]
    share = fair_share(seq.share, row.account, seq.status.now) if policy >= FIRST_FAIR else 0.0
    return compiled_score(
        policy,
        Facts(
            row.submit_s,
            row.estimate_s,
            row.gpus,
            seq.status.now - row.submit_s,
            share,
            row.gpus / pool.gpus,
            pool.priority,
            row.qos,
        ),
    )


@inlined
def urgency(jobs, seq, job):
    """AGREED for a job under a service-level agreement, OVERDUE for one past its maximum wait, else 0."""
    if jobs.row[seq.status.first + job].sla:
        return AGREED
    return OVERDUE if seq.status.now > seq.run[job].latest else 0


@inner_kernel
def goes_first(jobs, seq, a, b, score_a, score_b):
    """Whether job ``a`` goes before job ``b``, with these scores."""
    urgent_a, urgent_b = urgency(jobs, seq, a), urgency(jobs, seq, b)
    if urgent_a != urgent_b:
        return urgent_a > urgent_b
    if urgent_a != OVERDUE and score_a != score_b:
        return score_a < score_b
    return a < b


@inlined
def before(jobs, seq, a, b):
    """Whether job ``a`` goes before job ``b`` by the base policy."""
    return goes_first(jobs, seq, a, b, seq.run[a].key, seq.run[b].key)


@inner_kernel
def enqueue(nodes, jobs, seq, q, options, job):
    """Add a job that arrives."""
    queue, waiting = seq.queue[q], seq.waiting
    at, stop = queue.at, queue.at + queue.len
    queue.len += 1
    queue.sla += jobs.row[seq.status.first + job].sla
    if seq.share.shape[0] > 0:
        know(seq.share, jobs.row[seq.status.first + job].account)
    lo = stop
    if not options.reranks:
        seq.run[job].key = score_of(nodes, jobs, seq, options.base, job)
        if stop > at and before(jobs, seq, job, waiting[stop - 1]):
            lo, hi = at, stop - 1
            while lo < hi:
                mid = (lo + hi) >> 1
                if before(jobs, seq, job, waiting[mid]):
                    hi = mid
                else:
                    lo = mid + 1
            for i in range(stop, lo, -1):
                waiting[i] = waiting[i - 1]
    waiting[lo] = job
    queue.ranked = not options.reranks


@inner_kernel
def dequeue(jobs, seq, q, i):
    """Take out the job of rank ``i``; the shorter side moves up."""
    queue, waiting = seq.queue[q], seq.waiting
    queue.sla -= jobs.row[seq.status.first + waiting[queue.at + i]].sla
    queue.len -= 1
    if 2 * i <= queue.len:
        for k in range(queue.at + i, queue.at, -1):
            waiting[k] = waiting[k - 1]
        queue.at += 1
    else:
        for k in range(queue.at + i, queue.at + queue.len):
            waiting[k] = waiting[k + 1]


@inner_kernel
def drop_started(jobs, seq, q, lo, hi):
    """Take out every job that has started, all of ranks ``lo … hi − 1``; the shorter side moves up."""
    queue, waiting, first = seq.queue[q], seq.waiting, seq.status.first
    at, end = queue.at, queue.at + queue.len
    gone = 0
    if hi <= queue.len - lo:
        keep = at + hi
        for i in range(at + hi - 1, at - 1, -1):
            job = waiting[i]
            if i >= at + lo and not np.isnan(seq.run[job].start):
                queue.sla -= jobs.row[first + job].sla
                gone += 1
            else:
                keep -= 1
                waiting[keep] = job
        queue.at = keep
    else:
        keep = at + lo
        for i in range(at + lo, end):
            job = waiting[i]
            if i < at + hi and not np.isnan(seq.run[job].start):
                queue.sla -= jobs.row[first + job].sla
                gone += 1
            else:
                waiting[keep] = job
                keep += 1
    queue.len -= gone


@inner_kernel
def rank(nodes, jobs, seq, q, policy):
    """Score a queue again and bring it into order."""
    queue, waiting = seq.queue[q], seq.waiting
    at, n = queue.at, queue.len
    queue.ranked = True
    for i in range(at, at + n):
        seq.run[waiting[i]].key = score_of(nodes, jobs, seq, policy, waiting[i])
    moves = 0
    for i in range(at + 1, at + n):
        job = waiting[i]
        k = i
        while k > at and before(jobs, seq, job, waiting[k - 1]):
            waiting[k] = waiting[k - 1]
            k -= 1
        waiting[k] = job
        moves += i - k
        if moves > 16 * n + 1000:  # not the order of the last time any more
            _sort(jobs, seq, at, n)
            return


@inner_allocating
def _sort(jobs, seq, at, n):
    mine = np.sort(seq.waiting[at : at + n])
    key = np.empty(n, np.float64)
    for i in range(n):
        key[i] = seq.run[mine[i]].key
    order = np.argsort(key, kind="mergesort")
    k = at
    for wanted in (AGREED, OVERDUE, 0):
        for r in range(n):
            i = r if wanted == OVERDUE else order[r]
            if urgency(jobs, seq, mine[i]) == wanted:
                seq.waiting[k] = mine[i]
                k += 1
