"""A job starts, a job ends: what changes in the state."""

from __future__ import annotations

from rltune.cluster.free import take
from rltune.cluster.search import EXCLUSIVE
from rltune.kernels import kernel
from rltune.simulator.contention import come_or_go, pace_on
from rltune.simulator.heap import pop, push
from rltune.simulator.releases import add_running, drop_running
from rltune.simulator.usage import use


@kernel
def start_job(nodes, jobs, one, how, job, n):
    """Start a job on the ``n`` chunks in ``place``; taking it out of its queue is the caller's."""
    j = one.me.first + job
    row, run, now = jobs.row[j], one.run[job], one.me.now
    take(nodes, jobs, one.free, j, how.rule == EXCLUSIVE, one.place, 0, n, -1)
    run.at, run.len = one.me.chunks, n
    for c in range(n):
        one.chunk[run.at + c].node = one.place[c].node
        one.chunk[run.at + c].gpus = one.place[c].gpus
    one.me.chunks += n
    pace = pace_on(nodes, jobs, one, how, j, one.place, n)
    run.start = now
    run.end = now + row.run_s * pace
    push(one.heap, one.me.running, run.end, job)
    one.me.running += 1
    one.me.started += 1
    if how.tracks:
        run.due = now + row.estimate_s * pace
        add_running(one, row.pool, job)
    if one.share.shape[0] > 0:
        use(one.share, row.account, now, row.gpus)
    if how.company:
        run.pace, run.since, run.done_s = pace, now, 0.0
        come_or_go(nodes, jobs, one, how, job, 1)


@kernel
def end_job(nodes, jobs, one, how):
    """Take back what the job that ends first has; its row in Jobs."""
    job = pop(one.heap, one.me.running)
    one.me.running -= 1
    j = one.me.first + job
    row, run = jobs.row[j], one.run[job]
    take(nodes, jobs, one.free, j, how.rule == EXCLUSIVE, one.chunk, run.at, run.len, 1)
    if how.tracks:
        drop_running(one, row.pool, job)
    if one.share.shape[0] > 0:
        use(one.share, row.account, one.me.now, -row.gpus)
    if how.company:
        come_or_go(nodes, jobs, one, how, job, -1)
    return j
