"""What may start while the head of a queue does not fit: nothing, anything, or what leaves it its reservation."""

from __future__ import annotations

import numpy as np

from rltune.cluster.free import change, take
from rltune.cluster.search import EXCLUSIVE, WORTH_IT, find
from rltune.kernels import kernel
from rltune.simulator.contention import pace_on
from rltune.simulator.how import EASY
from rltune.simulator.queue import drop_started
from rltune.simulator.releases import next_release, settle_late
from rltune.simulator.start import start_job


@kernel
def reserve(nodes, jobs, one, how, job, extra):
    """Reserve for the head the earliest time it fits by the expected ends of running jobs: ``me.reserved``.

    Leaves in ``shadow`` the ``me.shadowed`` nodes of its shadow allocation, with what is spare there then. Running
    jobs are given back in the order of their expected ends until the head fits, and taken again.
    """
    j = one.me.first + job
    p = jobs.row[j].pool
    whole = how.rule == EXCLUSIVE
    settle_late(one, p)
    due = late = gone = n = 0
    time = one.me.now
    other, upcoming = next_release(one, p, how.overrun, due, late)
    while n == 0:
        if other < 0:
            raise RuntimeError("a job in the queue can never fit its pool")
        time = upcoming
        while upcoming == time:  # all that ends at one instant is free at it
            run = one.run[other]
            if run.late:
                late += 1
            else:
                due += 1
            take(nodes, jobs, one.free, one.me.first + other, whole, one.chunk, run.at, run.len, 1)
            one.released[gone] = other
            gone += 1
            other, upcoming = next_release(one, p, how.overrun, due, late)
        n = find(nodes, jobs, one.free, j, how.rule, extra, one.place)
    take(nodes, jobs, one.free, j, whole, one.place, 0, n, -1)
    for c in range(n):
        spare, left = one.shadow[c], one.free.row[one.place[c].node]
        spare.node, spare.gpus, spare.cpu, spare.mem = one.place[c].node, left.gpus, left.cpu, left.mem
    take(nodes, jobs, one.free, j, whole, one.place, 0, n, 1)
    for i in range(gone):
        run = one.run[one.released[i]]
        take(nodes, jobs, one.free, one.me.first + one.released[i], whole, one.chunk, run.at, run.len, -1)
    one.me.reserved, one.me.shadowed = time, n


@kernel
def _hold_back(nodes, one, n):
    """Leave free on the head's nodes only what is spare then; elsewhere more is free then than now."""
    for c in range(n):
        spare = one.shadow[c]
        left = one.free.row[spare.node]
        spare.held_gpus = max(left.gpus - spare.gpus, 0)
        spare.held_cpu = max(left.cpu - spare.cpu, 0)
        spare.held_mem = max(left.mem - spare.mem, 0)
        change(nodes, one.free, spare.node, -spare.held_gpus, -spare.held_cpu, -spare.held_mem)


@kernel
def _let_go(nodes, one, n):
    """Undo :func:`_hold_back`."""
    for c in range(n):
        spare = one.shadow[c]
        change(nodes, one.free, spare.node, spare.held_gpus, spare.held_cpu, spare.held_mem)


@kernel
def _count_spare(one, n, sign):
    for c in range(n):
        spare = one.shadow[c]
        left = one.free.row[spare.node]
        spare.gpus += sign * left.gpus
        spare.cpu += sign * left.cpu
        spare.mem += sign * left.mem


@kernel
def free_in_pool(nodes, free, p):
    """Free GPUs of a pool."""
    total = 0
    for kind in range(nodes.domain_of.shape[1]):
        d = nodes.domain_of[p, kind]
        if d >= 0:
            total += free.total[d]
    return total


@kernel
def backfill(nodes, jobs, one, how):
    """Start others of the queue behind the chosen job, its head, in the order of the queue, or of ``order``.

    A job that does not fit rules out all later ones of its shape, for in one pass what is free only shrinks.
    """
    one.failed[0, -1] += 1
    this = one.failed[0, -1]  # number of the pass
    q, head = one.me.queue, one.me.chosen
    at, length = one.line[q].at, one.line[q].len
    pool = jobs.row[one.me.first + head].pool
    reserved, shadow = np.inf, 0
    if how.backfill == EASY:
        if how.locality < WORTH_IT:  # which have reserved already, to weigh a split
            reserve(nodes, jobs, one, how, head, how.extra)
        reserved, shadow = one.me.reserved, one.me.shadowed
    held = False
    now, left = one.me.now, free_in_pool(nodes, one.free, pool)
    lo, hi = length, 0
    for i in range(length):
        if left == 0 and not how.commit:
            break
        where = one.order[i] if one.me.scored else i
        job = one.queue[at + where]
        row = jobs.row[one.me.first + job]
        if job == head or one.failed[0, row.shape] == this:
            continue
        mine = row.pool == pool
        beside = mine and now + row.estimate_s > reserved
        if beside and one.failed[1, row.shape] == this:
            continue
        j = one.me.first + job
        if not beside:
            if held:
                _let_go(nodes, one, shadow)
                held = False
            n = find(nodes, jobs, one.free, j, how.rule, how.extra, one.place)
            if n == 0:
                one.failed[0, row.shape] = this
                continue
            beside = mine and now + row.estimate_s * pace_on(nodes, jobs, one, how, j, one.place, n) > reserved
        if beside:
            if not held:
                _hold_back(nodes, one, shadow)
                held = True
            n = find(nodes, jobs, one.free, j, how.rule, how.extra, one.place)
            if n == 0:
                one.failed[1, row.shape] = this
                continue
            # it will still run at the reserved time: what it takes of the head's nodes is spare no more
            _count_spare(one, shadow, -1)
            start_job(nodes, jobs, one, how, job, n)
            _count_spare(one, shadow, 1)
        else:
            start_job(nodes, jobs, one, how, job, n)
        left -= row.gpus
        lo, hi = min(lo, where), max(hi, where + 1)
    if held:
        _let_go(nodes, one, shadow)
    if hi > 0:
        drop_started(jobs, one, q, lo, hi)
