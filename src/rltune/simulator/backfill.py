"""Backfilling: which jobs may start while the head of a queue does not fit (none, all that fit, or those that do not delay it)."""

import numpy as np

from rltune.cluster.free import change, take
from rltune.cluster.search import EXCLUSIVE, WORTH_IT, find
from rltune.kernels import MINUS_ONE, ONE, ZERO, inlined, inner_kernel
from rltune.simulator.config import EASY
from rltune.simulator.contention import slowdown_on
from rltune.simulator.queue import drop_started
from rltune.simulator.releases import next_release, update_late_jobs
from rltune.simulator.start import start_job


@inner_kernel
def reserve(nodes, jobs, seq, options, job, extra):
    """Reserve for the head the earliest time it fits by the expected ends of running jobs: ``status.reserved``.

    Leaves in ``shadow`` the ``status.shadowed`` nodes of its shadow allocation, with what is spare there then. Running
    jobs are released in the order of their expected ends until the head fits, and then restored.
    """
    j = seq.status.first + job
    p = jobs.row[j].pool
    whole = options.rule == EXCLUSIVE
    update_late_jobs(seq, p)
    gone = n = ZERO
    time = seq.status.now
    other, upcoming, due, late = next_release(seq, p, options.overrun, ZERO, ZERO)
    while n == 0:
        if other < 0:
            raise RuntimeError("a job in the queue can never fit its pool")
        time = upcoming
        while other >= 0 and upcoming == time:  # all that ends at one time is free at it
            run = seq.run[other]
            take(nodes, jobs, seq.free, seq.status.first + other, whole, seq.chunk, run.at, run.len, ONE)
            seq.released[gone] = other
            gone += 1
            other, upcoming, due, late = next_release(seq, p, options.overrun, due, late)
        n = find(nodes, jobs, seq.free, j, options.rule, extra, seq.place)
    take(nodes, jobs, seq.free, j, whole, seq.place, ZERO, n, MINUS_ONE)
    for c in range(n):
        spare, left = seq.shadow[c], seq.free.row[seq.place[c].node]
        spare.node, spare.gpus, spare.cpu, spare.mem = seq.place[c].node, left.gpus, left.cpu, left.mem
    take(nodes, jobs, seq.free, j, whole, seq.place, ZERO, n, ONE)
    for i in range(gone):
        run = seq.run[seq.released[i]]
        take(nodes, jobs, seq.free, seq.status.first + seq.released[i], whole, seq.chunk, run.at, run.len, MINUS_ONE)
    seq.status.reserved, seq.status.shadowed = time, n


@inner_kernel
def _block(nodes, seq, n):
    """Leave free on the head's nodes only what is spare at its start; on other nodes more is free then than now."""
    for c in range(n):
        spare = seq.shadow[c]
        left = seq.free.row[spare.node]
        spare.blocked_gpus = max(left.gpus - spare.gpus, 0)
        spare.blocked_cpu = max(left.cpu - spare.cpu, 0)
        spare.blocked_mem = max(left.mem - spare.mem, 0)
        change(nodes, seq.free, spare.node, -spare.blocked_gpus, -spare.blocked_cpu, -spare.blocked_mem)


@inner_kernel
def _unblock(nodes, seq, n):
    """Undo :func:`_block`."""
    for c in range(n):
        spare = seq.shadow[c]
        change(nodes, seq.free, spare.node, spare.blocked_gpus, spare.blocked_cpu, spare.blocked_mem)


@inner_kernel
def _count_spare(seq, n, sign):
    for c in range(n):
        spare = seq.shadow[c]
        left = seq.free.row[spare.node]
        spare.gpus += sign * left.gpus
        spare.cpu += sign * left.cpu
        spare.mem += sign * left.mem


@inner_kernel
def free_in_pool(nodes, free, p):
    """Free GPUs of a pool."""
    total = 0
    for kind in range(nodes.domain_of.shape[1]):
        d = nodes.domain_of[p, kind]
        if d >= 0:
            total += free.total[d]
    return total


@inlined
def _quickest(jobs, options, j):
    """The least that a job's slowdown can be: below 1 where the speeds that schedulers are given are off."""
    least = np.inf
    for kind in range(jobs.cut.shape[1]):
        cut = jobs.cut[j, kind]
        if cut.full >= 0:
            split = cut.spread * options.multi_node_slowdown if options.splits else 1.0
            least = min(least, cut.slow * min(1.0, split))
    return least


@inner_kernel
def backfill(nodes, jobs, seq, options):
    """Start others of the queue behind the chosen job, its head, in the order of the queue, or of ``order``.

    A job that does not fit rules out all later ones of its shape, for in one pass what is free only shrinks.
    """
    seq.failed[0, -1] += 1
    this = seq.failed[0, -1]  # number of the pass
    q, head = seq.status.queue, seq.status.chosen
    at, length = seq.queue[q].at, seq.queue[q].len
    pool = jobs.row[seq.status.first + head].pool
    reserved, shadow = np.inf, ZERO
    if options.backfill == EASY:
        if options.locality < WORTH_IT:  # which have reserved already, to weigh a split
            reserve(nodes, jobs, seq, options, head, options.extra)
        reserved, shadow = seq.status.reserved, seq.status.shadowed
    blocked = False
    now, left = seq.status.now, free_in_pool(nodes, seq.free, pool)
    lo, hi = length, ZERO
    for i in range(length):
        if left == 0 and not options.sticky_head:
            break
        where = seq.order[i] if seq.status.scored else i
        job = seq.waiting[at + where]
        row = jobs.row[seq.status.first + job]
        if job == head or seq.failed[0, row.shape] == this:
            continue
        mine = row.pool == pool
        j = seq.status.first + job
        alongside = mine and now + row.estimate_s * _quickest(jobs, options, j) > reserved
        if alongside and seq.failed[1, row.shape] == this:
            continue
        if not alongside:
            if blocked:
                _unblock(nodes, seq, shadow)
                blocked = False
            n = find(nodes, jobs, seq.free, j, options.rule, options.extra, seq.place)
            if n == 0:
                seq.failed[0, row.shape] = this
                continue
            slowdown = slowdown_on(nodes, jobs, seq, options, j, seq.place, ZERO, n, ZERO)
            alongside = mine and now + row.estimate_s * slowdown > reserved
        if alongside:
            if not blocked:
                _block(nodes, seq, shadow)
                blocked = True
            n = find(nodes, jobs, seq.free, j, options.rule, options.extra, seq.place)
            if n == 0:
                seq.failed[1, row.shape] = this
                continue
            # it will still run at the reserved time: what it takes of the head's nodes is spare no more
            _count_spare(seq, shadow, MINUS_ONE)
            start_job(nodes, jobs, seq, options, job, n)
            _count_spare(seq, shadow, ONE)
        else:
            start_job(nodes, jobs, seq, options, job, n)
        left -= row.gpus
        lo, hi = min(lo, where), max(hi, where + 1)
    if blocked:
        _unblock(nodes, seq, shadow)
    if hi > 0:
        drop_started(jobs, seq, q, lo, hi)
