"""Interference: the run time of a job of several GPUs while another such job is on one of its nodes.

A job's *slowdown* is its run time over the fastest one: that of its GPU type, times the larger of the slowdowns by being
split and by sharing a node. It changes while the job runs, when neighbours start and end; work done so far stays done. Jobs
of one GPU neither slow others down nor are slowed down: what is shared are the links between the GPUs of a job.
"""

import numpy as np

from rltune.cluster.search import strict_nodes
from rltune.kernels import ONE, inlined, inner_kernel
from rltune.simulator.heap import move
from rltune.simulator.releases import move_running


@inlined
def split_slowdown(nodes, jobs, options, j, m, n):
    """How many times as long job ``j`` runs on ``n`` nodes like ``m`` for being split."""
    kind = nodes.row[m].type
    if n > 1 and n > strict_nodes(jobs, j, kind):
        return jobs.cut[j, kind].spread * options.multi_node_slowdown
    return 1.0


@inlined
def own_run_s(nodes, jobs, j, m):
    """Run time of job ``j`` on nodes like ``m``, without the slowdown there that schedulers know."""
    return jobs.row[j].run_s * (1.0 + jobs.cut[j, nodes.row[m].type].off)


@inlined
def split_loses_s(nodes, jobs, options, j, m, n):
    """Seconds by its estimate that job ``j`` loses by that, each counted ``options.split_worth`` times."""
    lasts_s = jobs.row[j].estimate_s * jobs.cut[j, nodes.row[m].type].slow
    return options.split_worth * lasts_s * (split_slowdown(nodes, jobs, options, j, m, n) - 1.0)


@inner_kernel
def slowdown_on(nodes, jobs, seq, options, j, chunk, at, n, own):
    """Run time of job ``j`` on chunks ``at … at + n − 1`` over the fastest one, given what runs there now.

    ``own``: 1 where the job itself already runs there, else 0.
    """
    slowdown = split_slowdown(nodes, jobs, options, j, chunk[at].node, n)
    if options.interference_slowdown > max(slowdown, 1.0) and jobs.row[j].gpus > 1:
        for c in range(at, at + n):
            if seq.free.row[chunk[c].node].multi_gpu_jobs > own:
                slowdown = options.interference_slowdown
    return slowdown * jobs.cut[j, nodes.row[chunk[at].node].type].slow


@inner_kernel
def update_neighbours(nodes, jobs, seq, options, job, sign):
    """A job has started (``sign`` 1) or ended (−1): the slowdown of those on its nodes changes."""
    if jobs.row[seq.status.first + job].gpus < 2:
        return
    run = seq.run[job]
    changed = 2 if sign > 0 else 1  # multi-GPU jobs on a node where the first one stops, or starts, to be alone
    some = False
    for c in range(run.at, run.at + run.len):
        m = seq.chunk[c].node
        seq.free.row[m].multi_gpu_jobs += sign
        some = some or seq.free.row[m].multi_gpu_jobs == changed
    if not some or options.interference_slowdown == 1.0:
        return
    # a change of slowdown moves a job in the heap: those to change are found first
    n = 0
    for i in range(seq.status.running):
        other = seq.heap[i].job
        if other != job and jobs.row[seq.status.first + other].gpus > 1 and _meet(seq, other, job):
            seq.released[n] = other
            n += 1
    for i in range(n):
        _change_slowdown(nodes, jobs, seq, options, seq.released[i])


@inner_kernel
def _meet(seq, a, b):
    """Whether two jobs have a node in common."""
    x, y = seq.run[a], seq.run[b]
    for c in range(x.at, x.at + x.len):
        for d in range(y.at, y.at + y.len):
            if seq.chunk[c].node == seq.chunk[d].node:
                return True
    return False


@inner_kernel
def _change_slowdown(nodes, jobs, seq, options, job):
    """Bring a running job's slowdown up to date, and with it its ends: the true one and that by its estimate."""
    j = seq.status.first + job
    run, now = seq.run[job], seq.status.now
    if run.end <= now:  # ends now, too
        return
    slowdown = slowdown_on(nodes, jobs, seq, options, j, seq.chunk, run.at, run.len, ONE)
    if slowdown == run.slowdown:
        return
    run.done_s += (now - run.since) / run.slowdown
    run.since, run.slowdown = now, slowdown
    # later than now, whatever rounding says
    left_s = own_run_s(nodes, jobs, j, seq.chunk[run.at].node) - run.done_s
    run.end = max(now + left_s * slowdown, np.nextafter(now, np.inf))
    move(seq.heap, seq.status.running, job, run.end)
    if options.tracks and not run.late and run.due > now:
        move_running(seq, jobs.row[j].pool, job, now + (jobs.row[j].estimate_s - run.done_s) * slowdown)
