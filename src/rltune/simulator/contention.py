"""Jobs that slow one another down: the run time of a job of several GPUs while another such job is on one of its nodes.

A job's *pace* is how many times as long it runs as by itself: the larger of what being split and what sharing a node
cost it. It changes while the job runs, when neighbours come and go; what is done so far stays done. Jobs of one GPU
neither slow others down nor are slowed down: what is shared are the links that GPUs of one job talk over.
"""

from __future__ import annotations

import numpy as np

from rltune.cluster.search import strict_nodes
from rltune.kernels import inlined, kernel
from rltune.simulator.heap import move
from rltune.simulator.releases import move_running


@inlined
def pace_split(nodes, jobs, how, j, m, n):
    """How many times as long job ``j`` runs on ``n`` nodes like ``m`` for being split."""
    if how.multi_node_slowdown != 1.0 and n > strict_nodes(jobs, j, nodes.row[m].type):
        return how.multi_node_slowdown
    return 1.0


@inlined
def split_loses_s(nodes, jobs, how, j, m, n):
    """Seconds by its estimate that job ``j`` loses by that, each counted ``how.worth`` times."""
    return how.worth * jobs.row[j].estimate_s * (pace_split(nodes, jobs, how, j, m, n) - 1.0)


@kernel
def pace_on(nodes, jobs, one, how, j, place, n):
    """How many times as long job ``j`` would run on these ``n`` chunks, by what runs beside them now."""
    pace = pace_split(nodes, jobs, how, j, place[0].node, n)
    if how.interference_slowdown > pace and jobs.row[j].gpus > 1:
        for c in range(n):
            if one.free.row[place[c].node].wide > 0:
                return how.interference_slowdown
    return pace


@kernel
def come_or_go(nodes, jobs, one, how, job, sign):
    """A job has started (``sign`` 1) or ended (−1): the pace of those beside it changes."""
    if jobs.row[one.me.first + job].gpus < 2:
        return
    run = one.run[job]
    changed = 2 if sign > 0 else 1  # wide jobs on a node whose first one gets, or loses, company
    some = False
    for c in range(run.at, run.at + run.len):
        m = one.chunk[c].node
        one.free.row[m].wide += sign
        some = some or one.free.row[m].wide == changed
    if not some or how.interference_slowdown == 1.0:
        return
    # a change of pace moves a job in the heap: those to change are found first
    n = 0
    for i in range(one.me.running):
        other = one.heap[i].job
        if other != job and jobs.row[one.me.first + other].gpus > 1 and _meet(one, other, job):
            one.released[n] = other
            n += 1
    for i in range(n):
        _change_pace(nodes, jobs, one, how, one.released[i])


@kernel
def _meet(one, a, b):
    """Whether two jobs have a node in common."""
    x, y = one.run[a], one.run[b]
    for c in range(x.at, x.at + x.len):
        for d in range(y.at, y.at + y.len):
            if one.chunk[c].node == one.chunk[d].node:
                return True
    return False


@kernel
def _change_pace(nodes, jobs, one, how, job):
    """Bring a running job's pace up to date, and with it its ends: the true one and that by its estimate."""
    j = one.me.first + job
    run, now = one.run[job], one.me.now
    if run.end <= now:  # ends at this very instant too
        return
    pace = pace_split(nodes, jobs, how, j, one.chunk[run.at].node, run.len)
    if how.interference_slowdown > pace:
        for c in range(run.at, run.at + run.len):
            if one.free.row[one.chunk[c].node].wide > 1:
                pace = how.interference_slowdown
    if pace == run.pace:
        return
    run.done_s += (now - run.since) / run.pace
    run.since, run.pace = now, pace
    # later than now, whatever rounding says
    run.end = max(now + (jobs.row[j].run_s - run.done_s) * pace, np.nextafter(now, np.inf))
    move(one.heap, one.me.running, job, run.end)
    if how.tracks and not run.late and run.due > now:
        move_running(one, jobs.row[j].pool, job, now + (jobs.row[j].estimate_s - run.done_s) * pace)
