"""A job starts, a job ends: what changes in the state."""

from __future__ import annotations

from rltune.cluster.free import take
from rltune.cluster.search import EXCLUSIVE, strict_nodes
from rltune.kernels import kernel
from rltune.simulator.heap import pop, push
from rltune.simulator.releases import add_running, drop_running
from rltune.simulator.usage import use


@kernel
def stretch_of(nodes, jobs, j, how, place, n):
    """How many times as long a job runs on this allocation: longer where it has more nodes than a strict one."""
    if how.stretch != 1.0 and n > strict_nodes(jobs, j, nodes.row[place[0].node].type):
        return how.stretch
    return 1.0


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
    longer = stretch_of(nodes, jobs, j, how, one.place, n)
    run.start = now
    run.end = now + row.run_s * longer
    push(one.heap, one.me.running, run.end, job)
    one.me.running += 1
    one.me.started += 1
    if how.tracks:
        run.due = now + row.estimate_s * longer
        add_running(one, row.pool, job)
    if one.share.shape[0] > 0:
        use(one.share, row.account, now, row.gpus)


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
    return j
