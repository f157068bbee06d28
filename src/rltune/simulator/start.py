"""A job starts, a job ends: what changes in the state."""

from rltune.cluster.free import take
from rltune.cluster.search import EXCLUSIVE
from rltune.kernels import MINUS_ONE, ONE, ZERO, inner_kernel
from rltune.simulator.contention import own_run_s, slowdown_on, update_neighbours
from rltune.simulator.heap import pop, push
from rltune.simulator.releases import add_running, drop_running
from rltune.simulator.usage import use


@inner_kernel
def start_job(nodes, jobs, seq, options, job, n):
    """Start a job on the ``n`` chunks in ``place``; taking it out of its queue is the caller's."""
    j = seq.status.first + job
    row, run, now = jobs.row[j], seq.run[job], seq.status.now
    take(nodes, jobs, seq.free, j, options.rule == EXCLUSIVE, seq.place, ZERO, n, MINUS_ONE)
    run.at, run.len = seq.status.chunks, n
    for c in range(n):
        seq.chunk[run.at + c].node = seq.place[c].node
        seq.chunk[run.at + c].gpus = seq.place[c].gpus
    seq.status.chunks += n
    slowdown = slowdown_on(nodes, jobs, seq, options, j, seq.place, ZERO, n, ZERO)
    run.start = now
    run.end = now + own_run_s(nodes, jobs, j, seq.place[0].node) * slowdown
    push(seq.heap, seq.status.running, run.end, job)
    seq.status.running += 1
    seq.status.started += 1
    if options.tracks:
        run.due = now + row.estimate_s * slowdown
        add_running(seq, row.pool, job)
    if seq.share.shape[0] > 0:
        use(seq.share, row.account, now, row.gpus)
    if options.counts_colocated:
        run.slowdown, run.since, run.done_s = slowdown, now, 0.0
        update_neighbours(nodes, jobs, seq, options, job, ONE)


@inner_kernel
def end_job(nodes, jobs, seq, options):
    """Take back what the job that ends first has; its row in Jobs."""
    job = pop(seq.heap, seq.status.running)
    seq.status.running -= 1
    j = seq.status.first + job
    row, run = jobs.row[j], seq.run[job]
    take(nodes, jobs, seq.free, j, options.rule == EXCLUSIVE, seq.chunk, run.at, run.len, ONE)
    if options.tracks:
        drop_running(seq, row.pool, job)
    if seq.share.shape[0] > 0:
        use(seq.share, row.account, seq.status.now, -row.gpus)
    if options.counts_colocated:
        update_neighbours(nodes, jobs, seq, options, job, MINUS_ONE)
    return j
